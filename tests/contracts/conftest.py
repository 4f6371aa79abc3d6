"""Contracts of estimators meet projections of the completer early."""

import pytest

from driftwolfe.estimators import completer_tables


@pytest.fixture(autouse=True, scope="module")
def short_memory():
    """A completer remembers 64 ratings, and projects after 16."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(completer_tables, "MEMORY", 64)
        yield
