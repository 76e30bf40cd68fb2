"""A model of the ledger: its statements, the notes of controllers, the service, and the clocks.

Each statement is a method of World and changes the world at once, like a statement or transaction of the
database. Each guard has a name in GUARDS, and an exploration can leave guards out: then it has to find a
violation. `model` explores it; `model_actors` and `model_movers` say who takes which steps, `model_casts` who acts
together, `model_violations` what must not hold.

A request is settled, by arriving or by getting lost, within TIMEOUT of its first byte and before its sender hears
about it. What a service does later than that, no ledger can prevent.
"""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass, field
from operator import attrgetter
from typing import Any, NamedTuple

TIMEOUT, LEASE = 1, 2  # ticks: a lease is longer than the timeout by the margin
IN_USE, MOVED, FILLED, FILLING = "in use", "moved", "filled", "filling"
INTENT, UNKNOWN, DONE, ABSENT = "intent", "unknown", "done", "absent"
REFUSED = "refused"  # the outcome of a request that the service provably did not process

GUARDS = {
    "insert": "the first begin inserts, and reports whether it did",
    "revision": "a later write names the revision that it read",
    "own revision": "a revision is drawn by its writer and never used again",
    "listed": "an entry whose lease runs is not listed as in doubt",
    "edit lease": "an edit needs a lease that has ended",
    "future": "a lease that begins in the future has not ended",
    "first sight": "such a lease begins when a task that sends or edits first sees it",
    "look": "the owner looks at its clock at the first byte",
    "before": "the owner measures from before it hands the statement over",
    "first": "the owner measures from before the first time that it hands the statement over",
    "clock": "the clock of the owner goes on while the machine sleeps",
    "begin again": "an attempt that is repeated ends its intent, and the next one begins again",
    "late insert": "an accepted or unknown outcome that finds no entry inserts one",
    "outcome usable": "an outcome names the mark of the ledger",
    "usable": "a begin names the mark of the ledger",
    "url": "a begin names the URL of the ledger",
    "url intent": "a new URL is refused while there is an open intent",
    "close intent": "a ledger with an open intent is not closed",
    "close first": "a move closes the source before it fills the target",
    "portion": "a portion is written only while the target is filling",
    "reservation": "a move opens only the target with its reservation",
    "mark first": "a source is marked as filled before its target is opened",
    "fill once": "a source that is filled fills nothing again",
    "close as seen": "a source is closed as it was when the target was reserved",
    "approval": "the begin refuses an asset that had an effect since the plan",
    "per asset": "an approval has a number for each asset",
    "snapshot": "the guard of the approval sees what was committed before the insert",
    "plan row": "a ledger that lacks the last row of the plan is refused",
    "named": "an edit to absent names the revision or the id that the person looked at",
    "order": "the statements of a commit are in the order of their keys",
    "note first": "a controller notes its beginning before the request",
    "note seen": "a controller notes the last row that it saw when it planned",
    "note kept": "a ledger that lacks a noted row leaves the notes as they are",
    "note of each run": "a controller has a note for each run",
    "note by id": "a ledger with a new URL has the notes of before",
    "look again": "after its own note the owner looks whether the ledger has all noted rows",
    "end": "a list looks at its end, and writes a lost outcome again",
    "lost": "what is known of a beginning is written only where it was lost or is in doubt",
    "own rows": "it is written also where the history has the beginning",
    "later": "it is left where the asset has a later row",
    "edited later": "an edit counts only if it is later than the row before the beginning",
    "before it": "the row of the asset before a beginning is read in its transaction",
    "written back": "a beginning that was lost is written back by its revision",
}


class Entry(NamedTuple):
    """An entry; `began`: the revision of the beginning that it is of."""

    key: str
    state: str
    revision: object
    began: object = None
    url: str = "url"
    body: str = ""
    lease_from: int = 0

    @property
    def is_in_doubt(self) -> bool:
        """Whether the outcome is not known."""
        return self.state in {INTENT, UNKNOWN}


