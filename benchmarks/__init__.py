"""Benchmarks: data-only lists of cases, runners that print `name: value` lines, peers in the same run."""
