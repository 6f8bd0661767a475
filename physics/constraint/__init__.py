"""MuJoCo's soft constraints: rows, friction cones, contacts, equalities, limits and friction loss.

This package collects contacts with the world and between moving bodies, with their parameters. The solver in
`physics/solver` finds the forces that satisfy all constraints.
"""
