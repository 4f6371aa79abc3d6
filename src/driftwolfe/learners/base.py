"""`Learner`: a decision each round, then a loss; and epochs, for learners that need a horizon."""

from __future__ import annotations

import copy
import inspect
import math
import os
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache, partial, wraps
from types import FunctionType
from typing import Annotated, Any, ClassVar, NamedTuple, Self, cast, get_args, get_type_hints

from driftwolfe import bounds
from driftwolfe.domains import CountedDomain, Domain, OracleCalls
from driftwolfe.domains.base import require_feasible
from driftwolfe.ensemble.experts import require_finite, require_in_range
from driftwolfe.learners.options import OPTIONS, Options, check_moved, check_set
from driftwolfe.learners.tickets import Ticket, Tickets
from driftwolfe.losses import FunctionLoss, Loss
from driftwolfe.points import access
from driftwolfe.points.kinds import Array, Point
from driftwolfe.state import Count, Field, Nested, Stateful, declared
from driftwolfe.storage import require

#: Rounds of the first epoch where the horizon is not known.
FIRST_EPOCH = 64


class Round(NamedTuple):
    """What happened in a round: the loss suffered, and the calls made."""

    value: float
    lmo: int
    projection: int
    gauge: int
    membership: int = 0


class Epoch(NamedTuple):
    """Some consecutive rounds that are played with the parameters for a horizon."""

    start: int  # rounds played before it
    horizon: int  # T of its parameters
    rounds: int  # rounds played in it so far


def all_or_nothing(update: Callable[..., Any]) -> Callable[..., Any]:
    """Make an update undo itself where it raises, and take tickets: a refused one changes nothing.

    Updates replace attributes of the learner and its parts, and write into arrays only at the end, where nothing
    can fail: a shallow copy of the attributes is a snapshot. Oracle calls stay counted. Interrupted after that, a
    learner is half updated, and refuses all calls.
    """

    @wraps(update)
    def undoing(self: Learner, loss: Any, ticket: Any = None, **more: Any) -> Any:
        if ticket is not None:
            return self._update_late(loss, ticket, **more)
        if getattr(loss, "overflows", False):
            require_in_range(math.inf, self.domain.diameter if self.domain else 1.0)
        parts = [self, *map(self.__dict__.__getitem__, _parts(type(self))[0])]
        before = [part.__dict__.copy() for part in parts]
        try:
            return update(self, loss, **more)
        except BaseException as error:
            access.half_written(self, _undo, parts, before)
            if isinstance(error, ValueError) and isinstance(loss, Loss) and self.domain:
                _explain(error, loss, self.domain)
            raise

    return undoing


def _undo(parts: list[Any], before: list[dict[str, Any]]) -> bool:
    """Give a learner and its parts their attributes back; return whether that undoes an update."""
    undone = all(part.undoable(held) for part, held in zip(parts, before, strict=True))
    for part, held in zip(parts, before, strict=True):
        part.__dict__ = held
    return undone


#: What guards the methods that a class defines itself.
GUARDS: dict[str, Callable[[Any], Any]] = {
    "update": lambda update: access.writes_or_undoes(all_or_nothing(update)),
    "update_many": access.writes_or_undoes,
    **dict.fromkeys(("decision", "expert_weights", "expert_names", "bound", "clone"), access.reads),
}


@cache
def _parts(cls: type[Learner]) -> tuple[list[str], list[str]]:
    """Attributes that hold experts and weights, and learners within, which undo their own updates."""
    parts = {name: part.kind for name, part in declared(cls).items() if isinstance(part, Nested)}
    replaced = [n for n, kind in parts.items() if not issubclass(kind, (Learner, CountedDomain))]
    return replaced, [n for n, kind in parts.items() if issubclass(kind, Learner)]


