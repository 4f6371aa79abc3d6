"""The interactive report: one HTML file that needs nothing else."""

from driftwolfe.experiments.report.write import write_report

__all__ = ["write_report"]
