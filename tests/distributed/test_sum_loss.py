"""Losses on the workers of a real cluster, against the same sums in this process."""

import numpy as np
import pytest

import driftwolfe as dw

pytest.importorskip("distributed")
