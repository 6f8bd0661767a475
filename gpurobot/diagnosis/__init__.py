"""Diagnosis of a deployed policy from the log of its robot."""
