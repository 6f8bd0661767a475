"""Convex shapes of any kind: their farthest points, and how far two are apart or overlap.

Everything here is about two shapes in one place. Which geoms collide, and what a contact is, belongs to
`physics.collision`.
"""
