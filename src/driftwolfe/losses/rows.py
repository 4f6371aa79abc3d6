"""Rows of features and points, multiplied where the points live; what is small goes to the host."""

from __future__ import annotations

from typing import Any

from driftwolfe.losses.copies import Copies
from driftwolfe.points.devices import HOST, device_of
from driftwolfe.points.kinds import Array


def products(points: Any, features: Copies) -> Array:
    """Return the inner products of points, the rows of a table, with all features, on the host."""
    device = device_of(points)
    (rows,) = features.on(device)
    if device is HOST:
        scores: Array = points @ rows.T
    else:
        scores = device.host(rows @ points.T).T
    return scores


def combinations(weights: Any, points: Any, features: Copies) -> Any:
    """Return the features, weighted and added up, for every row of weights, where points live."""
    device = device_of(points)
    return device.put(weights) @ features.on(device)[0]