class Row(NamedTuple):
    """A row of the history: a beginning, the outcome of one, or an edit (which has no `began`)."""

    number: int
    key: str
    state: str
    revision: object
    began: object = None

    @property
    def is_outcome(self) -> bool:
        """Whether the row is neither a beginning nor an edit."""
        return self.began not in {None, self.revision}


class Known(NamedTuple):
    """What a run knows of an asset, in memory and in its report; `after`: its row before the run."""

    key: str
    state: str
    body: str
    began: object
    after: object


class Ledger(NamedTuple):
    """A ledger, with the last number that a row of its history has drawn."""

    ledger_id: str
    mark: str = IN_USE
    to: str = ""
    reservation: object = None
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

    def recording(
        self, key: str, state: str, revision: object, began: object = None, number: int = 0
    ) -> Ledger:
        """Return the ledger with a row of history, by default with the next number."""
        drawn = self.drawn if number else self.drawn + 1
        row = Row(number or drawn, key, state, revision, began)
        return self._replace(history=(*self.history, row), drawn=drawn)

    def has(self, revision: object) -> bool:
        """Whether a row of the history is there."""
        return any(row.revision == revision for row in self.history)

    def last_cause(self, key: str = "") -> Row | None:
        """Return the last beginning or edit, of a key or of all; not a beginning that was refused."""
        refused = {row.began for row in self.history if row.state == REFUSED}
        causes = [row for row in self.history if key in {"", row.key} and not row.is_outcome]
        causes = [row for row in causes if row.revision not in refused]
        return max(causes, key=attrgetter("number"), default=None)

    def last(self, key: str = "") -> int:
        """Return the last number of the history that is visible, of a key or of all."""
        return max((row.number for row in self.history if key in {"", row.key}), default=0)


class Request(NamedTuple):
    """A request that is not settled."""

    key: str
    body: str  # empty: creates
    until: int


