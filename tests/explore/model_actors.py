"""The actors of the model; each of their steps is one statement, one transaction, one write of a note, or one
send. Mover and those below it are in `model_movers`.

| actor | steps |
|---|---|
| Task | (plan), read, begin, (look_up), (note, look), send, hear, finish, (end) |
| ListTask | lock for each key, commit |
| Person | look, visit (the service), edit |
| Adopter | draw (a number of the history), commit |
| Reporter | settle (the reports of some runs) |
| Mover | look, reserve, close, portion for each half, mark, open |
| Renamer | rename (a new URL of the service) |
| Remover | remove (a target, or the ledger of an earlier place) |
"""

from __future__ import annotations

from typing import NamedTuple

from .model_world import (
    ABSENT,
    DONE,
    INTENT,
    LEASE,
    REFUSED,
    TIMEOUT,
    UNKNOWN,
    Entry,
    Known,
    Ledger,
    Request,
    World,
)


class State(NamedTuple):
    """Where an actor is: its next step, and what it knows."""

    step: str
    revision: object = None
    before: Entry | None = None  # the entry that was read
    after: object = None  # the row of the asset before this run
    approved: frozenset[int] = frozenset()  # the rows of the history that the approval knows
    last: int = 0  # the number that the approval names
    needs: object = None  # the last row of the plan
    since: int = 0
    tries: int = 0
    waits: int = 1
    drawn: int = 0
    outcome: str = ""
    reservation: object = None
    slept: int = 0


