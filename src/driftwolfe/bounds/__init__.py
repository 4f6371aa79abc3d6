"""Explicit regret bounds, with every constant and the parameters used; `docs/theory` has the proofs."""

from driftwolfe.bounds.inequalities import *
