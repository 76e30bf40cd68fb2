"""The actors of the model; each of their steps is one statement, one transaction, or one send. Mover and those
below it are in `model_movers`.

| actor | steps |
|---|---|
| Task | read, begin, (look_up), send, hear, (renew), finish |
| TargetTask | shell, read, begin, start, send, hear, finish |
| ListTask | lock for each key, commit |
| Person | look, visit (the service), edit |
| Adopter | draw (a number of the history), commit |
| Mover | reserve, close, fill |
| Renamer | rename (a new URL of the service) |
| Remover | remove (the reservation of a move) |
| Failover | lose (the intents that were not replicated) |
"""

from __future__ import annotations

from .model_world import (
    ABSENT,
    DONE,
    INTENT,
    LEASE,
    REFUSED,
    TIMEOUT,
    UNKNOWN,
    Entry,
    Ledger,
    Request,
    State,
    World,
)


class Base:
    """What all actors share."""

    number = 0

    def sleeps(self, _world: World) -> bool:
        """Whether the clock of the actor may stand still."""
        return False


class Task(Base):
    """Creates an asset, or updates it if `body` is given."""

    def __init__(
        self,
        key: str = "x",
        *,
        place: str = "A",
        body: str = "",
        url: str = "url",
        attempts: int = 1,
        waits: int = 1,
        is_approved: bool = False,
        follows: str = "",
        loses_answers: bool = False,
    ) -> None:
        """`follows`: the ledger that names this place, which is made if it is missing. `loses_answers`: of the
        commit of its begin.
        """
        self.key, self.place, self.body, self.url = key, place, body, url
        self.attempts, self.waits = attempts, waits
        self.is_approved, self.follows, self.loses_answers = is_approved, follows, loses_answers

    def start(self) -> State:
        """Begin with the plan if there is one."""
        return State("plan" if self.is_approved else "read", waits=self.waits)

    def sleeps(self, world: World) -> bool:
        """Whether the clock may stand still: only without its guard."""
        return not world.guards("clock")

    def plan(self, world: World, state: State) -> State:
        """Read the number that the approval names."""
        ledger = world.ledgers[self.place]
        last = ledger.last(self.key if world.guards("per asset") else "")
        known = frozenset(row.number for row in ledger.history)
        return state._replace(step="read", approved=known, last=last)

    def read(self, world: World, state: State) -> State | None:
        """Decide by the state of the entry; wait for a lease."""
        if self.follows and world.usable(self.follows):
            return None
        if self.place not in world.ledgers and self.follows:
            world.ledgers[self.place] = Ledger(f"new {self.number}")
        if not world.usable(self.place, self.url):
            return None
        entry = world.ledgers[self.place].find(self.key)
        if entry and world.running(entry):
            return state._replace(waits=state.waits - 1) if state.waits else None
        if entry and not self.body:
            return None  # done, or in doubt
        after = self._measured(world, state)._replace(before=entry)
        return after._replace(step="begin" if world.guards("snapshot") else "guard")

    def guard(self, world: World, state: State) -> State | None:
        """Without "snapshot": look at the history before the insert."""
        return state._replace(step="begin") if self._approved(world, state) else None

    def begin(self, world: World, state: State) -> State | None:
        """Write the intent."""
        new = self._drawn(world, state)
        intent = Entry(self.key, INTENT, new.revision, self.url, self.body)
        is_approved = self._approved(world, state) or not world.guards("snapshot")
        seen = state.before and state.before.revision
        is_begun = world.begin(self.place, intent, seen, is_approved)
        if is_begun and self.is_approved and self._effects(world) - state.approved:
            world.reused |= {self.key}
        if is_begun and self.loses_answers and world.choose(2):
            return new._replace(step="look_up")
        if not is_begun:
            return None
        return new._replace(step="send" if world.guards("before") else "committed")

    def committed(self, world: World, state: State) -> State:
        """Without "before": measure from the answer of the commit."""
        return self._measured(world, state)._replace(step="send")

    def look_up(self, world: World, state: State) -> State | None:
        """Find out whether the begin with the lost answer was committed."""
        if not world.guards("first"):
            state = self._measured(world, state)
        entry = world.ledgers[self.place].find(self.key)
        is_ours = entry is not None and entry.revision == state.revision
        return state._replace(step="send") if is_ours else None

    def send(self, world: World, state: State) -> State:
        """Look at the clock, and hand over the first byte."""
        elapsed = world.now - state.slept - state.since
        if elapsed + TIMEOUT > LEASE and world.guards("look"):
            return state._replace(step="finish", outcome=state.outcome or REFUSED)
        asset = (self.number, state.tries)
        world.requests[asset] = Request(self.key, self.body, world.now + TIMEOUT)
        return state._replace(step="hear", tries=state.tries + 1)

    def hear(self, world: World, state: State) -> State:
        """Hear how the request ended; wait until it has."""
        asset = (self.number, state.tries - 1)
        if asset in world.requests:
            return state
        has_arrived = asset in world.created or world.bodies.get(self.key) == self.body != ""
        outcome = (DONE if has_arrived else REFUSED, UNKNOWN)[world.choose(2)]
        may_repeat = outcome == REFUSED or (outcome == UNKNOWN and self.body)
        if outcome == REFUSED and state.outcome:
            outcome = state.outcome  # the gravest of the attempts
        if may_repeat and state.tries < self.attempts:
            step = self._before_another(world)
            return self._measured(world, state)._replace(step=step, outcome=outcome)
        return state._replace(step="finish", outcome=outcome)

    def _before_another(self, world: World) -> str:
        return "renew" if world.guards("renew") else "send"

    def renew(self, world: World, state: State) -> State:
        """Extend the lease for another attempt, or end with the outcome of this one."""
        new = self._drawn(world, state)
        if not world.renew(self.place, self.key, state.revision, new.revision):
            return state._replace(step="finish")
        is_new = world.guards("renew revision")
        return (new if is_new else state)._replace(step="send")

    def finish(self, world: World, state: State) -> None:
        """Write the outcome."""
        revision = (self.number, "end") if world.guards("own revision") else state.revision
        after = Entry(self.key, state.outcome, revision, self.url, self.body)
        asset = (self.number, state.tries - 1)
        world.finish(self.place, after, state.revision, asset, state.before)

    def _measured(self, world: World, state: State) -> State:
        return state._replace(since=world.now - state.slept)

    def _drawn(self, world: World, state: State) -> State:
        revision: object = (self.number, state.drawn) if world.guards("own revision") else 1
        return state._replace(revision=revision, drawn=state.drawn + 1)

    def _approved(self, world: World, state: State) -> bool:
        if not self.is_approved or not world.guards("approval"):
            return True
        return all(number <= state.last for number in self._effects(world))

    def _effects(self, world: World) -> frozenset[int]:
        rows = world.ledgers[self.place].history
        return frozenset(row.number for row in rows if row.key == self.key and row.state == DONE)


