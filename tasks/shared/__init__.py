"""Shared parts of tasks: walking and running robots, an arm, terrain, randomisation, rotations.

A task is one file in `tasks/`, or a short file on one of these. They know `tasks.base` and torch; none of
them is a task.
"""
