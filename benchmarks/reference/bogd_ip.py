"""BOGD_IP, Algorithm 2 of the paper, as one plain object."""

from __future__ import annotations

import numpy as np


class BOGDIP:
    """Plays x; when a block ends, projects y less a step along the gradients of the block.

    The dimensionless step h gives eta = c h and blocks of h^(-2/3) rounds, rounded down;
    `project` takes x and the new y and returns both.
    """

    def __init__(self, start, h, c, project):
        self.project = project
        self.eta = c * h
        self.block = max(1, int(h ** (-2 / 3) * (1 + 1e-12)))
        self.x = start
        self.y = start
        self.gradients = np.zeros(start.shape)
        self.t = 0

    @property
    def decision(self):
        """The point for the coming round."""
        return self.x

    def update(self, loss):
        """Suffer the loss at x and learn from it."""
        suffered, gradient = loss.value_and_gradient(self.x)
        self.learn(gradient)
        return suffered

    def learn(self, gradient):
        """Add a gradient to the block; at its end, take the step."""
        self.gradients = self.gradients + gradient
        self.t += 1
        if self.t % self.block == 0:
            self.x, self.y = self.project(self.x, self.y - self.eta * self.gradients)
            self.gradients = np.zeros(self.x.shape)
