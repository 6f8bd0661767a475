"""State memory: its layout, delayed controls, and values reduced over the substeps of a launch.

It also has the program's copy of the state while substeps run. Quantities computed from it belong to the
packages above.
"""
