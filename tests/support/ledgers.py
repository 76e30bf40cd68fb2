"""Opens a ledger, and writes and reads it as another task does."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager

from ansible_collections.infrastructure.services.plugins.plugin_utils._ledger.entries import (
    Change,
    Entry,
    Key,
    Write,
    stamped,
)
from ansible_collections.infrastructure.services.plugins.plugin_utils._ledger.ledger import Ledger
from ansible_collections.infrastructure.services.plugins.plugin_utils._ledger.location import (
    open_database,
)


@contextmanager
def opened(location: str, base_url: str = "", read_only: bool = False) -> Iterator[Ledger]:
    """Open a ledger; `base_url`: of the service that it belongs to once it is written."""
    with closing(Ledger(open_database(location), base_url, read_only)) as ledger:
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
    with opened(location, read_only=True) as ledger:
        return {key.name: entry.state for key, entry in ledger.entries("", ())}
