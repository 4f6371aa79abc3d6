"""The keyed models of the Apache Beam example, on Beam's own runner, against one process."""

import importlib.util
import json
from pathlib import Path

import numpy as np
import pytest

import driftwolfe as dw

pytest.importorskip(
    "apache_beam", reason="Apache Beam has an environment of its own: make test-beam"
)

EXAMPLE = Path(__file__).parents[2] / "examples/beam_keyed.py"
# Beam's own: its parts for Google's cloud are not installed; old calls of its own.
pytestmark = pytest.mark.filterwarnings("default")


@pytest.fixture(scope="module")
def example():
    spec = importlib.util.spec_from_file_location("beam_keyed", EXAMPLE)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("seed", [0, 1])
def test_answers_are_those_of_one_process_in_whatever_order_events_come(example, seed, monkeypatch):
    monkeypatch.setattr(example, "SHOPS", 4)
    monkeypatch.setattr(example, "HOURS", 12)
    by_shop = example.events(seed)
    plain = {}  # by hand: no function of the example
    for shop, hours in by_shop.items():
        model = dw.POLA(dw.L2Ball(5, radius=3.0))
        for event in hours:
            plain[shop, event["number"]] = float(np.dot(model.decision, event["x"]))
            model.update(dw.losses.HuberRows([event["x"]], [event["y"]]))
    answers = example.by_beam(by_shop, seed)
    assert sorted((key, number) for key, number, _ in answers) == sorted(plain)  # each once
    assert {(key, number): x for key, number, x in answers} == plain


class Cell:
    """A state of Beam's, without Beam."""

    def __init__(self):
        self.held, self.bag = None, []

    def read(self):
        return self.held if self.held is not None else self.bag or None

    def write(self, held):
        self.held = held

    def add(self, each):
        self.bag.append(each)

    def clear(self):
        self.held, self.bag = None, []


class Bag(Cell):
    def read(self):
        return list(self.bag)


def test_what_comes_early_waits_and_what_comes_again_is_dropped(example):
    (hours, *_) = example.events(5).values()
    sent = [json.dumps(event).encode() for event in hours]
    states = Cell(), Cell(), Bag()
    keyed = example.KeyedModel(example.new_model, example.answer)

    def numbers(n):
        return [number for _, number, _ in keyed.process(("shop", sent[n]), *states)]

    assert numbers(2) == [] and numbers(1) == [] and numbers(2) == []
    assert len(states[2].bag) == 3 and states[0].held is None
    assert numbers(0) == [0, 1, 2]
    assert states[1].held == 3 and not states[2].bag
    before = states[0].held
    assert isinstance(before, bytes) and dw.POLA.from_bytes(before).t == 3
    assert numbers(1) == [] and states[0].held == before and not states[2].bag
    assert numbers(5) == [] and numbers(3) == [3] and len(states[2].bag) == 1
    assert numbers(4) == [4, 5]
