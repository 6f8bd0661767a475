"""Shared parts of tasks: walking and running robots, a robot arm, terrain, randomisation, quaternions.

A task is a file in `tasks/`, which can derive from one of these modules. The modules know `tasks.base` and
torch; none of them is a task.
"""
