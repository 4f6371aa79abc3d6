"""The paper's claims against results made by hand."""

from __future__ import annotations

from driftwolfe.experiments.paper.claims import as_markdown, claims
from driftwolfe.experiments.summary import summarise
from experiments.results_by_hand import result


def verdicts(*results):
    (summary,) = summarise(results)
    return {claim.text.split(" (")[0]: claim for claim in claims(summary)}


def test_faster_at_slightly_higher_loss_holds():
    found = verdicts(
        result([10.5, 21.0], "POLD", seconds=1.0), result([10.0, 20.0], "Ader", seconds=50.0)
    )
    speed = found["POLD is much faster than Ader"]
    loss = found["POLD pays for it with a slightly higher loss than Ader"]
    assert speed.held and "50 times" in speed.measured
    assert loss.held and "+5.0%" in loss.measured


def test_claims_can_fail():
    found = verdicts(
        result([15.0, 30.0], "POLD", seconds=1.0), result([10.0, 20.0], "Ader", seconds=2.0)
    )
    assert not any(claim.held for claim in found.values())
    assert "DID NOT HOLD" in str(next(iter(found.values())))
    assert as_markdown(list(found.values())).count("**no**") == 2


def test_a_method_that_was_cut_is_compared_over_the_rounds_it_played():
    found = verdicts(
        result([10.0, 30.0, 90.0], "POLA"),
        result([10.0, 20.0], "Ader", cut=True, seconds=100.0),
    )
    assert (
        "after 20 rounds: +50.0%"
        in found["POLA pays for it with a slightly higher loss than Ader"].measured
    )


def test_only_seeds_that_both_have_are_compared():
    found = verdicts(
        result([10.0], "POLD", seed=0),
        result([999.0], "POLD", seed=1),
        result([20.0], "MultiOCG", seed=0, label="Multi-OCG"),
    )
    claim = found["POLD has a lower cumulative loss than Multi-OCG"]
    assert claim.held and "10 against 20" in claim.measured


def test_claims_about_absent_methods_are_not_made():
    assert verdicts(result([1.0], "OGD")) == {}
