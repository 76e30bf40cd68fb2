"""The actors of the model that move, rename or lose a ledger."""

from __future__ import annotations

from .model_actors import Base
from .model_world import FILLING, IN_USE, INTENT, MOVED, Ledger, State, World


class Mover(Base):
    """Moves a ledger; `fails`: the target may be full, read-only or away at any of its steps."""

    def __init__(self, source: str = "A", target: str = "B", fails: bool = False) -> None:
        self.source, self.target, self.fails = source, target, fails

    def start(self) -> State:
        """Begin with the reservation."""
        return State("reserve")

    def reserve(self, world: World, state: State) -> State | None:
        """Make sure that the target is ours, and can be written."""
        source, target = world.ledgers[self.source], world.ledgers.get(self.target)
        if source.mark == MOVED and source.to != self.target:
            return None
        if source.mark == IN_USE and source.has_intent and world.guards("close intent"):
            return None
        if self.fails and world.choose(2):
            return None
        if target is None:
            world.ledgers[self.target] = Ledger(source.ledger_id, FILLING)
        elif target.ledger_id != source.ledger_id or target.mark != FILLING:
            return None
        return state._replace(step="close" if world.guards("close first") else "fill")

    def close(self, world: World, state: State) -> State | None:
        """Mark the source as moved; this is the commit."""
        source = world.ledgers[self.source]
        if source.mark == MOVED:
            is_ours = source.to == self.target
        else:
            is_ours = not (source.has_intent and world.guards("close intent"))
            if is_ours:
                world.ledgers[self.source] = source._replace(mark=MOVED, to=self.target)
        return state._replace(step="fill") if is_ours and world.guards("close first") else None

    def fill(self, world: World, state: State) -> State | None:
        """Copy all, and mark the target as in use, in one transaction."""
        source, target = world.ledgers[self.source], world.ledgers.get(self.target)
        if self.fails and world.choose(2):
            return None
        if target is None:
            return None  # run again, it reserves again
        is_ours = target.mark == FILLING and target.ledger_id == source.ledger_id
        if is_ours or not world.guards("reservation"):
            world.ledgers[self.target] = source._replace(mark=IN_USE, to="")
        return None if world.guards("close first") else state._replace(step="close")


class Renamer(Base):
    """Gives the ledger a new URL of its service."""

    def __init__(self, url: str, place: str = "A") -> None:
        self.url, self.place = url, place

    def start(self) -> State:
        """There is one step."""
        return State("rename")

    def rename(self, world: World, _state: State) -> None:
        """Write the URL, unless a request may be in flight."""
        ledger = world.ledgers[self.place]
        if ledger.mark == IN_USE and not (ledger.has_intent and world.guards("url intent")):
            world.ledgers[self.place] = ledger._replace(url=self.url)


class Remover(Base):
    """Deletes the reservation of a move."""

    def __init__(self, source: str = "A", target: str = "B") -> None:
        self.source, self.target = source, target

    def start(self) -> State:
        """Begin with the source."""
        return State("remove")

    def remove(self, world: World, _state: State) -> None:
        """Delete the reservation while the source is in use."""
        target = world.ledgers.get(self.target)
        is_in_use = world.ledgers[self.source].mark == IN_USE
        if target and target.mark == FILLING and is_in_use and not world.guards("stays"):
            del world.ledgers[self.target]


class Failover(Base):
    """Makes the database lose the intents that were not replicated."""

    def __init__(self, place: str = "A") -> None:
        self.place = place

    def start(self) -> State:
        """There is one step."""
        return State("lose")

    def lose(self, world: World, _state: State) -> None:
        """Lose them."""
        ledger = world.ledgers[self.place]
        for entry in ledger.entries:
            if entry.state == INTENT:
                ledger = ledger.without(entry.key)
        world.ledgers[self.place] = ledger
