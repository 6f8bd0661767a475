"""Learning curves, and the policies that they train."""
