"""The actors of the model that move, rename or remove a ledger."""

from __future__ import annotations

from .model_actors import Base, State
from .model_world import FILLED, FILLING, IN_USE, LEASE, MOVED, Ledger, World


class Mover(Base):
    """Moves a ledger; `fails`: the target may be full, read-only or away at any of its steps."""

    first = "look"

    def __init__(self, source: str = "A", target: str = "B", fails: bool = False) -> None:
        self.source, self.target, self.fails = source, target, fails

    def look(self, world: World, state: State) -> State | None:
        """See whether the source may be moved to this place, or was."""
        source = world.ledgers.get(self.source)
        if source is None or source.mark == FILLING:
            return None
        if source.mark != IN_USE and source.to != self.target:
            return None
        if source.mark == FILLED and world.guards("fill once"):
            return state._replace(step="open", reservation=source.reservation)
        if source.mark == IN_USE and self._is_held(world, source):
            return None
        return state._replace(step="reserve", revision=source.reservation)

    def reserve(self, world: World, state: State) -> State | None:
        """Make sure that the target is ours, and can be written."""
        source, target = world.ledgers.get(self.source), world.ledgers.get(self.target)
        if source is None or (self.fails and world.choose(2)):
            return None
        if target is None:
            target = Ledger(source.ledger_id, FILLING, reservation=self.number + 1)
            world.ledgers[self.target] = target
        elif target.ledger_id != source.ledger_id or target.mark != FILLING:
            return None
        return self._next(world, state._replace(reservation=target.reservation))

    def _next(self, world: World, state: State) -> State | None:
        steps = ["reserve", "close", "portion", "mark", "open"]
        if not world.guards("close first"):
            steps = ["reserve", "portion", "close", "mark", "open"]
        if not world.guards("mark first"):
            steps = ["reserve", "close", "portion", "open", "mark"]
        after = dict(zip(steps, steps[1:])).get(state.step)
        return state._replace(step=after) if after else None

    def _is_held(self, world: World, source: Ledger) -> bool:
        return world.has_open_intent(source) and world.guards("close intent")

    def close(self, world: World, state: State) -> State | None:
        """Mark the source as moved; this is the commit."""
        source = world.ledgers.get(self.source)
        if source is None or source.mark == FILLING or self._is_held(world, source):
            return None
        is_as_seen = source.reservation == state.revision or not world.guards("close as seen")
        is_ours = is_as_seen if source.mark == IN_USE else source.to == self.target
        if not is_ours or (source.mark == FILLED and world.guards("fill once")):
            return None
        world.ledgers[self.source] = source._replace(
            mark=MOVED, to=self.target, reservation=state.reservation
        )
        return self._next(world, state)

    def portion(self, world: World, state: State) -> State | None:
        """Copy the history, or the entries, as far as the target lacks them."""
        source, target = world.ledgers.get(self.source), world.ledgers.get(self.target)
        if source is None or target is None or (self.fails and world.choose(2)):
            return None
        is_ours = target.mark == FILLING and target.reservation == state.reservation
        if not is_ours and world.guards("portion"):
            return None
        if state.tries == 0:
            rows = (row for row in source.history if row not in target.history)
            target = target._replace(history=(*target.history, *rows), url=source.url)
            target = target._replace(drawn=max(source.drawn, target.drawn))
        else:
            for entry in source.entries:  # by the clock of the target each lease has ended
                ended = entry._replace(lease_from=entry.lease_from - LEASE)
                target = target if target.find(entry.key) else target.having(ended)
        world.ledgers[self.target] = target
        state = state._replace(tries=state.tries + 1)
        return state if state.tries < 2 else self._next(world, state)

    def mark(self, world: World, state: State) -> State | None:
        """Mark the source as filled, which it stays."""
        source = world.ledgers.get(self.source)
        is_ours = source and source.to == self.target and source.reservation == state.reservation
        if source is None or not is_ours or source.mark not in {MOVED, FILLED}:
            return None
        world.ledgers[self.source] = source._replace(mark=FILLED)
        return self._next(world, state)

    def open(self, world: World, state: State) -> State | None:
        """Put the target into use."""
        target = world.ledgers.get(self.target)
        is_ours = target and target.reservation == state.reservation
        if not target or target.mark != FILLING or (self.fails and world.choose(2)):
            return None
        if is_ours or not world.guards("reservation"):
            world.ledgers[self.target] = target._replace(mark=IN_USE)
        return self._next(world, state)


class Renamer(Base):
    """Gives the ledger a new URL of its service."""

    first = "rename"

    def __init__(self, url: str, place: str = "A") -> None:
        self.url, self.place = url, place

    def rename(self, world: World, _state: State) -> None:
        """Write the URL, unless a request may be in flight."""
        ledger = world.ledgers[self.place]
        is_held = world.has_open_intent(ledger) and world.guards("url intent")
        if ledger.mark == IN_USE and not is_held:
            world.ledgers[self.place] = ledger._replace(url=self.url)


class Remover(Base):
    """A person who deletes what seems of no use: a target that is filling, or the ledger of an earlier place."""

    first = "remove"

    def __init__(self, place: str) -> None:
        self.place = place

    def remove(self, world: World, _state: State) -> None:
        """Delete it."""
        ledger = world.ledgers.get(self.place)
        target = ledger and world.ledgers.get(ledger.to)
        is_earlier = ledger and ledger.mark == FILLED and target and target.mark == IN_USE
        if ledger and (ledger.mark == FILLING or is_earlier):
            del world.ledgers[self.place]