def _explain(error: ValueError, loss: Loss, domain: Domain) -> None:
    """Raise an error that names the set, for a loss that is not for its points."""
    name, message = type(domain.unwrapped).__name__, ""
    try:
        loss.check_shape(domain.shape)
        if loss.only_on not in ("", name) and loss.only_on not in str(error):
            message = f"{error}; {type(loss).__name__} is for a {loss.only_on}, not for this {name}"
    except ValueError as problem:
        message = f"{problem}; the points of this {name} have shape {domain.shape}"
    if message:
        raise ValueError(message) from error


class Learner(Stateful, access.Guarded, ABC):
    """Plays points of a convex set against convex losses that come one at a time.

    ``x = learner.decision`` is the point for the coming round; ``learner.update(loss)`` reveals the loss, returns
    that of the decision and moves on; `t` counts the rounds played. A refused update changes nothing. Where losses
    come late, `ask` for a ticket in each round, and give it back with the loss.

    Several threads may read one learner (`decision`, `bound`, `clone`, `save`, ...). While one is in an update,
    others may only read `t`, `oracle_calls` and `repr`: the rest raises RuntimeError, as does an update while
    another reads.

    Parameters
    ----------
    domain
        The set that decisions lie in.

    Notes
    -----
    Units, for all learners: with points in [x] and losses in [f], `lipschitz` is in [f]/[x],
    `step_scale` in [x]²/[f], `loss_scale` and what `bound` returns in [f], `path_length` in [x],
    tolerances in [x]², `smoothness` and `strong_convexity` in [f]/[x]²; `horizon` and `tau` count
    rounds, and all other numbers are pure. In other units a learner plays the same points. A gradient
    with a norm of 1e150 or more, over the diameter where that is above 1, is refused.

    Examples
    --------
    >>> import driftwolfe as dw
    >>> learner = dw.OGD(dw.L2Ball(2), horizon=4, lipschitz=1.0)
    >>> learner.update(dw.losses.LinearLoss([1.0, 0.0])), learner.t, learner.decision
    (0.0, 1, array([-1.,  0.]))
    """

    t: Count  # rounds played
    _counted: CountedDomain  # the set, with its calls
    #: Whether `update` takes a constraint of the round.
    takes_constraints: ClassVar[bool] = False
    #: Whether `update` needs no gradient but the sum over each block, and no value of the decision's loss.
    by_blocks: ClassVar[bool] = False
    #: Checked options, of learners that have some, and the weights of ensembles.
    options: Options | None = None
    _meta: Any = None
    #: Of learners that were asked for some.
    _tickets: Annotated[Tickets | None, Field(Tickets, optional=True)] = None
    #: The epoch being played, of learners that need a horizon.
    _epoch_start: int
    _epoch_length: int
    #: The constructor's arguments by name, the set too; and its parameters, with all options.
    _arguments: dict[str, Any]
    __signature__: ClassVar[inspect.Signature]

    def __init_subclass__(cls, **named: Any) -> None:
        """Guard what a learner defines itself, undo refused updates, and spell out its options."""
        super().__init_subclass__(**named)
        if "__init__" in cls.__dict__:
            cls.__signature__ = _signature(cls.__init__)
        if "    {options}\n" in (cls.__doc__ or ""):
            cls.__doc__ = _with_options(cls)
        for name, guard in GUARDS.items():
            own = cls.__dict__.get(name)
            if isinstance(own, FunctionType):
                setattr(cls, name, guard(own))
            elif isinstance(own, property) and own.fget is not None:
                setattr(cls, name, own.getter(guard(own.fget)))

    def __new__(cls, *given: Any, **named: Any) -> Self:
        """Remember the arguments of the constructor: `load` makes the learner again from them."""
        families = [base.__signature__ for base in cls.__mro__ if issubclass(base, Learner)]
        check_moved(cls.__name__, {name for each in families for name in each.parameters}, named)
        learner = super().__new__(cls, *given, **named)
        if not given and not named:  # a copy, or a mistake that the constructor reports
            return learner
        try:
            bound = cls.__signature__.bind(*given, **named)
        except TypeError as error:
            raise TypeError(f"{cls.__name__}() {error}") from None
        bound.apply_defaults()  # another version may have other defaults
        learner._arguments = dict(bound.arguments)
        for parameter in bound.signature.parameters.values():
            if parameter.kind is parameter.VAR_KEYWORD:
                learner._arguments |= learner._arguments.pop(parameter.name)
        return learner

    def __init__(self, domain: Domain) -> None:
        check_set(domain)
        domain.warm_up()
        self.domain = domain
        self.t = 0
        self._counted = CountedDomain(domain)

    @property
    @abstractmethod
    def decision(self) -> Point:
        """The feasible point for the coming round."""

    @abstractmethod
    def update(self, loss: Any, ticket: Any = None) -> float:
        """Reveal the loss of this round, return its value at the decision, move to the next.

        With a ticket (or its number), the loss is that of the round in which `ask` gave it out, and the value
        returned that at the ticket's decision. What is learned is the same as from a loss of the present round:
        values and gradients at where the experts are now (`docs/theory/delays.md`). In your own learner,
        `update(self, loss)` is enough: tickets are dealt with before.
        """

    @access.writes
    def ask(self) -> Ticket:
        """Return a ticket with the decision to play now, whose loss comes later: `update(loss, ticket)`.

        Losses may come in any order, one for each ticket. The learner keeps the decisions of tickets
        that are open, also in files; `tickets` returns them.
        """
        if self._tickets is None:
            self._tickets = Tickets()
        return self._tickets.add(self.decision)

    @property
    @access.reads
    def tickets(self) -> list[Ticket]:
        """The open tickets, oldest first."""
        return [] if self._tickets is None else self._tickets.copies()

    def _update_late(self, loss: Any, ticket: Any, **more: Any) -> float:
        """Learn the loss of a ticket's round as if it were that of this one; return its value there."""
        tickets = self._tickets or Tickets()
        held, f, t = tickets.find(ticket), as_loss(loss), self.t
        value = f.value(held.decision)
        require_finite(value)
        try:
            tickets.close(held, value - self.update(f, **more))
        except BaseException:
            access.half_written(self, t.__eq__, self.t)
            raise
        return value

    @property
    def runs_ahead(self) -> bool:
        """Whether `update_many` is quicker than as many updates."""
        return False

    @access.writes_or_undoes
    def update_many(self, losses: Sequence[Any]) -> list[Round]:
        """Reveal the losses of several rounds at once: the same decisions as one update for each.

        If one of them is refused, those before it have been played.
        """
        return [self.counted_update(loss) for loss in losses]

    @access.writes_or_undoes
    def counted_update(self, loss: Any, ticket: Any = None, **more: Any) -> Round:
        """Update, and return the oracle calls too."""
        before = self.oracle_calls.numbers()
        value = self.update(loss, ticket, **more)
        after = self.oracle_calls.numbers()
        return Round(value, *(now - then for now, then in zip(after, before, strict=True)))

    @property
    def oracle_calls(self) -> OracleCalls:
        """Calls to the set so far: lmo, projection, gauge, membership."""
        return self._counted.calls

    @property
    def lmo_calls(self) -> int:
        """LMO calls so far."""
        return self.oracle_calls.lmo

    def undoable(self, before: Mapping[str, Any]) -> bool:
        """Whether learners within are where they were."""
        held = [before[name] for name in _parts(type(self))[1]]
        within = [each for one in held for each in (one if isinstance(one, tuple) else (one,))]
        return not any(each.t != before["t"] or access.is_half_written(each) for each in within)

    @property
    @access.reads
    def expert_weights(self) -> Array | None:
        """The weights of an ensemble's experts in the coming round; None for a single learner."""
        return None if self._meta is None else self._meta.weights.copy()

    @property
    def expert_names(self) -> list[str] | None:
        """A name for each expert, in the order of `expert_weights`; None for a single learner."""
        return None

    @access.reads
    def bound(self, path_length: float = 0.0, tau: int | None = None) -> float:
        """Return a proved bound on the regret so far, in units of the loss, with the parameters used.

        With tickets it has what the delays cost, as measured; rounds are those whose losses have come,
        in that order (`docs/theory/delays.md`). NotImplementedError where none is known, as where
        losses differed by more than a given `loss_scale`.

        Parameters
        ----------
        path_length
            That of the comparators, for dynamic regret; 0 is static regret.
        tau
            Rounds of an interval, for adaptive regret: the bound holds on all intervals of that length (of all
            rounds, if fewer were played), with `path_length` that inside it.
        """
        length, window = bounds.asked(path_length, tau)
        known = self._bound(length, window)
        if known is None:
            raise NotImplementedError(
                f"no bound is known for {type(self).__name__} in this setting"
            )
        return known if self._tickets is None else known + self._tickets.cost(window)

    def _bound(self, path_length: float, tau: int | None) -> float | None:
        """The bound for checked arguments; None where none is known."""
        return None

    @access.reads_whole
    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the learner to a file; `driftwolfe.load` resumes bit-identically.

        The file holds no code. A set that holds functions (`LMODomain`), or of your own class without
        `arguments`, is not in it: give it to `driftwolfe.load` again. A learner of your own annotates the
        attributes that change, ``_x: State[Array]``, and takes its set as the first argument and numbers
        or texts as others. `driftwolfe.load` finds its class once the module that defines it is imported.
        """
        from driftwolfe.learners.archive import save_learner

        save_learner(self, path)

    @classmethod
    def load(
        cls, path: str | os.PathLike[str], domain: Domain | None = None, device: str | None = None
    ) -> Self:
        """Read a learner of exactly this class from a file, also where the class is your own.

        The parameters, and what is refused, are those of `driftwolfe.load`.
        """
        from driftwolfe.learners.archive import load_learner

        return cast(Self, load_learner(path, cls, domain, device))

    def own_sizes(self) -> dict[str, Any]:
        origin = self.domain.origin()
        return {"point": origin} | ({"numbers": origin.size} if hasattr(origin, "flat") else {})

    def derive(self) -> None:
        if "_epoch_start" in self.__dict__:
            *_, (self._epoch_start, self._epoch_length, _) = self._epochs()

    def check(self) -> None:
        require_feasible(self.domain, self._tickets.points if self._tickets else ())

    def _inner(self, learner: Any, **known: Any) -> Learner:
        """Return another learner, to play within this one: a copy, or made of a class."""
        if callable(learner) and not isinstance(learner, Learner):
            learner = learner(self.domain, **known)
        if not isinstance(learner, Learner) or learner.domain is not self.domain or learner.t:
            raise ValueError(
                f"{type(self).__name__} takes learners on its own set, the same object, that have played "
                f"no round, or classes; got {learner!r:.80} for {self.domain!r:.80}"
            )
        return learner.clone()

    @access.reads
    def clone(self) -> Self:
        """Return an independent copy in the same state, on the same set."""
        return copy.deepcopy(self, {id(self.domain): self.domain})

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.domain!r}, t={self.t})"

    def _epochs(self) -> Iterator[Epoch]:
        """Yield the epochs of the rounds played, and the one that the next round belongs to.

        A given horizon makes a single epoch; otherwise they have 64, 128, 256, ... rounds.
        """
        horizon = None if self.options is None else self.options.horizon
        start, length = 0, horizon or FIRST_EPOCH
        while horizon is None and self.t - start >= length:
            yield Epoch(start, length, length)
            start, length = start + length, 2 * length
        yield Epoch(start, length, self.t - start)

    def _over_epochs(self, bound: Callable[[Epoch], float]) -> float:
        """The sum of the bounds on the epochs that have been played, or begun."""
        return sum((bound(epoch) for epoch in self._epochs() if epoch.rounds), 0.0)

    def _begin(self, epoch: Epoch, start: Point) -> None:
        """Begin an epoch, with its own parameters, at a feasible point."""
        self._epoch_start, self._epoch_length = epoch.start, epoch.horizon

    def _restart_point(self) -> Point:
        """Where the next epoch starts."""
        return self.decision

    def _next_round(self) -> None:
        """Count a round; where an epoch ends and no horizon is given, begin one of twice the length."""
        self.t += 1
        ended = self.t == self._epoch_start + self._epoch_length
        if ended and cast(Options, self.options).horizon is None:
            self._begin(Epoch(self.t, 2 * self._epoch_length, 0), self._restart_point())


class Outer(Learner):
    """Plays by a learner within, which sees other losses; says what that plays, and how it is weighted."""

    learner: Learner

    @property
    def decision(self) -> Point:
        return self.learner.decision

    @property
    def expert_weights(self) -> Array | None:
        return self.learner.expert_weights

    @property
    def expert_names(self) -> list[str] | None:
        return self.learner.expert_names

    @property
    def oracle_calls(self) -> OracleCalls:
        both = (self._counted.calls.numbers(), self.learner.oracle_calls.numbers())
        return OracleCalls(*map(sum, zip(*both, strict=True)))

    def check(self) -> None:
        super().check()
        require(self.learner.t == self.t, "learner and rounds")


def _signature(init: Callable[..., Any]) -> inspect.Signature:
    """The constructor's parameters without self, and with the options of an Unpack[TypedDict]."""
    signature = inspect.signature(init)
    taken = list(signature.parameters.values())[1:]
    if taken and str(taken[-1].annotation).startswith("Unpack["):
        (options,) = get_args(get_type_hints(init)[taken.pop().name])
        named = partial(inspect.Parameter, kind=inspect.Parameter.KEYWORD_ONLY)
        for name, hint in get_type_hints(options).items():
            taken.append(named(name, default=OPTIONS[name][0], annotation=hint))
    return signature.replace(parameters=taken)


