"""The page that puts the reference beside the paper quotes it, and learners' files begin with their loops."""

import ast
import inspect
import re
from pathlib import Path

import pytest

from driftwolfe import learners, reference

ROOT = Path(__file__).parents[2]


def test_the_page_quotes_the_code():
    page = (ROOT / "docs/theory/algorithms.md").read_text()
    quoted = re.findall(r"(?m)^\|.*\| `(.*)` \|$", page)
    lines = {line.strip() for line in Path(reference.__file__).read_text().splitlines()}
    assert len(quoted) > 30 and not [code for code in quoted if code not in lines]


@pytest.mark.parametrize("name", ["POLD", "POLA", "POLAR", "BOGDIP", "Ader"])
def test_a_learners_file_begins_with_its_loop(name):
    cls = getattr(learners, name)
    source = Path(inspect.getfile(cls)).read_text()
    (found,) = [node for node in ast.parse(source).body if getattr(node, "name", "") == name]
    (loop,) = [node for node in found.body if getattr(node, "name", "") == "update"]
    assert found.lineno < loop.lineno < 80
