"""The paper's claims against results made by hand."""

from __future__ import annotations

import msgspec
import numpy as np
import pytest

from driftwolfe.experiments.paper import as_markdown, claims, experiment
from driftwolfe.experiments.report import as_text
from driftwolfe.experiments.summary import summarise
from experiments.small import result

MATRICES = experiment("matrix-completion").title
CLASSES = experiment("classification").title
NAMES = {"BOGD_IP": "BOGDIP", "Multi-OCG": "MultiOCG", "PAMO (reconstructed)": "PAMO"}
FASTER, SLIGHT = "is significantly faster than", "loses slightly more than"
LOWER = "loses less than"


def runs(name, losses, seconds=None, **options):
    """What some seeds came to after ten rounds."""
    times = seconds or [1.0] * len(losses)
    return [
        result([loss], NAMES.get(name, name), seed=seed, seconds=time, label=name, **options)
        for seed, (loss, time) in enumerate(zip(losses, times, strict=True))
    ]


def found(*results, title=MATRICES):
    (summary,) = summarise(results)
    return {claim.text: claim for claim in claims(summary, title)[0]}


@pytest.mark.parametrize(
    ("ours", "held", "words"),
    [
        ((21.0, 21.4, 20.8), True, ""),
        ((22.1, 22.5, 22.3), False, "higher by more than 10%"),
        ((17.0, 17.2, 16.9), False, "lower, not slightly higher"),
        ((25.0, 15.0, 20.5), False, "no difference beyond 2 standard errors"),
        ((20.0, 20.0, 20.0), False, "no difference beyond 2 standard errors"),
    ],
)
def test_slightly_higher_needs_the_sign_and_the_size(ours, held, words):
    told = found(*runs("POLD", ours), *runs("Ader", (20.0, 20.1, 19.9)))
    claim = told[f"POLD {SLIGHT} Ader"]
    assert (claim.held, claim.found) == (held, words)
    assert words in str(claim)


@pytest.mark.parametrize(
    ("ours", "held", "words"),
    [
        ((19.0, 19.2, 18.9), True, ""),
        ((23.0, 23.1, 22.9), False, "higher, not lower"),
        ((10.0, 25.0, 24.0), False, "no difference beyond 2 standard errors"),
    ],
)
def test_lower_is_lower_by_more_than_chance(ours, held, words):
    told = found(*runs("BOGD_IP", ours), *runs("Multi-OCG", (20.0, 20.1, 19.9)))
    claim = told[f"BOGD_IP {LOWER} Multi-OCG"]
    assert (claim.held, claim.found) == (held, words)


def test_the_difference_is_that_of_the_same_seeds():
    # The seeds differ much, the methods little and always alike.
    ours, theirs = np.array([31.0, 11.0, 21.2]), np.array([30.0, 10.0, 20.0])
    told = found(*runs("POLA", ours), *runs("Ader", theirs))
    claim = told[f"POLA {SLIGHT} Ader"]
    error = np.std(ours - theirs, ddof=1) / np.sqrt(3) / theirs.mean()
    told = f"{(ours - theirs).mean() / theirs.mean():+.1%} ± {error:.1%}"
    assert claim.held and told in claim.measured and "over 3 seeds" in claim.measured


@pytest.mark.parametrize(
    ("theirs", "held", "words"),
    [(10.0, True, ""), (9.9, False, "faster, but less than 5 times"), (1.5, False, "slower")],
)
def test_significantly_faster_is_five_times(theirs, held, words):
    told = found(
        *runs("POLD", (1.0, 1.0, 1.0), seconds=(1.0, 2.0, 3.0)),
        *runs("Ader", (1.0, 1.0, 1.0), seconds=(theirs + 1.0, theirs, theirs - 1.0)),
    )
    claim = told[f"POLD {FASTER} Ader"]
    assert (claim.held, claim.found) == (held, words)
    assert f"2 s against {theirs:g} s for 10 rounds: {theirs / 2:.3g} times" in claim.measured