class TargetTask(Task):
    """Runs the module on a target: no renewal, and the controller may lose it."""

    def start(self) -> State:
        """Begin with the shell."""
        return State("shell", waits=self.waits)

    def shell(self, world: World, state: State) -> State:
        """Read the clock of the target."""
        return self._measured(world, state)._replace(step="read_after_shell")

    def read_after_shell(self, world: World, state: State) -> State | None:
        """Read the ledger; measure from the shell all the same."""
        after = self.read(world, state)
        return after and after._replace(
            since=state.since, step=after.step if after.step == "begin" else "read_after_shell"
        )

    def begin(self, world: World, state: State) -> State | None:
        """Write the intent and start the module."""
        after = super().begin(world, state)
        return after and after._replace(step="run")

    def run(self, world: World, state: State) -> State:
        """Start on the target."""
        state = state._replace(step="send")
        return state if world.guards("shell") else self._measured(world, state)

    def _before_another(self, world: World) -> str:
        return "pause"

    def hear(self, world: World, state: State) -> State:
        """Hear how the request ended; the lease covers all attempts."""
        return super().hear(world, state)._replace(since=state.since)

    def pause(self, world: World, state: State) -> State:
        """Wait before another attempt; meanwhile the controller may lose the connection."""
        if not state.is_alone and world.choose(2):
            if not world.guards("own result"):
                after = Entry(self.key, UNKNOWN, (self.number, "end"), self.url)
                world.finish(self.place, after, state.revision, None)
            state = state._replace(is_alone=True)
        return state._replace(step="send")

    def finish(self, world: World, state: State) -> None:
        """Write the outcome unless nobody is there to write it."""
        if not state.is_alone:
            super().finish(world, state)


