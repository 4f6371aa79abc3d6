"""Where it is measured and at what size, and what is written down about that."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch

from driftwolfe.experiments import run_trial

PACKAGES = ("driftwolfe", "numpy", "scipy", "numba", "torch")
#: What is kept of the facts about a machine.
KEPT = ("cpu", "cores", "system", "python", *PACKAGES, "date", "commit")


@dataclass(frozen=True)
class Setting:
    """A device by its name, and whether sizes are tiny."""

    device: str
    short: bool

    @property
    def place(self) -> torch.device:
        """The device as PyTorch knows it."""
        return torch.device("cpu" if self.device == "torch" else self.device)

    @property
    def on_gpu(self) -> bool:
        """Whether the device is a GPU."""
        return self.place.type == "cuda"

    def device_name(self) -> str:
        """The name of the GPU, or of the processor where there is none."""
        return torch.cuda.get_device_name(self.place) if self.on_gpu else run_trial.cpu_model()

    def facts(self) -> dict[str, Any]:
        """The device, the versions, the date and the commit."""
        told = run_trial.facts(PACKAGES)
        return {
            "device": self.device_name(),
            "option": self.device,
            "short": self.short,
            **{name: told[name] for name in KEPT},
        }
