"""Dynamics without constraints: poses, velocities, inertia, bias forces, springs, drag, fixed tendons.

Functions follow Featherstone (2008), on the tree's sparsity, each tree about its own root. The forces of
actuators and of constraints have their own packages.
"""
