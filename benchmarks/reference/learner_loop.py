"""POLA from the library's own single learners: one `dw.BOGDIP` for every interval, in a loop."""

from __future__ import annotations

import driftwolfe as dw
from benchmarks.reference.pola import POLA, IntervalExpert


class LearnerExpert:
    """A learner of its own, with its regret R and the size C of its differences."""

    weight = IntervalExpert.weight

    def __init__(self, domain, start, length, last, c):
        self.learner = dw.BOGDIP(domain, horizon=length, step_scale=c)
        self.learner._begin(length, start)  # from the point played, not from the centre
        self.last = last
        self.regret = 0.0
        self.movement = 0.0

    @property
    def x(self):
        """What the learner plays."""
        return self.learner.decision


class LearnerLoop(POLA):
    """The same ensemble with learners for experts: what one would write around a single learner."""

    def __init__(self, domain, c):
        self.domain = domain
        super().__init__(domain.origin(), c, project=None)

    def update(self, loss):
        """Suffer the loss at the mean, let each learner suffer it and learn."""
        played = self.decision
        suffered = loss.value(played)
        self.t += 1
        losses = [self._suffer(expert, loss) for expert in self.experts]
        self._weigh([suffered - each for each in losses])
        self.experts = [expert for expert in self.experts if expert.last > self.t]
        self._open(played)
        return suffered

    def _suffer(self, expert, loss):
        """What an expert suffers; those in their last round need not learn any more."""
        return expert.learner.update(loss) if expert.last > self.t else loss.value(expert.x)

    def _expert(self, start, length):
        return LearnerExpert(self.domain, start, length, self.t + length, self.c)
