"""Results made by hand, for tests of what is computed from them."""

from __future__ import annotations

from driftwolfe.experiments.trial import DataSet, Result, Trial


def result(
    loss: list[float],
    method: str = "POLD",
    seed: int = 0,
    every: int = 10,
    seconds: float = 1.0,
    **options,
) -> Result:
    """A result whose cumulative loss was read every so many rounds; `seconds` for each reading."""
    fields = {name: options.pop(name) for name in ("cut", "drifts", "adaptive") if name in options}
    data = options.pop("data", DataSet(name="jumping-target"))
    readings = range(1, len(loss) + 1)
    return Result(
        trial=Trial(method=method, data=data, seed=seed, **options),
        rounds=[every * i for i in readings],
        loss=loss,
        seconds=[seconds * i for i in readings],
        lmo=[2 * every * i for i in readings],
        projection=[0] * len(loss),
        gauge=[0] * len(loss),
        drifts=fields.pop("drifts", []),
        stream="by hand",
        wall=1.0,
        environment={},
        **fields,
    )