PARTS = "ledgers", "requests", "created", "bodies", "notes", "reports", "first_seen"


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
    notes: dict[tuple[object, object], object] = field(default_factory=dict)
    reports: dict[int, Known] = field(default_factory=dict)  # by run
    first_seen: dict[object, int] = field(default_factory=dict)  # leases, by revision: true time
    backup: Ledger | None = None
    told: frozenset[object] = frozenset()  # ids that a result named because no ledger has them
    taken_back: frozenset[int] = frozenset()  # runs whose ledger went back after they had ended
    wrong: frozenset[str] = frozenset()  # what an actor saw
    locks: tuple[tuple[str, int], ...] = ()
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
        world = copy(self)
        for name in PARTS:
            setattr(world, name, dict(getattr(self, name)))
        world.choices, world.asked = [], []
        return world

    def key(self) -> tuple[Any, ...]:
        """Return what distinguishes this world from others."""
        parts = (frozenset(getattr(self, name).items()) for name in PARTS)
        others = self.backup, self.told, self.taken_back, self.wrong, self.locks
        return (self.now, self.offset, *parts, *others)

    # The predicates of the statements

    def usable(self, place: str, url: str = "") -> bool:
        """Whether the ledger is in use and has this URL, if one is given."""
        ledger = self.ledgers.get(place)
        return bool(ledger and ledger.mark == IN_USE and url in {"", ledger.url})

    def running(self, entry: Entry) -> bool:
        """Whether the lease of an entry runs, by the clock of the database."""
        age = self.now + self.offset - entry.lease_from
        is_running = age < LEASE and (age >= 0 or self.guards("future"))
        return entry.state == INTENT and is_running

    def has_open_intent(self, ledger: Ledger) -> bool:
        """Whether there is an intent of a creation, or of an update whose lease runs."""
        intents = (entry for entry in ledger.entries if entry.state == INTENT)
        return any(not entry.body or self.running(entry) for entry in intents)

    def noted(self, controller: str, place: str) -> dict[object, object]:
        """Return the rows that a controller has noted of a ledger, by run."""
        whose = self.note_key(controller, place, None)[0]
        return {run: row for (key, run), row in self.notes.items() if key == whose}

    def note_key(self, controller: str, place: str, run: object) -> tuple[object, object]:
        """Return under what a controller notes a row."""
        url = "" if self.guards("note by id") else self.ledgers[place].url
        return (controller, url), run

    def lacks_noted(self, controller: str, place: str) -> bool:
        """Whether the ledger lacks a row that the controller has noted."""
        noted = self.noted(controller, place).values()
        return not all(self.ledgers[place].has(row) for row in noted)

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
            ledger = ledger.having(entry._replace(lease_from=self.now + self.offset))
            ledger = ledger.recording(entry.key, INTENT, entry.revision, entry.revision)
            self.ledgers[place] = ledger
        return is_approved

    def see(self, place: str, entry: Entry) -> None:
        """See a lease that runs, as a task that sends or edits; one in the future begins now."""
        self.first_seen.setdefault(entry.revision, self.now)
        now = self.now + self.offset
        if entry.lease_from > now and self.guards("first sight"):
            self.ledgers[place] = self.ledgers[place].having(entry._replace(lease_from=now))

    def finish(self, place: str, after: Entry, asset: object, before: Entry | None = None) -> None:
        """Write how an attempt ended; name the asset if no ledger is going to have it.

        A refused attempt leaves the entry as it was `before`; an intent that was in doubt stays in doubt.
        """
        ledger = self.ledgers[place]
        if ledger.mark != IN_USE and self.guards("outcome usable"):
            self.told |= {asset}
            return
        found = ledger.find(after.key)
        if found and found.revision == after.began:
            left: Entry | None = after
            if after.state == REFUSED:
                state = before and (UNKNOWN if before.state == INTENT else before.state)
                left = before and before._replace(state=str(state), revision=after.revision)
            ledger = ledger.having(left) if left else ledger.without(after.key)
        elif after.state == REFUSED or not self.guards("late insert"):
            return
        elif found:
            self.told |= {asset}
        else:
            ledger = ledger.having(after)
        self.ledgers[place] = ledger.recording(after.key, after.state, after.revision, after.began)

    def edit(self, place: str, seen: object, after: Entry, is_named: bool = True) -> bool:
        """Settle, correct, adopt or forget (`absent`) an entry."""
        ledger = self.ledgers[place]
        found = ledger.find(after.key)
        if not self.usable(place) or (is_named and (found and found.revision) != seen):
            return False
        if found and self.running(found):
            self.see(place, found)
            if self.guards("edit lease"):
                return False
        is_absent = after.state == ABSENT
        ledger = ledger.without(after.key) if is_absent else ledger.having(after)
        self.ledgers[place] = ledger.recording(after.key, after.state, after.revision)
        return True

    def write_known(self, place: str, known: Known, revision: object) -> bool:
        """Write what a run knows of an asset, at its end or from its report, where that was lost.

        Return false if it was lost and could not be written.
        """
        ledger = self.ledgers[place]
        if not self.usable(place):
            return False
        entry = ledger.find(known.key)
        is_in_doubt = bool(entry and entry.is_in_doubt and entry.began == known.began)
        is_lost = not ledger.has(known.began)
        last = ledger.last_cause(known.key)
        acts = is_in_doubt and self.guards("own rows")
        if is_lost:
            is_as_before = last is None or last.revision == known.after
            acts = is_as_before or not self.guards("later")
        if acts or not self.guards("lost"):
            after = Entry(known.key, known.state, revision, known.began, body=known.body)
            is_creation = is_in_doubt and not known.body  # a refused update leaves what was before
            if known.state != REFUSED:
                ledger = ledger.having(after)
            elif is_creation:
                ledger = ledger.without(known.key)
        elif not is_lost or not self._was_edited_since(ledger, last, known):
            return not is_lost
        row = known.began if is_lost and self.guards("written back") else revision
        self.ledgers[place] = ledger.recording(known.key, known.state, row, known.began)
        return True

    def _was_edited_since(self, ledger: Ledger, last: Row | None, known: Known) -> bool:
        before = [row.number for row in ledger.history if row.revision == known.after]
        is_later = known.after is None or (before and last and last.number > before[0])
        is_later = is_later or (bool(before) and not self.guards("edited later"))
        return bool(last and last.began is None and is_later)
