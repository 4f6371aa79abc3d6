"""Models of others that are written here, streams out of packages, and the measures of agreement."""

import gzip
import io
import subprocess
import tarfile
import zipfile
from dataclasses import replace
from functools import partial
from hashlib import sha256
from pathlib import Path

import numpy as np
import pytest
from sklearn.metrics import accuracy_score, cohen_kappa_score

from benchmarks import packaged, rivals, streams
from benchmarks.measure import Skipped


@pytest.mark.parametrize("classes", [2, 5])
def test_kappas_are_those_of_scikit_learn(classes):
    rng = np.random.default_rng(classes)
    truth = np.repeat(rng.integers(classes, size=80), rng.integers(1, 5, size=80)).tolist()
    told = np.where(rng.random(len(truth)) < 0.6, truth, rng.integers(classes, size=len(truth)))
    told = told.tolist()
    right, kappa, temporal = streams.agreement(truth, told)
    assert right == pytest.approx(accuracy_score(truth, told))
    assert kappa == pytest.approx(cohen_kappa_score(truth, told))
    repeated = accuracy_score(truth, [-1, *truth[:-1]])
    assert temporal == pytest.approx((right - repeated) / (1.0 - repeated))


def test_the_last_label_has_temporal_kappa_0_and_no_other_has_with_more_right():
    rows = [({}, y) for y in "aabbbacccab"]
    share, _, temporal = streams.play_labels(rivals.LastValue(), rows)
    assert share == pytest.approx(5 / 11) and temporal == 0.0
    assert streams.agreement("aabb", "aabb") == (1.0, 1.0, 1.0)
    assert streams.agreement("aaab", "bbaa")[2] < 0.0 == streams.agreement("aaab", "baaa")[2]
    assert streams.agreement("aaaa", "aaaa")[1] == 0.0  # as one label is no question


@pytest.mark.parametrize("follow", [False, True])
def test_discounted_vaw_solves_its_least_squares(follow):
    # Each discount minimises (hint - w x)^2 + sum over the past of discounts times squares + the regulariser.
    rng = np.random.default_rng(0)
    model, rows, last = rivals.DiscountedVaw(40, follow), [], 0.0
    for t in range(40):
        x = dict(zip("abc", rng.normal(size=3), strict=True))
        found, _ = model.predictions(x), model.predict_one(x)
        row, hint = model.row, last if follow else 0.0
        past = np.array([r for r, _ in rows]).reshape(t, 4)
        truths = np.array([y for _, y in rows])
        assert found[0] == hint
        for discount, prediction in zip(model.discounts[1:], found[1:], strict=True):
            shares = np.sqrt(discount ** np.arange(t, 0, -1))
            rest = np.sqrt(discount ** (t + 0.0) * discount) * np.eye(4)
            left = np.vstack([past * shares[:, None], row, rest])
            right = np.concatenate([truths * shares, [hint], np.zeros(4)])
            weights = np.linalg.lstsq(left, right, rcond=None)[0]
            assert prediction == pytest.approx(weights @ row, rel=1e-5, abs=1e-6)
        last = float(rng.normal() + 3.0 * x["a"])
        rows.append((row.copy(), last))
        model.learn_one(x, last)


def test_the_grid_of_discounts_is_that_of_the_paper():
    model = rivals.DiscountedVaw(1000, follow=False)
    model.predict_one({"a": 1.0, "b": 2.0})
    speeds = model.discounts[1:] / (1.0 - model.discounts[1:])
    assert model.discounts[0] == 0.0
    assert speeds[0] == pytest.approx(6.0) and speeds[-1] == pytest.approx(3000.0, rel=1e-6)
    assert speeds[1:-1] / speeds[:-2] == pytest.approx(2.0) and speeds[-1] / speeds[-2] <= 2.0


