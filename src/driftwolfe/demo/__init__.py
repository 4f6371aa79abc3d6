"""A first look: a target that jumps, OGD and POLA after it, in the terminal and as a picture."""

from driftwolfe.demo.tour import show

__all__ = ["show"]