class ListTask(Base):
    """Commits what it begins of several keys in one transaction, which locks each key."""

    def __init__(self, keys: str, place: str = "A") -> None:
        """`keys`: one letter each."""
        self.keys, self.place = keys, place

    def start(self) -> State:
        """Begin with the first key."""
        return State("lock")

    def lock(self, world: World, state: State) -> State:
        """Lock a key; wait while another transaction has it."""
        keys = sorted(self.keys) if world.guards("order") else self.keys
        key = keys[state.tries]
        if any(locked == key for locked, _number in world.locks):
            return state
        world.locks = (*world.locks, (key, self.number))
        tries = state.tries + 1
        return state._replace(step="commit" if tries == len(keys) else "lock", tries=tries)

    def commit(self, world: World, state: State) -> None:
        """Insert the intents of the keys that have none, and unlock."""
        for key in self.keys:
            world.begin(self.place, Entry(key, INTENT, (self.number, key), "url"), None)
        world.locks = tuple(lock for lock in world.locks if lock[1] != self.number)


class Person(Base):
    """Looks at the ledger, then at the service, and settles the entry accordingly."""

    def __init__(
        self, key: str = "x", place: str = "A", forgets: bool = False, is_script: bool = False
    ) -> None:
        """`forgets`: an entry that is done as well. `is_script`: edits at the moment of its visit, and also what
        is not listed.
        """
        self.key, self.place, self.forgets, self.is_script = key, place, forgets, is_script

    def start(self) -> State:
        """Begin with the ledger."""
        return State("look")

    def look(self, world: World, state: State) -> State | None:
        """Find the entry in doubt."""
        ledger = world.ledgers.get(self.place)
        entry = ledger and ledger.find(self.key)
        if not entry:
            return None
        if world.running(entry) and world.guards("listed") and not self.is_script:
            return None
        if entry.state == DONE and not self.forgets:
            return None
        after = ABSENT if self.forgets and entry.state == DONE else ""
        return state._replace(step="visit", before=entry, outcome=after)

    def visit(self, world: World, state: State) -> State | None:
        """See whether the asset exists."""
        there = DONE if self.key in world.created.values() else ABSENT
        after = state._replace(step="edit", outcome=state.outcome or there)
        return self.edit(world, after) if self.is_script else after

    def edit(self, world: World, state: State) -> None:
        """Say so; what is forgotten while it is done was deleted at the service."""
        entry = Entry(self.key, DONE, (self.number, "edit"), "url")
        after = None if state.outcome == ABSENT else entry
        is_named = after is not None or world.guards("named")
        if self.place not in world.ledgers or state.before is None:
            return
        found = world.ledgers[self.place].find(self.key)
        is_deleted = state.before.state == DONE
        if found and world.edit(self.place, self.key, state.before.revision, after, is_named):
            for asset, key in list(world.created.items()) if is_deleted else []:
                if key == self.key:
                    del world.created[asset]


class Adopter(Base):
    """Adopts an asset; its row of the history gets its number before others can see it."""

    def __init__(self, key: str = "x", place: str = "A") -> None:
        self.key, self.place = key, place

    def start(self) -> State:
        """Begin with the number."""
        return State("draw")

    def draw(self, world: World, state: State) -> State:
        """Draw the number, in a transaction that is not committed."""
        ledger = world.ledgers[self.place]
        world.ledgers[self.place] = ledger._replace(drawn=ledger.drawn + 1)
        return state._replace(step="commit", drawn=ledger.drawn + 1)

    def commit(self, world: World, state: State) -> None:
        """Commit the entry and its row."""
        ledger = world.ledgers[self.place]
        if not ledger.find(self.key):
            ledger = ledger.having(Entry(self.key, DONE, (self.number, "adopted"), "url"))
            world.ledgers[self.place] = ledger.recording(self.key, DONE, state.drawn)
