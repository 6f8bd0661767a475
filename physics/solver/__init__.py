"""Newton's method for the constrained acceleration, and the ways to solve its linear systems.

The matrix is formed only where it must be. Contacts with the world act like inertia of bodies, and contacts
between moving bodies are a low-rank correction. Where these are many, the whole matrix is assembled.
Noslip's sweeps follow where a model asks for them.
"""
