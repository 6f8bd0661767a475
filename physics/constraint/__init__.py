"""MuJoCo's soft constraints: rows, friction cones, contacts, equalities, limits and friction loss.

Contacts with the world and between moving bodies are collected here, with the parameters that they act by.
How the forces are found that satisfy all of them is in `physics/solver`.
"""
