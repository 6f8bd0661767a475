"""Collision detection, geometry alone: one file for each family of geom pairs, `narrow.py` the table of all.

A narrow phase takes two shapes with their poses and pushes the contacts that it finds. What a contact does to
bodies is in `physics/constraint`.
"""