class Base:
    """What all actors share."""

    number = 0
    first = ""  # its first step
    controller = ""  # empty: keeps no notes

    def start(self) -> State:
        """Return the first state."""
        return State(self.first)

    def sleeps(self, _world: World) -> bool:
        """Whether the clock of the actor may stand still."""
        return False

    def note(self, world: World, place: str, revision: object, kind: str) -> None:
        """Note a row: the last one that was seen, or the own beginning."""
        is_for_each = world.guards("note of each run")
        run = (self.number, kind) if is_for_each else None
        if is_for_each or not world.lacks_noted(self.controller, place):
            world.notes[world.note_key(self.controller, place, run)] = revision

    def note_seen(self, world: World, place: str) -> bool:
        """Note the last row of a ledger, and return whether it has what was noted before."""
        is_older = world.lacks_noted(self.controller, place)
        for run in list(world.noted(self.controller, place)):
            if is_older and not world.guards("note kept"):
                del world.notes[world.note_key(self.controller, place, run)]
        cause = world.ledgers[place].last_cause()
        is_kept = is_older and world.guards("note kept")
        if cause and not is_kept and world.guards("note seen"):
            self.note(world, place, cause.revision, "seen")
        return not is_older


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
        planned: Ledger | None = None,
        loses_answers: bool = False,
        controller: str = "",
        reports: bool = False,
    ) -> None:
        """`waits`: how often it is planned again. `planned`: the ledger of its approved plan, if it was planned
        before. `loses_answers`: of the commit of its begin. `reports`: looks at its end, and leaves a report.
        """
        self.key, self.place, self.body, self.url = key, place, body, url
        self.attempts, self.waits, self.controller = attempts, waits, controller
        self.is_approved, self.planned = is_approved or bool(planned), planned
        self.loses_answers, self.reports = loses_answers, reports

    def start(self) -> State:
        """Begin with the plan if there is one."""
        state = State("plan" if self.is_approved else "read", waits=self.waits)
        return (
            self._planned(state, self.planned, self.planned.last(self.key))
            if self.planned
            else state
        )

    def sleeps(self, world: World) -> bool:
        """Whether the clock may stand still: only without its guard."""
        return not world.guards("clock")

    def plan(self, world: World, state: State) -> State:
        """Read the number that the approval names."""
        ledger = world.ledgers[self.place]
        last = ledger.last(self.key if world.guards("per asset") else "")
        return self._planned(state, ledger, last)

    def _planned(self, state: State, ledger: Ledger, last: int) -> State:
        known = frozenset(row.number for row in ledger.history)
        cause = ledger.last_cause()
        needs = cause and cause.revision
        return state._replace(step="read", approved=known, last=last, needs=needs)

    def read(self, world: World, state: State) -> State | None:
        """Decide by the state of the entry; wait for a lease."""
        if not world.usable(self.place, self.url):
            return None
        ledger = world.ledgers[self.place]
        if state.needs and not ledger.has(state.needs) and world.guards("plan row"):
            return None
        if self.controller and not self.note_seen(world, self.place):
            return None
        entry = ledger.find(self.key)
        if entry and world.running(entry):
            world.see(self.place, entry)
            return self._again(state)
        if entry and not self.body:
            return None  # done, or in doubt
        after = self._measured(world, state)._replace(before=entry, after=self._last(world, state))
        return after._replace(step="begin" if world.guards("snapshot") else "guard")

    def _last(self, world: World, state: State) -> object:
        row = world.ledgers[self.place].last_cause(self.key)
        return state.after if state.tries else row and row.revision

    def _again(self, state: State) -> State | None:
        return self._anew(state)._replace(waits=state.waits - 1) if state.waits else None

    def _anew(self, state: State) -> State:
        return state._replace(step="read", revision=None, before=None, since=0, outcome="")

    def guard(self, world: World, state: State) -> State | None:
        """Without "snapshot": look at the history before the insert."""
        return state._replace(step="begin") if self._approved(world, state) else None

    def begin(self, world: World, state: State) -> State | None:
        """Write the intent."""
        new = self._drawn(world, state)
        new = new._replace(after=self._last(world, state)) if world.guards("before it") else new
        revision = new.revision
        intent = Entry(self.key, INTENT, revision, revision, self.url, self.body)
        is_approved = self._approved(world, state) or not world.guards("snapshot")
        seen = state.before and state.before.revision
        is_begun = world.begin(self.place, intent, seen, is_approved)
        if is_begun and self.is_approved and self._effects(world) - state.approved:
            world.wrong |= {f"the approval of {self.key} was used again"}
        if is_begun and self.loses_answers and world.choose(2):
            return new._replace(step="look_up")
        if not is_begun:
            return self._again(state)
        return new._replace(step=self._begun(world) if world.guards("before") else "committed")

    def _begun(self, world: World) -> str:
        return "write_note" if self.controller and world.guards("note first") else "send"

    def committed(self, world: World, state: State) -> State:
        """Without "before": measure from the answer of the commit."""
        return self._measured(world, state)._replace(step=self._begun(world))

    def look_up(self, world: World, state: State) -> State | None:
        """Find out whether the begin with the lost answer was committed."""
        if not world.guards("first"):
            state = self._measured(world, state)
        entry = world.ledgers[self.place].find(self.key)
        is_ours = entry is not None and entry.revision == state.revision
        return state._replace(step=self._begun(world)) if is_ours else None

    def write_note(self, world: World, state: State) -> State | None:
        """Note the own beginning."""
        self.note(world, self.place, state.revision, "own")
        if not world.guards("note first"):
            return None
        return state._replace(step="look" if world.guards("look again") else "send")

    def look(self, world: World, state: State) -> State:
        """Look whether the ledger has what all runs of the controller have noted."""
        if world.lacks_noted(self.controller, self.place):
            return state._replace(step="finish", outcome=REFUSED)
        return state._replace(step="send")

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
        state = state._replace(step="finish", outcome=outcome)
        is_repeated = self._may_repeat(state) and not world.guards("begin again")
        return self._measured(world, state)._replace(step="send") if is_repeated else state

    def _may_repeat(self, state: State) -> bool:
        may_repeat = state.outcome == REFUSED or (state.outcome == UNKNOWN and self.body)
        return bool(may_repeat and 0 < state.tries < self.attempts)

    def finish(self, world: World, state: State) -> State | None:
        """Write the outcome; begin again if the attempt may be repeated."""
        revision = (
            (self.number, "end", state.tries) if world.guards("own revision") else state.revision
        )
        after = Entry(self.key, state.outcome, revision, state.revision, self.url, self.body)
        world.finish(self.place, after, (self.number, state.tries - 1), state.before)
        if self._may_repeat(state):
            return self._anew(state)
        if not world.guards("note first") and self.controller:
            return state._replace(step="write_note")
        return state._replace(step="end") if self.reports else None

    def end(self, world: World, state: State) -> None:
        """Look whether the outcome is still there, write it again if not, and leave a report."""
        known = Known(self.key, state.outcome, self.body, state.revision, state.after)
        world.reports[self.number] = known
        if not world.guards("end"):
            return
        if not world.write_known(self.place, known, (self.number, "end")):
            world.told |= {(self.number, state.tries - 1)}

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


