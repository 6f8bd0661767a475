"""Collision detection, geometry alone: one file for each family of geom pairs, `narrow.py` the table of all.

A narrow phase takes two shapes with their poses and pushes the contacts that it finds. The effect of contacts
on bodies is in `physics/constraint`.
"""