def test_times_of_two_machines_are_not_compared():
    ours, theirs = runs("POLD", (1.0,) * 3), runs("Ader", (1.0,) * 3, seconds=(50.0,) * 3)
    for mine, other in zip(ours, theirs, strict=True):
        mine.environment["cpu"], other.environment["cpu"] = "an abacus", "a slide rule"
    claim = found(*ours, *theirs)[f"POLD {FASTER} Ader"]
    assert claim.held is None and "times" not in claim.measured
    assert "an abacus and a slide rule" in claim.measured and "not comparable" in claim.verdict


@pytest.mark.parametrize(
    ("seconds", "gpu_of", "held"),
    [(50.0, "theirs", True), (4.0, "theirs", None), (50.0, "ours", None)],
)
def test_the_quicker_without_a_gpu_that_the_slower_had_is_quicker(seconds, gpu_of, held):
    ours, theirs = runs("POLD", (1.0,) * 3), runs("Ader", (1.0,) * 3, seconds=(seconds,) * 3)
    for each in (*ours, *theirs):
        each.environment["cpu"] = "an abacus"
    for each in ours if gpu_of == "ours" else theirs:
        each.environment["gpu"] = "loom"
    claim = found(*ours, *theirs)[f"POLD {FASTER} Ader"]
    assert claim.held is held
    assert (held and "without the loom" in claim.measured) or "not comparable" in claim.verdict


def test_untuned_rows_do_not_count():
    untuned = [result([1.0], "POLD", seed=seed, label="POLD, untuned") for seed in (0, 1, 2)]
    told = found(*runs("POLD", (30.0,) * 3), *untuned, *runs("Multi-OCG", (20.0,) * 3))
    assert list(told) == [f"POLD {LOWER} Multi-OCG"]
    assert "30 against 20" in told[f"POLD {LOWER} Multi-OCG"].measured


def test_which_methods_have_claims():
    ours = ["BOGD_IP", "POLD", "POLA"]
    names = [*ours, "Multi-OCG", "Ader", "PAMO (reconstructed)"]
    results = [each for name in names for each in runs(name, (1.0, 1.0, 1.0))]
    assert list(found(*results)) == [
        *(f"{name} {verb} Ader" for name in [*ours, "Multi-OCG"] for verb in (FASTER, SLIGHT)),
        *(f"{name} {LOWER} Multi-OCG" for name in ours),
    ]
    assert list(found(*results, title=CLASSES)) == [
        f"POLA {verb} PAMO (reconstructed)" for verb in (FASTER, SLIGHT)
    ]
    results = [*runs("POLD", (1.0,) * 3), *runs("Ader", (1.0,) * 3)]
    assert found(*results, title="Mine") == {}
    assert claims(*summarise(results), "Mine") == ([], "")
    told = found(*runs("POLD", (1.0,) * 3), *runs("POLA", (1.0,) * 2), *runs("Ader", (2.0,) * 3))
    assert list(told) == [f"POLD {verb} Ader" for verb in (FASTER, SLIGHT)]


@pytest.mark.parametrize(
    ("seeds", "stream", "why"),
    [
        (3, "MovieLens 100K", ""),
        (2, "MovieLens 100K", "need 3 orders of the data or more; this is 2 orders"),
        (1, "MovieLens 100K", "this is 1 order."),
        (5, "MovieLens 100K (synthetic twin)", "need the real data"),
        (2, "MovieLens 100K (synthetic twin)", "need the real data"),
    ],
)
def test_made_up_data_and_two_seeds_decide_nothing(seeds, stream, why):
    results = [*runs("POLD", (30.0,) * seeds), *runs("Ader", (20.0,) * seeds)]
    (summary,) = summarise([msgspec.structs.replace(each, stream=stream) for each in results])
    found, told = claims(summary, MATRICES)
    assert bool(found) is not bool(why)
    assert why in told and len(told) <= 100 and bool(told) is bool(why)
    text = as_text(MATRICES, [summary], [()])
    if why:
        assert "### The paper's claims\n\n" + told in text
    assert ("held" in text) is not bool(why)


def test_the_table_quotes_the_paper():
    told = found(*runs("POLD", (30.0,) * 3), *runs("Ader", (20.0,) * 3))
    text = as_markdown(list(told.values()))
    assert '- (i) "projection-free methods are significantly more efficient' in text
    assert text.count("| not held: ") == 2
