"""Pictures of the documentation: tasks, and the viewer in a browser."""
