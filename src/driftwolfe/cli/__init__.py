"""The command line."""

from driftwolfe.cli.program import main

__all__ = ["main"]
