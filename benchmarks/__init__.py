"""Benchmarks: cases as data, and programs that print `name: value` lines, with peers in the same run."""
