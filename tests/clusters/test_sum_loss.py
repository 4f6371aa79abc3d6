"""Losses on the workers of a real cluster, against the same sums in this process."""

import pytest

pytest.importorskip("distributed")
