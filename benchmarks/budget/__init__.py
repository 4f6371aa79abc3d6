"""Regret against linear minimisations: `python -m benchmarks.budget`."""
