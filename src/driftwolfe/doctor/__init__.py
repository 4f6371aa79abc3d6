"""What is installed, found and working, and what to do about the rest."""

from driftwolfe.doctor.visit import examine

__all__ = ["examine"]
