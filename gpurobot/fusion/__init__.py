"""Fusion of a tape's operations: those that treat every environment alike become programs of the tracer."""
