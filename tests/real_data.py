"""The real data that some tests need, found by an environment variable."""

import os

import pytest

#: Why tests are skipped, and how to run them.
NO_DATA = (
    "needs the real data; where ml-100k/u.data and shuttle/shuttle.scale are in a folder: "
    "make test DRIFTWOLFE_DATA=/that/folder"
)

needs_data = pytest.mark.skipif("DRIFTWOLFE_DATA" not in os.environ, reason=NO_DATA)
