"""The steps of the ledger (docs/architecture.md), each at a time that the test sets, on both databases."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing

import pytest
from ansible_collections.infrastructure.services.plugins.module_utils._errors import LedgerError
from ansible_collections.infrastructure.services.plugins.plugin_utils._ledger.entries import (
    NO_LIMIT,
    Change,
    Entry,
    HistoryRow,
    Key,
    Write,
    is_running,
    stamped,
)
from ansible_collections.infrastructure.services.plugins.plugin_utils._ledger.ledger import Ledger
from ansible_collections.infrastructure.services.plugins.plugin_utils._ledger.location import (
    open_database,
)
from ansible_collections.infrastructure.services.plugins.plugin_utils._ledger.moving import (
    move_ledger,
    set_base_url,
)
from ansible_collections.infrastructure.services.plugins.plugin_utils._ledger.seen import Seen
from support.ledgers import HOME, SERVICE, create, entry_of

KEY = Key("compute_virtual_machine", "web01")
INTENT = Entry("intent", {"name": "web01"}, {})
BEGUN = HistoryRow("absent", "intent")
EDIT = HistoryRow("done", "absent")
LEASE = 180
At = Callable[..., Ledger]


@pytest.fixture
def at(location: str) -> Iterator[At]:
    """Open the ledger at a time, in seconds."""
    create(location)
    ledgers = []

    def open_at(now: int, base_url: str = SERVICE, **options) -> Ledger:
        database = open_database(location)
        database.now = str(now)
        ledgers.append(Ledger(database, Seen(HOME, "run-of-the-tests"), base_url, **options))
        return ledgers[-1]

    yield open_at
    for ledger in ledgers:
        ledger.close()


def begun(
    ledger: Ledger, before: Entry | None = None, approved_row: int = NO_LIMIT
) -> Entry | None:
    """Begin a request; return the intent, None if another one was faster."""
    lease = {"lease_seconds": LEASE, "approved_row": approved_row}
    change = stamped(Change(Write.BEGIN, KEY, before, INTENT, BEGUN, **lease))
    return change.after if ledger.write([change]) == [True] else None


def finished(
    ledger: Ledger, intent: Entry, outcome: str = "accepted", is_gone: bool = False
) -> bool:
    """Record an outcome; `is_gone`: where the entry of its intent is gone."""
    after = None
    if outcome in ("accepted", "unknown"):
        after = intent._replace(state="done" if outcome == "accepted" else "unknown")
    row = HistoryRow("absent", after.state if after else "absent", outcome=outcome)
    before = None if is_gone else intent
    return ledger.write([stamped(Change(Write.OUTCOME, KEY, before, after, row))]) == [True]


def removed(ledger: Ledger, seen: Entry | None = None) -> bool:
    """Remove the entry as a person does who has looked at it."""
    change = stamped(Change(Write.EDIT, KEY, seen or entry_of(ledger, KEY), None, EDIT))
    return ledger.write([change]) == [True]


def test_only_one_task_begins(at):
    first, second = at(100), at(100)
    assert begun(first)
    assert begun(second) is None


def test_a_later_task_begins_an_update_by_the_revision_that_it_read(at):
    first, second = at(100), at(100)
    finished(first, begun(first))
    read = entry_of(first, KEY)
    finished(second, begun(second, read))
    assert begun(first, read) is None
    assert not removed(first, read)
    assert removed(first, entry_of(first, KEY))


@pytest.mark.parametrize(
    ("now", "runs"),
    [
        pytest.param(100, True, id="at once"),
        pytest.param(100 + LEASE - 1, True, id="its last second"),
        pytest.param(100 + LEASE, False, id="after it"),
        pytest.param(97, True, id="the clock was set back a little"),
        pytest.param(100 - 10 * LEASE, True, id="the clock was set back by more than the lease"),
    ],
)
def test_nobody_else_works_on_an_entry_while_its_lease_runs(at, now, runs):
    intent = begun(at(100))
    later = at(now)
    assert is_running(entry_of(later, KEY)) == runs
    assert (begun(later, intent) is None) == runs
    if runs:
        assert not removed(later)


def test_an_outcome_is_recorded_after_the_lease_has_ended(at):
    intent = begun(at(100))
    later = at(1000)
    assert finished(later, intent)
    assert entry_of(later, KEY).state == "done"


@pytest.mark.parametrize("outcome", ["accepted", "unknown"])
def test_an_outcome_without_an_entry_is_recorded_anew(at, outcome):
    intent = begun(at(100))
    later = at(1000)
    removed(later)
    assert not finished(later, intent, outcome)
    assert finished(later, intent, outcome, is_gone=True)
    assert entry_of(later, KEY).state == ("done" if outcome == "accepted" else "unknown")


@pytest.mark.parametrize("outcome", ["accepted", "unknown", "rejected", "not_sent"])
def test_an_outcome_never_replaces_the_entry_of_another_task(at, outcome):
    intent = begun(at(100))
    later = at(1000)
    other = begun(later, intent)
    assert not finished(later, intent, outcome)
    if outcome in ("accepted", "unknown"):
        assert not finished(later, intent, outcome, is_gone=True)
    assert entry_of(later, KEY).revision == other.revision
    rows = later.history([KEY])[KEY]
    assert {row.outcome for row in rows} == {"", outcome}


@pytest.mark.parametrize(
    ("rows", "is_refused"),
    [
        pytest.param([("rejected", "absent")], False, id="rejected"),
        pytest.param([("not_sent", "absent")], False, id="not sent"),
        pytest.param([("unknown", "unknown"), ("", "absent")], False, id="settled as absent"),
        pytest.param([("rejected", "done")], False, id="an update was rejected"),
        pytest.param([("accepted", "done"), ("", "absent")], True, id="created and forgotten"),
        pytest.param([("accepted", "accepted"), ("", "absent")], True, id="accepted and forgotten"),
        pytest.param([("", "done"), ("", "absent")], True, id="adopted and forgotten"),
    ],
)
def test_an_approval_is_good_for_one_effect_on_each_asset(at, rows, is_refused):
    ledger = at(100)
    (serial, found) = _plan(ledger)
    other = Key(KEY.resource, "web02")
    for outcome, to_state in rows:
        for key in (KEY, other):
            row = HistoryRow("absent", to_state, outcome=outcome)
            gone = Entry("done", {}, {})
            ledger.write([stamped(Change(Write.OUTCOME, key, gone, None, row))])
    assert serial.number == 0
    assert (begun(ledger, None, found.get(KEY, 0)) is None) == is_refused


def _plan(ledger: Ledger):
    found = ledger.find([KEY], with_rows=True)
    return found.serial, found.last_rows


def test_the_url_of_the_service_changes_while_no_request_may_be_in_flight(at):
    ledger = at(100)
    intent = begun(ledger)
    with pytest.raises(LedgerError, match="requests that may be in flight: web01"):
        set_base_url(at(100, ""), "https://new.example.com", check_mode=False)
    late = at(100, "")
    late.entries = lambda *_conditions: []  # the request began after the look
    with pytest.raises(LedgerError, match="another task began a request or a move"):
        set_base_url(late, "https://new.example.com", check_mode=False)
    finished(ledger, intent)
    assert set_base_url(at(100, ""), "https://new.example.com", check_mode=False)["changed"]
    assert begun(ledger, entry_of(at(100, ""), KEY)) is None  # it was opened for the old URL
    with pytest.raises(LedgerError, match=r"belongs to the service https://new\.example\.com"):
        ledger.refresh()
    assert entry_of(at(100, "https://new.example.com"), KEY).state == "done"


@pytest.fixture
def target(tmp_path) -> str:
    """A place for a ledger."""
    return str(tmp_path / "target.db")


def moved(at: At, target: str, source: Ledger | None = None):
    """Move the ledger to the target."""
    with closing(open_database(target)) as place:
        return move_ledger(
            source or at(100, "", is_moving=True), place, Seen(HOME, "run-of-the-tests"), False
        )


def test_a_request_that_began_after_the_look_keeps_the_ledger_open(at, target):
    begun(at(100))
    source = at(100, "", is_moving=True)
    source.entries = lambda *_conditions: []
    with pytest.raises(LedgerError, match="another task began a request or a move"):
        moved(at, target, source)
    assert entry_of(at(100), KEY)


def test_a_task_that_looked_before_the_move_begins_nothing(at, target):
    ledger = at(100)
    finished(ledger, begun(ledger))
    removed(ledger)
    moved(at, target)
    assert begun(ledger) is None
    for look in (ledger.refresh, lambda: at(100)):
        with pytest.raises(LedgerError, match=r"was moved to .*target\.db, which is the ledger"):
            look()


def test_an_outcome_that_comes_after_a_move_is_not_written_to_the_closed_ledger(at, target):
    intent = begun(at(100))
    late = at(1000)
    removed(late)
    moved(at, target)
    assert not finished(late, intent)
    assert not finished(late, intent, is_gone=True)
