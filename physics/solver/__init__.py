"""Newton's method for the constrained acceleration, and the ways to solve its linear systems.

The matrix is never formed where it need not be: contacts with the world act like inertia of bodies, contacts
between moving bodies are a correction of low rank, and only where they are many all is assembled.
"""
