"""State memory: its layout, delayed controls, and values reduced over the substeps of a launch.

Here is also how a program keeps the state while substeps run. What is computed from it belongs to the rooms
above.
"""
