"""Runs that measure: tables, the paper's experiments, sweeps, figures and reports."""
