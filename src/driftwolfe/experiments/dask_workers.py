"""Trials on a Dask cluster."""

from __future__ import annotations

import asyncio
import sys
import uuid
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from driftwolfe.experiments.trial import Trial, canonical
from driftwolfe.experiments.workers import Outcome, Outcomes, outcome, sentence, work
from driftwolfe.terminal import show

#: Seconds in which a cluster must answer.
_PATIENCE = 10


class DaskWorkers:
    """The workers of a Dask cluster, which must have this version of driftwolfe.

    The cluster moves the trials of a worker that dies to another.
    """

    def __init__(self, address: str) -> None:
        self.address = address

    def run(self, trials: Sequence[Trial], folder: str | None) -> Outcomes:
        """As `Workers.run`."""
        client = self._connect()
        from distributed import as_completed

        if not client.scheduler_info()["workers"]:
            show(f"waiting: the cluster at {self.address} has no workers yet", sys.stderr)

        # Nobody else's trial: another client's data may lie in another folder.
        token = uuid.uuid4().hex
        names = {f"driftwolfe-{trial.identity}-{token}": trial for trial in trials}
        futures = [
            client.submit(work, canonical(trial), folder, key=name, pure=False)
            for name, trial in names.items()
        ]
        try:
            for future in as_completed(futures, loop=client.loop):  # type: ignore[no-untyped-call]
                trial = names[str(future.key)]
                try:
                    # It waits where the worker that held the answer has died: another runs it anew.
                    answer = future.result()
                except Exception as problem:
                    if client.status != "running":
                        raise ValueError(
                            f"the Dask scheduler at {self.address} has gone; start it again, and "
                            "the same command goes on where this one was"
                        ) from problem
                    yield Outcome(trial, None, f"the cluster gave it up: {sentence(problem)}")
                else:
                    yield outcome(trial, answer)
                future.release()
        finally:
            if client.status == "running":
                client.cancel(futures)
            client.close()

    def _connect(self) -> Any:
        try:
            from distributed import Client
            from distributed.comm.core import connect
        except ImportError:
            raise ValueError(
                "a cluster needs Dask: pip install 'driftwolfe[distributed]'"
            ) from None

        async def call() -> None:
            comm = await connect(self.address, timeout=_PATIENCE)  # type: ignore[no-untyped-call]
            await comm.close()

        try:
            # A client whose scheduler does not answer takes long to go, and complains. A thread, as
            # this one may have an event loop already, as in a notebook.
            with ThreadPoolExecutor(1) as thread:
                thread.submit(lambda: asyncio.run(asyncio.wait_for(call(), _PATIENCE + 1))).result()
            return Client(self.address, timeout=_PATIENCE, set_as_default=False)  # type: ignore[no-untyped-call]
        except (OSError, ValueError) as problem:
            raise ValueError(
                f"no Dask scheduler answers at {self.address} ({str(problem) or 'silence'}); start "
                "one with `dask scheduler` and workers with `dask worker ADDRESS --nthreads 1`"
            ) from problem
