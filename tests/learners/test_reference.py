"""The page that puts the reference beside the paper quotes it, and learners' files begin with their loops."""

import re
from pathlib import Path

from driftwolfe import reference

ROOT = Path(__file__).parents[2]


def test_the_page_quotes_the_code():
    page = (ROOT / "docs/theory/algorithms.md").read_text()
    quoted = re.findall(r"(?m)^\|.*\| `(.*)` \|$", page)
    lines = {line.strip() for line in Path(reference.__file__).read_text().splitlines()}
    assert len(quoted) > 30 and not [code for code in quoted if code not in lines]
