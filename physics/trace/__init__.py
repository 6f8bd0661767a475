"""The tracer: Python arithmetic, recorded as a program that is then written, compiled and launched.

This package has the recorded values and statements, lists in the memory of a lane group, the writers of text
for Warp and NumPy, and launches. It contains no physics: the packages above it record that.
"""
