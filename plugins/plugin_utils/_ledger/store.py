# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Opens and writes a ledger, in the same way on SQLite and on PostgreSQL.

A single statement decides which task may send: an insert, or an update of the revision that was
read, reports whether it changed a row. Locks only make others wait. No transaction is open while a
request is in flight.
"""

from __future__ import annotations

import hashlib
import json
import os
import time
from itertools import chain
from typing import Iterable

from . import tables as sql
from .database import Database, Statement
from .entries import (
    INTENT,
    Change,
    Ended,
    Entry,
    Key,
    Kind,
    LedgerError,
    LedgerLost,
    Mark,
    Unanswered,
    Use,
    Waiting,
    stamped,
)
from .reader import LedgerReader

# Seconds of a wait for another task before a line on the screen says so.
SILENT = 1.0
_LOOK = 0.05  # seconds between two looks at a lock
# Seconds for which an outcome is tried again while the ledger is lost.
_LOSS_GRACE = 10.0
_PAUSE = 0.2  # seconds between two such attempts


class Ledger(LedgerReader):
    """The ledger of one task or list. Every method raises LedgerError."""

    def __init__(self, database: Database, read_only: bool = False, moving: bool = False) -> None:
        """Check the tables; create them if there are none, unless `read_only` or `moving`.

        `moving`: accept a ledger in any state.
        """
        super().__init__(database)
        # The file was last used elsewhere, or is older than it was here.
        self.place_warning = ""
        try:
            mark = self._open(read_only, moving)
        except LedgerError:
            self.close()
            raise
        self.ledger_id = mark.ledger_id  # '' if there are no tables

    def _open(self, read_only: bool, moving: bool) -> Mark:
        self.version, mark, last_use = self._state()
        self.is_new = not self.version
        if self.is_new and read_only:
            return mark
        if not moving:
            self._require_in_use(mark)
        self.database.check()
        if not self.is_new:
            self._compare_use(last_use, read_only or moving)
        if moving:
            return mark
        if self.is_new:
            mark = Mark(os.urandom(16).hex(), sql.IN_USE)
            is_first = self.create(mark)
            return mark if is_first else self.mark()
        if not read_only:
            self.database.require_privileges()
        return mark

    def _compare_use(self, last: Use, read_only: bool) -> None:
        """Warn if the file was last used somewhere else, and record this use unless `read_only`."""
        now = self.database.use()
        warnings = []
        if last != now:
            warnings.append(
                f"{self.where} was last used as {last.path} on {last.host}; if that one is still"
                " used, machines will be created twice"
            )
        if self.database.is_older():
            warnings.append(
                f"{self.where} is older than when it was last used here, as a restored backup is;"
                " machines that were created since then will be created twice"
            )
        if not warnings and self.database.lacks_note():
            warnings.append(
                f"{self.where} has no lock file that tells how it was last used here; if it is a"
                " restored backup, machines that were created since then will be created twice"
            )
        self.place_warning = ". ".join(warnings)
        if not warnings:
            return
        if not read_only:
            self.database.write([(sql.SET_USE, now)], Kind.END)

    def create(
        self, mark: Mark, before: Iterable[Statement] = (), after: Iterable[Statement] = ()
    ) -> bool:
        """Create the tables with this mark in one transaction; return whether it took effect.

        `before`, `after`: further statements of the transaction. It takes no effect if one of the
        statements changes no row.
        """
        number = self.database.number
        tables: list[Statement] = [(table.format(number=number), ()) for table in sql.CREATE]
        row = (sql.INSERT_MARK, (sql.SCHEMA_VERSION, *mark, *self.database.use()))
        is_done = self.database.create(chain(before, tables, [row], after))
        self.version = sql.SCHEMA_VERSION
        return is_done

    def begin(self, change: Change) -> tuple[bool, Entry | None]:
        """Lock the key and write the intent; return whether it was written, and the entry now.

        Other tasks wait until the key is released.
        """
        self.lock(change.key, wait=True)
        (written,) = self.write([change], Kind.BEGIN)
        return (True, written.after) if written else (False, self.get(change.key))

    def finish(self, change: Change) -> bool:
        """Write how an attempt ended; return False if another task changed the entry."""
        return self.write([change], Kind.END) != [None]

    def write(self, changes: list[Change], kind: Kind) -> list[Change | None]:
        """Write changes in one transaction; on an error none of them is written.

        Return each change as it was written, None where the entry was not as it was read. Its
        history is written all the same, except for Kind.EDIT, which then writes nothing.
        """
        changes = [stamped(change) for change in changes]
        statements = [_entry_statement(change) for change in changes]
        statements += [_history_statement(each, each.ended) for each in changes if each.ended]
        with self.noticing_move():
            try:
                counts = self.database.write(statements, kind)
                ours = [count == 1 for count in counts[: len(changes)]]
            except Unanswered:
                if self.file:  # SQLite has rolled it back
                    raise
                ours = self._write_again(changes, statements, kind)
        if kind is not Kind.END and not all(ours):
            self.require_in_use()
            for base_url in {change.key.base_url for change in changes}:
                self.require_same_url(base_url)
        return [change if is_ours else None for change, is_ours in zip(changes, ours)]

    def _write_again(
        self, changes: list[Change], statements: list[Statement], kind: Kind
    ) -> list[bool]:
        """Write changes that may be committed already: outcomes for a while, others once."""
        until = time.monotonic() + (_LOSS_GRACE if kind is Kind.END else 0)
        while True:
            try:
                counts = [0] * len(changes)
                if not any(self._is_committed(change) for change in changes):
                    counts = self.database.write(statements, kind)
                # Asked only now: the server may have been committing the first write when the
                # second one began.
                return [
                    count == 1 or self._is_in_force(change)
                    for change, count in zip(changes, counts)
                ]
            except LedgerLost:
                if time.monotonic() > until:
                    raise
                time.sleep(_PAUSE)

    def _is_committed(self, change: Change) -> bool:
        """Return whether the transaction of a change was committed."""
        if not change.ended:
            return self._is_in_force(change)
        return bool(self._read(sql.IS_RECORDED, (*change.key, change.revision)))

    def _is_in_force(self, change: Change) -> bool:
        """Return whether the entry is as the change leaves it."""
        found = self.get(change.key)
        return found.revision == change.revision if found else change.after is None

    def wait_like(self, waiting: Waiting) -> None:
        """Wait for other tasks in this way from now on."""
        self.database.waiting = waiting

    def lock(self, key: Key, wait: bool) -> bool:
        """Lock the key, after a wait if need be; without `wait` return False instead."""
        number = lock_number(key)
        until = time.monotonic() + SILENT
        while not self.database.lock(number, wait=False):
            if not wait:
                return False
            if time.monotonic() >= until:
                self.database.waiting.show([key], self.get(key))
                return self.database.lock(number, wait=True)
            with self.database.waiting.interruptible():
                time.sleep(_LOOK)
        return True

    def release(self, key: Key) -> None:
        """Release the lock of the key, if it is held."""
        self.database.unlock(lock_number(key))

    def close(self) -> None:
        """Close the connection and release all locks."""
        self.database.close()


def lock_number(key: Key) -> int:
    """Return the key as a number from 1 to 2**62."""
    digest = hashlib.sha256(json.dumps(key).encode("utf-8")).digest()
    return 1 + (int.from_bytes(digest[:8], "big") >> 2)


def _entry_statement(change: Change) -> Statement:
    """Return the statement that writes an entry if it is still as it was read."""
    key = change.key
    before = change.before
    after = change.after
    read = before.revision if before else 0
    if after is None:
        return sql.DELETE, (*key, read)
    row = (after.state, json.dumps(after.sent), json.dumps(after.asset), *after[3:])
    if before is None:
        return sql.INSERT, (*key, *row, key.base_url)
    update = sql.BEGIN if after.state == INTENT else sql.UPDATE
    return update, (*row, *key, read)


def _history_statement(change: Change, ended: Ended) -> Statement:
    """Return the statement that adds a history row."""
    message = ended.message.replace("\0", " ")  # which PostgreSQL cannot store
    return sql.RECORD, (*change.key, *ended._replace(message=message), change.revision)
