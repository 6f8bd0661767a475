"""Pictures of tasks for the documentation."""