def test_the_combination_follows_the_best_discount():
    # The rule changes sign every 200 rows: one that forgets is far better than one that does not.
    rng = np.random.default_rng(1)
    model, errors = rivals.DiscountedVaw(2000, follow=False), []
    for t in range(2000):
        x = {"a": float(rng.normal())}
        y = x["a"] * (-1.0) ** (t // 200)
        told = model.predict_one(x)
        errors.append((np.append(model.each, told) - y) ** 2)
        model.learn_one(x, y)
    *each, ours = np.mean(errors, axis=0)
    assert ours <= 1.5 * min(each) < 0.4 * each[-1]


ROWS = [({"n": float(k % 3), "w": "uv"[k % 2]}, "yes" if k % 2 else "no") for k in range(60)]


@pytest.mark.parametrize("name", [*rivals.forests(True), "MOA ARF", "MOA SRP"])
def test_models_learn_from_words(name):
    make, *_ = {**rivals.forests(True), **rivals.moa(ROWS)}[name]
    try:
        share, *_ = streams.play_labels(make(), ROWS * 5)
    except Skipped as reason:
        pytest.skip(str(reason))
    assert share > (0.6 if name == "AMF" else 0.75)


def packed(kind, name, content):
    """An archive of a package that holds a file."""
    buffer = io.BytesIO()
    if kind == "whl":
        with zipfile.ZipFile(buffer, "w") as wheel:
            wheel.writestr(f"package/data/{name}", content)
        return buffer.getvalue()
    inner = io.BytesIO()
    if kind == "zip":
        with zipfile.ZipFile(inner, "w") as archive:
            archive.writestr(name, content)
    else:
        inner.write(gzip.compress(content))
    with tarfile.open(fileobj=buffer, mode="w:gz") as source:
        entry = tarfile.TarInfo(f"package/data/{name}.{kind}")
        entry.size = len(inner.getvalue())
        source.addfile(entry, io.BytesIO(inner.getvalue()))
    return buffer.getvalue()


def download(archive, suffix, command, **_):
    place = Path(command[command.index("--dest") + 1])
    (place / f"package.{suffix}").write_bytes(archive)


@pytest.mark.parametrize("kind", ["whl", "zip", "gz"])
def test_files_come_out_of_packages_once_and_are_checked(kind, tmp_path, monkeypatch):
    content = b"a,target\n1,0\n2,1\n"
    monkeypatch.delenv("DRIFTWOLFE_DATA", raising=False)
    monkeypatch.delenv("DRIFTWOLFE_OFFLINE", raising=False)
    monkeypatch.setenv("DRIFTWOLFE_CACHE", str(tmp_path))
    known = replace(
        packaged.FILES["flights.csv"], size=len(content), sha256=sha256(content).hexdigest()
    )
    monkeypatch.setitem(packaged.FILES, "flights.csv", known)
    with pytest.raises(Skipped, match="downloads nothing"):
        packaged.content("flights.csv", download=False)
    archive = packed(kind, "flights.csv", content)
    suffix = "whl" if kind == "whl" else "tar.gz"
    monkeypatch.setattr(subprocess, "run", partial(download, archive, suffix))
    assert packaged.content("flights.csv") == content
    monkeypatch.setattr(subprocess, "run", None)
    assert packaged.content("flights.csv", download=False) == content
    assert packaged.numeric("flights.csv", "target", False) == [({"a": 1.0}, 0), ({"a": 2.0}, 1)]
    monkeypatch.setitem(packaged.FILES, "flights.csv", replace(known, sha256="0" * 64))
    with pytest.raises(ValueError, match="truncated or altered"):
        packaged.content("flights.csv")


def test_without_a_network_a_stream_is_skipped(tmp_path, monkeypatch):
    def fail(command, **_):
        raise subprocess.CalledProcessError(1, command, stderr="ERROR: no network\n")

    monkeypatch.delenv("DRIFTWOLFE_DATA", raising=False)
    monkeypatch.setenv("DRIFTWOLFE_CACHE", str(tmp_path))
    monkeypatch.setenv("DRIFTWOLFE_OFFLINE", "1")
    with pytest.raises(Skipped, match="DRIFTWOLFE_OFFLINE is set"):
        packaged.content("elec.csv")
    monkeypatch.delenv("DRIFTWOLFE_OFFLINE")
    monkeypatch.setattr(subprocess, "run", fail)
    with pytest.raises(Skipped, match="pip says 'ERROR: no network'"):
        packaged.content("elec.csv")


def test_flights_are_in_the_order_of_the_schedule_and_cancelled_ones_are_late(
    tmp_path, monkeypatch
):
    head = "month,day,sched_dep_time,sched_arr_time,arr_delay,carrier,flight,origin,dest,distance\n"
    rows = (
        "1,2,600,800,,AA,1,JFK,MIA,9",
        "1,1,2359,100,16,B6,2,JFK,BQN,9",
        "1,1,915,1030,15,UA,3,EWR,IAH,9",
    )
    monkeypatch.setattr(packaged, "content", lambda *_: (head + "\n".join(rows)).encode())
    found = packaged.flights(False)
    assert [(x["carrier"], y) for x, y in found] == [("UA", 0), ("B6", 1), ("AA", 1)]
    assert found[0][0] | {"weekday": 1.0, "leaves": 9.25, "arrives": 10.5} == found[0][0]
