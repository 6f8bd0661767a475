"""Fusion of a tape's operations: those that treat every environment alike become a few C++ functions."""
