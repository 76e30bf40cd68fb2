"""Explores the model of the ledger: all orders of the steps of a cast, with ticks and kills between any two."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from typing import Any, NamedTuple

from .model_actors import Base, State
from .model_violations import violations, violations_at_end
from .model_world import GUARDS, Ledger, World


class Cast(NamedTuple):
    """Who acts in one exploration, how much may happen to them, and without which guards that is too much."""

    actors: Sequence[Base]
    ticks: int = 3
    kills: int = 1
    sets: int = 0  # how far the clock of the database is set, once
    backs: bool = False  # a backup is put back, once
    backup: Ledger | None = None  # without it one is taken at any moment
    first: Mapping[str, Ledger] = {"A": Ledger("L")}
    created: Mapping[object, str] = {}
    follows: Sequence[tuple[int, int]] = ()  # who starts when who else has ended
    again: Any = None  # moves the ledger once more at the end
    finds: Sequence[str] = ()  # the guards that it needs


class Budget(NamedTuple):
    """What may still happen."""

    ticks: int
    kills: int
    sets: int
    takes: bool
    backs: bool


class Point(NamedTuple):
    """A point of the exploration, with the steps that led to it."""

    world: World
    states: tuple[State | None, ...]
    budget: Budget
    log: tuple[Any, ...]


class Explored(NamedTuple):
    """How many points were explored, and the first violations with the steps that led to them."""

    points: int
    violations: dict[str, str]


def explore(cast: Cast, *left_out: str) -> Explored:
    """Explore all orders of the steps of a cast, without some guards, until something is violated."""
    stack = [_first_point(cast, left_out)]
    met: set[object] = set()
    while stack:
        point = stack.pop()
        key = (point.world.key(), point.states, point.budget)
        if key in met:
            continue
        met.add(key)
        following = list(_following(cast, point))
        problems = [*violations(point.world), *_problems_at_end(cast, point, following)]
        if problems:
            return Explored(len(met), dict.fromkeys(problems, " ".join(_words(point.log))))
        stack += following
    return Explored(len(met), {})


def _first_point(cast: Cast, left_out: Sequence[str]) -> Point:
    if not set(left_out) <= set(GUARDS):
        raise KeyError(left_out)
    world = World(frozenset(left_out), ledgers=dict(cast.first), created=dict(cast.created))
    world.backup = cast.backup
    for number, actor in enumerate(cast.actors):
        actor.number = number
    takes = cast.backs and not cast.backup
    budget = Budget(cast.ticks, cast.kills, cast.sets, takes, cast.backs)
    return Point(world, tuple(actor.start() for actor in cast.actors), budget, ())


def _words(log: tuple[Any, ...]) -> list[str]:
    words: list[str] = []
    while log:
        log, word = log
        words.append(word)
    return words[::-1]


def _problems_at_end(cast: Cast, point: Point, following: Sequence[Point]) -> Iterator[str]:
    if any(point.states) and not following:
        yield "everybody waits"
    if any(point.states) or point.world.requests:
        return
    yield from violations_at_end(point.world)
    mover = cast.again
    if mover:
        after = point.world.copy()
        state = mover.start()
        while state:
            state = getattr(mover, state.step)(after, state)
        yield from violations(after)
        yield from violations_at_end(after)
        if not after.usable(mover.source) and not after.usable(mover.target):
            yield "running the move again does not complete it"


def _following(cast: Cast, point: Point) -> Iterator[Point]:
    waiting = {number for number, first in cast.follows if point.states[first]}
    for number, state in enumerate(point.states):
        if state and number not in waiting:
            yield from _steps(cast, point, number, state)
    yield from _requests(point)
    yield from _events(cast, point)


def _steps(cast: Cast, point: Point, number: int, state: State) -> Iterator[Point]:
    scripts: list[list[int]] = [[]]
    while scripts:
        script = scripts.pop()
        world = point.world.copy()
        world.choices = list(script)
        after = getattr(cast.actors[number], state.step)(world, state)
        for depth in range(len(script), len(world.asked)):
            for way in range(1, world.asked[depth]):
                scripts.append([*world.choices[:depth], way])
        if after == state and world.key() == point.world.key():
            continue  # it waits
        word = f"{number}:{state.step}{''.join(map(str, world.choices))}"
        yield Point(world, _with(point.states, number, after), point.budget, (point.log, word))
    if point.budget.kills:
        world = point.world.copy()
        world.locks = tuple(lock for lock in world.locks if lock[1] != number)
        if cast.backs and not point.budget.backs:
            world.taken_back |= {number}
        budget = point.budget._replace(kills=point.budget.kills - 1)
        yield Point(world, _with(point.states, number, None), budget, (point.log, f"{number}:KILL"))


def _with(states: tuple[State | None, ...], number: int, state: State | None) -> tuple[Any, ...]:
    return (*states[:number], state, *states[number + 1 :])


def _requests(point: Point) -> Iterator[Point]:
    for asset, request in point.world.requests.items():
        for is_lost in (False, True):
            world = point.world.copy()
            del world.requests[asset]
            if not is_lost and request.body:
                world.bodies[request.key] = request.body
            elif not is_lost:
                world.created[asset] = request.key
            word = f"{request.key} {'is lost' if is_lost else 'arrives'}"
            yield point._replace(world=world, log=(point.log, word))


def _events(cast: Cast, point: Point) -> Iterator[Point]:
    world, budget = point.world, point.budget
    if budget.ticks and all(request.until > world.now + 1 for request in world.requests.values()):
        after = world.copy()
        after.now += 1
        clocks = [
            (state, state and state._replace(slept=state.slept + 1))
            if state and actor.sleeps(world)
            else (state,)
            for actor, state in zip(cast.actors, point.states)
        ]
        for states in product(*clocks):
            left = budget._replace(ticks=budget.ticks - 1)
            yield Point(after, tuple(states), left, (point.log, "tick"))
    if budget.sets:
        after = world.copy()
        after.offset, after.first_seen = budget.sets, {}
        yield Point(after, point.states, budget._replace(sets=0), (point.log, "clock set"))
    if budget.takes:
        after = world.copy()
        after.backup = world.ledgers["A"]
        left = budget._replace(takes=False)
        yield Point(after, point.states, left, (point.log, "backup"))
    elif budget.backs and not any(point.states[first] for who, first in cast.follows if who < 0):
        after = world.copy()
        after.ledgers["A"], after.backup = world.backup, None
        after.taken_back = frozenset(run for run, state in enumerate(point.states) if not state)
        left = budget._replace(backs=False)
        yield Point(after, point.states, left, (point.log, "backup put back"))