class ListTask(Base):
    """Commits what it begins of several keys in one transaction, which locks each key."""

    first = "lock"

    def __init__(self, keys: str, place: str = "A") -> None:
        """`keys`: one letter each."""
        self.keys, self.place = keys, place

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
            world.begin(self.place, Entry(key, INTENT, (self.number, key)), None)
        world.locks = tuple(lock for lock in world.locks if lock[1] != self.number)


class Person(Base):
    """Looks at the ledger, then at the service, and settles the entry accordingly."""

    first = "look"

    def __init__(
        self, key: str = "x", place: str = "A", forgets: bool = False, is_script: bool = False
    ) -> None:
        """`forgets`: an entry that is done as well. `is_script`: edits at the moment of its visit, and also what
        is not listed.
        """
        self.key, self.place, self.forgets, self.is_script = key, place, forgets, is_script

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
        if self.place not in world.ledgers or state.before is None:
            return
        after = Entry(self.key, state.outcome, (self.number, "edit"))
        is_named = after.state == DONE or world.guards("named")
        found = world.ledgers[self.place].find(self.key)
        is_deleted = state.before.state == DONE
        if found and world.edit(self.place, state.before.revision, after, is_named):
            for asset, key in list(world.created.items()) if is_deleted else []:
                if key == self.key:
                    del world.created[asset]


class Adopter(Base):
    """Adopts an asset; its row of the history gets its number before others can see it."""

    first = "draw"

    def __init__(self, key: str = "x", place: str = "A") -> None:
        self.key, self.place = key, place

    def draw(self, world: World, state: State) -> State:
        """Draw the number, in a transaction that is not committed."""
        ledger = world.ledgers[self.place]
        world.ledgers[self.place] = ledger._replace(drawn=ledger.drawn + 1)
        return state._replace(step="commit", drawn=ledger.drawn + 1)

    def commit(self, world: World, state: State) -> None:
        """Commit the entry and its row."""
        ledger = world.ledgers[self.place]
        entry = Entry(self.key, DONE, (self.number, "adopted"))
        if not ledger.find(self.key):
            ledger = ledger.recording(self.key, DONE, entry.revision, number=state.drawn)
            world.ledgers[self.place] = ledger.having(entry)


class Reporter(Base):
    """A person who settles the reports of some runs, as far as these have ended."""

    first = "settle"

    def __init__(self, *runs: int, place: str = "A") -> None:
        self.runs, self.place = runs, place

    def settle(self, world: World, _state: State) -> None:
        """Settle them."""
        for run in self.runs:
            known = world.reports.get(run)
            entry = known and world.ledgers[self.place].find(known.key)
            is_free = not entry or not world.running(entry)
            if known and is_free and world.write_known(self.place, known, (self.number, run)):
                self._check(world, known)

    def _check(self, world: World, known: Known) -> None:
        ledger = world.ledgers[self.place]
        entry = ledger.find(known.key)
        if entry and entry.began == known.began and entry.state != known.state and not known.body:
            world.wrong |= {f"{known.key} is still in doubt after its report"}
        if known.began in world.notes.values() and not ledger.has(known.began):
            world.wrong |= {"a ledger is refused after the report of what it lost"}
