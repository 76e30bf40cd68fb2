"""A model of the ledger: its statements, the service, and the clocks.

Each statement is a method of World and changes the world at once, like a statement or transaction of the
database. Each guard of a statement has a name in GUARDS, and an exploration can leave guards out: then it has to
find a violation. `model` explores it;
`model_actors` and `model_movers` say who takes which steps, `model_casts` who acts together.

A request is settled, by arriving or by getting lost, within TIMEOUT of its first byte and before its sender hears
about it. What a service does later than that, no ledger can prevent.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

TIMEOUT, LEASE = 1, 2  # ticks: a lease is longer than the timeout by the margin
IN_USE, MOVED, FILLING = "in use", "moved", "filling"
INTENT, UNKNOWN, DONE, ABSENT = "intent", "unknown", "done", "absent"
REFUSED = "refused"  # the outcome of a request that the service provably did not process

GUARDS = {
    "insert": "the first begin inserts, and reports whether it did",
    "revision": "a later write names the revision that it read",
    "own revision": "a revision is drawn by its writer and never used again",
    "listed": "an entry whose lease runs is not listed as in doubt",
    "edit lease": "an edit needs a lease that has ended",
    "no session": "a lease does not end with a session of the database",
    "future": "a lease that begins in the future runs, unless it begins more than a lease ahead",
    "not for ever": "a lease that begins more than a lease ahead has ended",
    "look": "the owner looks at its clock at the first byte",
    "before": "the owner measures from before it hands the statement over",
    "first": "the owner measures from before the first time that it hands the statement over",
    "clock": "the clock of the owner goes on while the machine sleeps",
    "shell": "a module on a target measures from the shell that answered before the begin",
    "own result": "an outcome is written only by what sent the request",
    "renew": "a further attempt renews the lease",
    "renew lease": "a renewal needs a lease that still runs",
    "renew revision": "a renewal gives a new revision",
    "late insert": "an accepted or unknown outcome that finds no entry inserts one",
    "late usable": "such an insert names the mark of the ledger",
    "usable": "a begin names the mark of the ledger",
    "url": "a begin names the URL of the ledger",
    "url intent": "a new URL is refused while there is an intent",
    "close intent": "a ledger with an intent is not closed",
    "close first": "a move closes the source before it fills the target",
    "reservation": "a move fills only its own reservation",
    "stays": "nobody deletes the reservation of a move",
    "approval": "the begin refuses an asset that had an effect since the plan",
    "per asset": "an approval has a number for each asset",
    "snapshot": "the guard of the approval sees what was committed before the insert",
    "named": "an edit to absent names the revision or the id that the person looked at",
    "order": "the statements of a commit are in the order of their keys",
}


class Entry(NamedTuple):
    """An entry; `renewed`: the true time at which its lease began."""

    key: str
    state: str
    revision: object
    url: str = ""
    body: str = ""
    lease_from: int = 0
    renewed: int = 0


class Row(NamedTuple):
    """A row of the history."""

    number: int
    key: str
    state: str


class Ledger(NamedTuple):
    """A ledger, with the last number that a row of its history has drawn."""

    ledger_id: str
    mark: str = IN_USE
    to: str = ""
    url: str = "url"
    entries: tuple[Entry, ...] = ()
    history: tuple[Row, ...] = ()
    drawn: int = 0

    def find(self, key: str) -> Entry | None:
        """Return the entry of a key."""
        return next((entry for entry in self.entries if entry.key == key), None)

    def having(self, entry: Entry) -> Ledger:
        """Return the ledger with this entry in place of the one of its key."""
        return self._replace(entries=tuple(sorted((*self.without(entry.key).entries, entry))))

    def without(self, key: str) -> Ledger:
        """Return the ledger without the entry of a key."""
        return self._replace(entries=tuple(entry for entry in self.entries if entry.key != key))

    def recording(self, key: str, state: str, number: int = 0) -> Ledger:
        """Return the ledger with a row of history, by default with the next number."""
        drawn = self.drawn if number else self.drawn + 1
        return self._replace(history=(*self.history, Row(number or drawn, key, state)), drawn=drawn)

    @property
    def has_intent(self) -> bool:
        """Whether a request may be in flight."""
        return any(entry.state == INTENT for entry in self.entries)

    def last(self, key: str = "") -> int:
        """Return the last number of the history that is visible, of a key or of all."""
        return max((row.number for row in self.history if key in {"", row.key}), default=0)


class Request(NamedTuple):
    """A request that is not settled."""

    key: str
    body: str  # empty: creates
    until: int


@dataclass
class World:
    """All that is shared. `now` is true time; the clock of the database may be set."""

    left_out: frozenset[str] = frozenset()
    now: int = 0
    offset: int = 0
    ledgers: dict[str, Ledger] = field(default_factory=dict)
    requests: dict[object, Request] = field(default_factory=dict)
    created: dict[object, str] = field(default_factory=dict)  # id: key
    bodies: dict[str, str] = field(default_factory=dict)  # what an update left at the service
    told: frozenset[object] = frozenset()  # ids that a result named because no ledger has them
    reused: frozenset[str] = frozenset()  # keys of approvals that had an effect before
    locks: tuple[tuple[str, int], ...] = ()
    session_ended: bool = False
    choices: list[int] = field(default_factory=list)
    asked: list[int] = field(default_factory=list)

    def guards(self, name: str) -> bool:
        """Whether the guard is in place."""
        if name not in GUARDS:
            raise KeyError(name)
        return name not in self.left_out

    def choose(self, ways: int) -> int:
        """Return which of so many ways the world goes; the explorer tries each."""
        self.asked.append(ways)
        if len(self.asked) > len(self.choices):
            self.choices.append(0)
        return self.choices[len(self.asked) - 1]

    def copy(self) -> World:
        """Return a world that can be changed."""
        return replace(
            self,
            ledgers=dict(self.ledgers),
            requests=dict(self.requests),
            created=dict(self.created),
            bodies=dict(self.bodies),
            choices=[],
            asked=[],
        )

    def key(self) -> tuple[Any, ...]:
        """Return what distinguishes this world from others."""
        parts = (self.ledgers, self.requests, self.created, self.bodies)
        return (
            self.now,
            self.offset,
            *(tuple(sorted(part.items(), key=repr)) for part in parts),
            self.told,
            self.reused,
            self.locks,
            self.session_ended,
        )

    # The predicates of the statements

    def usable(self, place: str, url: str = "") -> bool:
        """Whether the ledger is in use and has this URL, if one is given."""
        ledger = self.ledgers.get(place)
        return bool(ledger and ledger.mark == IN_USE and url in {"", ledger.url})

    def running(self, entry: Entry, now: int | None = None) -> bool:
        """Whether the lease of an entry runs, by the clock of the database."""
        if entry.state != INTENT:
            return False
        age = (self.now if now is None else now) + self.offset - entry.lease_from
        if age < 0 and not self.guards("future"):
            return False
        return age < LEASE and (age > -LEASE or not self.guards("not for ever"))

    # The statements; each returns whether it changed something

    def begin(self, place: str, entry: Entry, seen: object, is_approved: bool = True) -> bool:
        """Insert an intent, or change the entry that has the revision `seen` to one."""
        ledger = self.ledgers[place]
        if self.guards("usable") and ledger.mark != IN_USE:
            return False
        if self.guards("url") and ledger.url != entry.url:
            return False
        found = ledger.find(entry.key)
        is_as_read = (found.revision if found else None) == seen
        if not is_as_read and self.guards("insert" if seen is None else "revision"):
            return False
        if is_approved:
            self.ledgers[place] = ledger.having(self._leased(entry))
        return is_approved

    def renew(self, place: str, key: str, seen: object, new: object) -> bool:
        """Give an intent a new lease."""
        entry = self.ledgers[place].find(key)
        if not entry or entry.revision != seen or entry.state != INTENT:
            return False
        if not self.usable(place) or (self.guards("renew lease") and not self.running(entry)):
            return False
        revision = new if self.guards("renew revision") else seen
        leased = self._leased(entry._replace(revision=revision))
        self.ledgers[place] = self.ledgers[place].having(leased)
        return True

    def _leased(self, entry: Entry) -> Entry:
        return entry._replace(lease_from=self.now + self.offset, renewed=self.now)

    def finish(
        self, place: str, after: Entry, seen: object, asset: object, before: Entry | None = None
    ) -> None:
        """Write how an attempt ended; name the asset if no ledger is going to have it.

        A refused attempt leaves the entry as it was `before`; an intent that was in doubt stays in doubt.
        """
        ledger = self.ledgers[place]
        found = ledger.find(after.key)
        if found and found.revision == seen:
            left: Entry | None = after
            if after.state == REFUSED:
                state = before and (UNKNOWN if before.state == INTENT else before.state)
                left = before and before._replace(state=str(state), revision=after.revision)
            ledger = ledger.having(left) if left else ledger.without(after.key)
            self.ledgers[place] = ledger.recording(after.key, after.state)
        elif after.state != REFUSED and self.guards("late insert"):
            if ledger.mark != IN_USE and self.guards("late usable"):
                self.told |= {asset}
                return
            self.told |= {asset} if found else frozenset()
            ledger = ledger if found else ledger.having(after)
            self.ledgers[place] = ledger.recording(after.key, after.state)

    def edit(
        self, place: str, key: str, seen: object, after: Entry | None, is_named: bool = True
    ) -> bool:
        """Settle, correct, adopt or forget an entry."""
        ledger = self.ledgers[place]
        found = ledger.find(key)
        if not self.usable(place) or (is_named and (found and found.revision) != seen):
            return False
        is_free = self.session_ended and not self.guards("no session")
        if found and self.running(found) and self.guards("edit lease") and not is_free:
            return False
        ledger = ledger.having(after) if after else ledger.without(key)
        self.ledgers[place] = ledger.recording(key, after.state if after else ABSENT)
        return True

    def violations(self) -> Iterator[str]:
        """Yield what must never hold."""
        keys = list(self.created.values())
        yield from (f"{key} exists twice" for key in sorted(set(keys)) if keys.count(key) > 1)
        yield from (f"the approval of {key} was used again" for key in self.reused)
        used = [ledger.ledger_id for ledger in self.ledgers.values() if ledger.mark == IN_USE]
        if len(used) != len(set(used)):
            yield "two ledgers of one id are in use"
        for ledger in self.ledgers.values():
            for entry in ledger.entries:
                yield from self._violations_of_intent(ledger, entry)
            target = self.ledgers.get(ledger.to)
            if ledger.mark == MOVED and target and target.mark == IN_USE:
                yield from _violations_of_move(ledger, target)

    def _violations_of_intent(self, ledger: Ledger, entry: Entry) -> Iterator[str]:
        if entry.state == INTENT and entry.url != ledger.url:
            yield f"a request for {entry.key} belongs to another URL"
        moments = range(entry.renewed, self.now + 1)
        if sum(self.running(entry, moment) for moment in moments) > 2 * LEASE:
            yield f"the lease of {entry.key} does not end"

    def violations_at_end(self) -> Iterator[str]:
        """Yield what must not hold when nobody acts any more."""
        used = [ledger for ledger in self.ledgers.values() if self._counts(ledger)]
        for asset, key in self.created.items():
            if asset not in self.told and not any(ledger.find(key) for ledger in used):
                yield f"{key} exists and nobody knows"
        for ledger in used:
            for entry in ledger.entries:
                body = self.bodies.get(entry.key, entry.body)
                if entry.state == DONE and entry.body != body:
                    yield f"{entry.key} is {body}, and recorded as {entry.body}"

    def _counts(self, ledger: Ledger) -> bool:
        """Whether a ledger is in use, or the next move fills its target from it."""
        target = self.ledgers.get(ledger.to)
        return ledger.mark != MOVED or not target or target.mark == FILLING


def _violations_of_move(source: Ledger, target: Ledger) -> Iterator[str]:
    if not set(source.history) <= set(target.history):
        yield "an outcome was written after the move"
    recorded = {row.key for row in target.history[len(source.history) :]}
    for entry in source.entries:
        if not target.find(entry.key) and entry.key not in recorded:
            yield f"{entry.key} was lost by the move"


class State(NamedTuple):
    """Where an actor is: its next step, and what it knows."""

    step: str
    revision: object = None
    before: Entry | None = None  # the entry that was read
    approved: frozenset[int] = frozenset()  # the rows of the history that the approval knows
    last: int = 0  # the number that the approval names
    since: int = 0
    tries: int = 0
    waits: int = 1
    drawn: int = 0
    outcome: str = ""
    is_alone: bool = False  # its controller is gone, and the module goes on
    slept: int = 0
