"""Trainings that are killed and resumed, compared bit by bit with uninterrupted ones."""