Learner.__signature__ = _signature(Learner.__init__)


def _with_options(cls: type[Learner]) -> str:
    """The docstring of a class with all parameters in order: its own texts, or the shared ones."""
    before, heading, rest = str(cls.__doc__).partition("    Parameters\n    ----------\n")
    entries, end, after = rest.partition("\n\n")
    names = cls.__signature__.parameters
    texts = {name: f"    {name}\n        {OPTIONS[name][1]}" for name in names if name in OPTIONS}
    for entry in re.split(r"\n(?=    \w)", entries.replace("    {options}", "")):
        head = entry.strip().partition("\n")[0]
        texts |= dict.fromkeys(head.split(", "), entry.rstrip())  # several may share an entry
    ordered = dict.fromkeys(texts[name] for name in names if name in texts)
    return before + heading + "\n".join(ordered) + end + after


def largest_gradient(learner: Any) -> float:
    """G: the larger of what was given and the largest gradient norm seen."""
    return max(learner.options.lipschitz or 0.0, learner._experts.largest_gradient)


def as_loss(given: Any) -> Loss:
    """Return a loss; anything with methods `value` and `gradient` is made into one."""
    if isinstance(given, Loss):
        return given
    value, gradient = getattr(given, "value", None), getattr(given, "gradient", None)
    if callable(value) and callable(gradient):
        return FunctionLoss(value, gradient)
    linear = "; a vector g of losses or a gradient is driftwolfe.losses.LinearLoss(g)"
    raise TypeError(
        "a loss must be a driftwolfe.losses.Loss or have methods value(x) and gradient(x), got "
        f"{type(given).__name__}{linear if hasattr(given, '__len__') else ''}"
    )
