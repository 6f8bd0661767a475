"""Parts of `tasks/base.py`: observations, events, control, state history, checks of a task's file.

A task does not import these: what it needs of them, base hands on. They know tensors and settings, no robot
and no engine.
"""
