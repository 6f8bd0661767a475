"""The tracer: Python arithmetic recorded as a program, and what writes, compiles and launches it.

Here live the recorded values and statements, lists in the memory of a lane group, the texts for Warp and
NumPy, and launches. It knows nothing of physics: what is recorded is the business of the rooms above.
"""
