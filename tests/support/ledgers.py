"""Creates and opens a ledger, and writes and reads it as another task does."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from ansible_collections.infrastructure.services.plugins.plugin_utils._ledger.entries import (
    Change,
    Entry,
    Key,
    Write,
    stamped,
)
from ansible_collections.infrastructure.services.plugins.plugin_utils._ledger.ledger import (
    Header,
    Ledger,
    create_ledger,
)
from ansible_collections.infrastructure.services.plugins.plugin_utils._ledger.location import (
    open_database,
)
from ansible_collections.infrastructure.services.plugins.plugin_utils._ledger.seen import Seen
from ansible_collections.infrastructure.services.plugins.plugin_utils._ledger.sql import IN_USE

SERVICE = "https://service.example"  # of a ledger that no task uses
_HOME = TemporaryDirectory(prefix="home-")
HOME = _HOME.name  # of the notes of this process


def create(location: str, base_url: str = SERVICE) -> str:
    """Create an empty ledger for a service, unless there is one; return its location."""
    with closing(open_database(location)) as database:
        if not database.has_tables():
            create_ledger(database, Header(os.urandom(16).hex(), base_url, IN_USE))
    return location


def open_at(location: str, base_url: str = "", home: str | Path = HOME) -> Ledger:
    """Open a ledger, which is created if there is none; `home`: has the notes of the controller."""
    create(location, base_url or SERVICE)
    return Ledger(open_database(location), Seen(str(home), "run-of-the-tests"), base_url)


@contextmanager
def opened(location: str, base_url: str = "") -> Iterator[Ledger]:
    """Open a ledger, which is created if there is none, and close it."""
    with closing(open_at(location, base_url)) as ledger:
        yield ledger


def entry_of(ledger: Ledger, key: Key) -> Entry | None:
    """Return the entry of a key, None if there is none."""
    return ledger.find([key]).entries.get(key)


def put(ledger: Ledger, key: Key, entry: Entry | None, lease_seconds: int = 0) -> Entry | None:
    """Make this the entry of a key, whatever was there before; return it as it was written."""
    kind = Write.BEGIN if entry else Write.EDIT
    before = entry_of(ledger, key)
    change = stamped(Change(kind, key, before, entry, lease_seconds=lease_seconds))
    assert ledger.write([change]) == [True]
    return change.after


def finish(ledger: Ledger, key: Key, intent: Entry, after: Entry | None) -> None:
    """End an attempt that `put` began with a lease."""
    assert ledger.write([stamped(Change(Write.OUTCOME, key, intent, after))]) == [True]


def states(location: str) -> dict[str, str]:
    """Return the state of each entry of a ledger, by name."""
    with opened(location) as ledger:
        return {key.name: entry.state for key, entry in ledger.entries("", ())}
