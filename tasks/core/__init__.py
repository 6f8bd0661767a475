"""Parts of `tasks/base.py`: observations, events, control, state history, validation of task files.

A task file does not import these modules. It imports `tasks.base`, which exports what an author needs. The
modules work on tensors and settings; they know no robot and no engine.
"""
