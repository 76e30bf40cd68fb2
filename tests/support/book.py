"""A ledger in a dict, in virtual time, that others write too, and that may be away or refuse."""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from dataclasses import dataclass, field
from types import SimpleNamespace

from ansible_collections.infrastructure.services.plugins.module_utils._errors import (
    LedgerAway,
    LedgerError,
)
from ansible_collections.infrastructure.services.plugins.plugin_utils._ledger.entries import (
    DONE,
    INTENT,
    Change,
    Entry,
    HistoryRow,
    Key,
    Serial,
    Write,
    stamped,
)
from ansible_collections.infrastructure.services.plugins.plugin_utils._ledger.ledger import (
    Snapshot,
)

from .virtual_time import VirtualTime


@dataclass
class Book:
    """`away`: from when to when it does not answer; `blocks`: seconds until a write notices that."""

    time: VirtualTime
    chance: random.Random
    away: tuple[float, float] = (math.inf, math.inf)
    blocks: float = 0.0
    loses: float = 0.0  # the part of such writes that takes effect
    refuses: str = ""  # a kind of write
    goes_back: float = math.inf  # when
    commit: float = 0.005  # seconds
    entries: dict[Key, Entry] = field(default_factory=dict)
    leases: dict[Key, float] = field(default_factory=dict)  # until when
    rows: dict[int, HistoryRow] = field(default_factory=dict)  # by revision
    writes: int = 0
    failed_at: float = 0.0  # the last write
    _tried: set[int] = field(default_factory=set)  # the beginnings of a write that failed
    sleep: Callable[[float], None] = bool
    shown = "/book"
    database = SimpleNamespace(tried_for=10.0, most_written=50)

    def find(self, keys, with_rows: bool = False) -> Snapshot:
        """Return the entries of these keys."""
        del with_rows
        self._wait()
        found = {key: self._entry(key) for key in keys if key in self.entries}
        return Snapshot(found, {}, Serial(), [])

    def _wait(self) -> None:
        """Look again while it is away, as Ledger does."""
        until = self.time.now + self.database.tried_for
        while self._is_away():
            if self.time.now > until:
                raise LedgerAway("it does not answer")
            self.sleep(self.blocks + 0.2)

    def _entry(self, key: Key) -> Entry:
        end = self.leases.get(key, 0.0)
        return self.entries[key]._replace(lease_until=math.ceil(end) if end > self.time.now else 0)

    def with_ids(self, resource: str, ids) -> dict[str, Key]:
        """Return no entry that has one of these ids."""
        return {}

    def start_leases(self) -> None:
        """No lease begins in the future."""

    @property
    def has_gone_back(self) -> bool:
        """Whether it lacks a row that it has had."""
        return self.time.now >= self.goes_back

    def gone_back(self) -> str:
        """Return why nothing may be sent."""
        return "it has gone back in time" if self.has_gone_back else ""

    def rows_of(self, key: Key) -> list[HistoryRow]:
        """Return no row."""
        self._answer(applies=lambda: None)
        return []

    def write(self, changes: list[Change]) -> list[bool]:
        """Write changes together, as Ledger does."""
        self.writes += 1
        assert len({change.key for change in changes}) == len(changes)
        assert len(changes) <= self.database.most_written
        if any(change.kind.name == self.refuses for change in changes):
            raise LedgerError("disk full")
        begun = {change.revision for change in changes if change.kind is Write.BEGIN}
        assert not self._tried or begun <= self._tried, "an attempt begins while it is away"
        self._tried = begun if self._is_away() else set()
        self.failed_at = self.time.now if self._is_away() else 0.0
        effects: list[bool] = []
        self._answer(applies=lambda: effects.extend(map(self._write, changes)))
        return effects

    def _answer(self, applies) -> None:
        """Apply what is asked for and let time pass, or be away."""
        if not self._is_away():
            applies()
            self.time.take(self.commit)
            return
        if self.chance.random() < self.loses:
            applies()
        self.time.take(self.blocks)
        raise LedgerAway("it does not answer")

    def _is_away(self) -> bool:
        begin, end = self.away
        return begin <= self.time.now < end

    def _write(self, change: Change) -> bool:
        key, before = change.key, change.before
        is_read = self._revision(key) == (before.revision if before else 0)
        is_free = change.kind is Write.OUTCOME or self.leases.get(key, 0.0) <= self.time.now
        has_effect = is_read and is_free
        if not has_effect and change.revision in self.rows:  # it is repeated
            return not change.after or self._revision(key) == change.revision
        if has_effect or change.kind is Write.OUTCOME:
            self.rows[change.revision] = change.row
        if has_effect:
            self.leases[key] = self.time.now + change.lease_seconds
            self.entries[key] = change.after
            if change.after is None:
                del self.entries[key]
        return has_effect

    def _revision(self, key: Key) -> int:
        return self.entries[key].revision if key in self.entries else 0

    def begin(self, key: Key, seconds: float) -> Entry | None:
        """Let another task begin an asset; return its intent."""
        intent = Entry(INTENT, {"name": key.name}, {}, by="ann@ctl")
        entry = self.entries.get(key)
        change = stamped(Change(Write.BEGIN, key, entry, intent, lease_seconds=int(seconds)))
        if (entry and entry.state == DONE) or not self._write(change):
            return None
        return change.after

    def lose(self, key: Key) -> None:
        """Lose an intent, as after a restored backup."""
        if key in self.entries and self.entries[key].state == INTENT:
            del self.entries[key], self.leases[key]

    def end(self, key: Key, intent: Entry) -> None:
        """Let it end as created."""
        after = intent._replace(state=DONE, asset={"id": "x", "name": key.name})
        self._write(stamped(Change(Write.OUTCOME, key, intent, after)))
