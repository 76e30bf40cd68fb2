"""What a report of a run gives back to a ledger that lacks it, on both databases."""

from __future__ import annotations

import pytest
from ansible_collections.infrastructure.services.plugins.module_utils._secrets import Secrets
from ansible_collections.infrastructure.services.plugins.plugin_utils._ledger.editing import (
    edits_of_report,
    write_edits,
)
from ansible_collections.infrastructure.services.plugins.plugin_utils._ledger.entries import (
    DONE,
    INTENT,
    UNKNOWN,
    Change,
    Entry,
    HistoryRow,
    Serial,
    Write,
    noted,
    stamped,
    state_of,
)
from ansible_collections.infrastructure.services.plugins.plugin_utils._ledger.seen import Seen
from ledger.entries import execute
from ledger.tasks import key
from support import CREATE, UPDATE
from support.ledgers import HOME, entry_of

ENDED = "2026-01-02T12:00:00Z"
KEY, ROLE = key(), key("role-0001", UPDATE)
SENT, ASSET = {"name": "web01", "attributes": {"cpu": 4}}, {"id": "i-1", "name": "web01"}
BEGAN = 4711  # the revision of the beginning in the report
EXISTS, OTHER_ID, DOUBTFUL, REJECTED = "exists", "another id", "in doubt", "rejected"
ASSETS = {EXISTS: {"id": "i-1"}, OTHER_ID: {"id": "i-2"}}


def row(what: str, name: str = "web01", began: int = BEGAN, resource: str = CREATE) -> dict:
    """A row of a report."""
    state = UNKNOWN if what == DOUBTFUL else ""
    known = {"began": began, "asset": ASSETS.get(what), "state": state, "at": ENDED}
    return {"resource": resource, "name": name, **known}


def settle(ledger, *rows: dict) -> dict:
    """Settle by a report, and return the result."""
    edits, result = edits_of_report(ledger, [*rows], Secrets())
    if edits:
        write_edits(ledger, edits, "this run")
    return result


def begin(ledger, revision: int, entry_key=KEY, lease_seconds: int = 0) -> Entry:
    """Begin as a run does, and return the intent."""
    before = entry_of(ledger, entry_key)
    beginning = HistoryRow(state_of(before), INTENT)
    begun = Change(
        Write.BEGIN, entry_key, before, Entry(INTENT, SENT, {}), beginning, revision, lease_seconds
    )
    assert ledger.write([stamped(begun)]) == [True]
    return entry_of(ledger, entry_key)


def end(ledger, intent: Entry, state: str) -> None:
    """End what was begun, as a run does."""
    after = intent._replace(state=state, asset=ASSET if state == DONE else {})
    ending = HistoryRow(INTENT, state, outcome="accepted" if state == DONE else "unknown")
    assert ledger.write([stamped(Change(Write.OUTCOME, KEY, intent, after, ending))]) == [True]


def forget(ledger) -> None:
    """Forget or settle as absent, as a person does."""
    edit = Change(Write.EDIT, KEY, entry_of(ledger, KEY), None)
    assert ledger.write([stamped(noted(edit, "another run", "by ledger_entry"))]) == [True]


def prepare(ledger, recorded: str) -> None:
    """Bring the ledger to a state: of this beginning (with its row), or of another one."""
    if recorded == "rejected by another report":
        settle(ledger, row(REJECTED, began=1))
    if recorded in ("nothing", "rejected by another report"):
        return
    intent = begin(ledger, 1 if "another" in recorded else BEGAN)
    if "doubt" in recorded:
        end(ledger, intent, UNKNOWN)
    elif "done" in recorded or "forgotten" in recorded:
        end(ledger, intent, DONE)
    if "forgotten" in recorded:
        forget(ledger)


@pytest.mark.parametrize(
    ("recorded", "what", "done", "state"),
    [
        # The ledger lacks the beginning: it is written back.
        ("nothing", EXISTS, "adopted", DONE),
        ("nothing", DOUBTFUL, "in_doubt", UNKNOWN),
        ("nothing", REJECTED, "unchanged", "absent"),
        ("rejected by another report", DOUBTFUL, "in_doubt", UNKNOWN),
        ("in doubt of another run", EXISTS, "settled_present", DONE),
        ("done by another run", EXISTS, "unchanged", DONE),
        ("done by another run", OTHER_ID, "left", DONE),
        ("done by another run", DOUBTFUL, "unchanged", DONE),
        # It has the beginning, and lacks at most its end.
        ("begun", EXISTS, "settled_present", DONE),
        ("begun", DOUBTFUL, "in_doubt", INTENT),
        ("in doubt", EXISTS, "settled_present", DONE),
        ("in doubt", DOUBTFUL, "in_doubt", UNKNOWN),
        ("done", EXISTS, "unchanged", DONE),
        ("done", OTHER_ID, "left", DONE),
        # A later edit wins.
        ("forgotten", EXISTS, "left", "absent"),
        ("forgotten", DOUBTFUL, "left", "absent"),
        # Also if it may have been before the run: that is not known.
        ("forgotten by another run", EXISTS, "left", "absent"),
    ],
)
def test_a_report_fills_what_the_ledger_lacks(opened, location, recorded, what, done, state):
    ledger = opened(location)
    prepare(ledger, recorded)
    result = settle(ledger, row(what))
    assert [kind for kind, count in result["counts"].items() if count] == [done]
    assert state_of(entry_of(ledger, KEY)) == state
    is_left = done == "left"
    rows = ledger.history([KEY])[KEY]
    assert any(BEGAN in (each.revision, each.began) for each in rows) or is_left
    before = entry_of(ledger, KEY), rows
    again = settle(ledger, row(what))
    assert not again["changed"]
    assert (entry_of(ledger, KEY), ledger.history([KEY])[KEY]) == before


def test_a_request_that_may_be_in_flight_is_left(opened, location):
    ledger = opened(location)
    before = begin(ledger, 1, lease_seconds=1000)
    (told,) = settle(ledger, row(EXISTS))["names"]["left"]
    assert "may have a request in flight" in told
    assert entry_of(ledger, KEY).revision == before.revision


def test_a_role_gets_its_row_and_nothing_else(opened, location):
    """The report has only its id, and `send: complete` would take that for the whole role."""
    ledger = opened(location)
    settle(ledger, row(EXISTS, "role-0001", resource=UPDATE))
    assert entry_of(ledger, ROLE) is None
    assert [each.revision for each in ledger.history([ROLE])[ROLE]] == [BEGAN]


def test_a_ledger_that_has_all_rows_again_has_not_gone_back(opened, location):
    """Also with other numbers; until then it has."""
    ledger = opened(location)
    ids = [ledger.header.ledger_id]
    for run, revision in (("first", BEGAN), ("second", 5)):  # what this controller has seen
        Seen(HOME, run).note_row(*ids, Serial(40, revision))
    settle(ledger, {**row(OTHER_ID, "web02", 5)})
    assert ledger.has_gone_back  # it lacks the other run
    settle(ledger, row(EXISTS))
    assert not ledger.has_gone_back


def test_what_is_left_does_not_keep_the_others_from_being_recorded(opened, location):
    ledger = opened(location)
    prepare(ledger, "done by another run")
    twice = [row(EXISTS, "web04"), row(OTHER_ID, "web04", 4)]
    same_id = row(EXISTS, "web03", 3)
    other = {**row(OTHER_ID, "web02", 2), "asset": {"id": "i-3"}}
    result = settle(ledger, row(OTHER_ID), other, same_id, *twice)
    assert result["names"]["adopted"] == ["web02"]
    told = {each.partition(" (")[0]: each for each in result["names"]["left"]}
    assert {*told} == {"web01", "web03", "web04"}
    assert "its id, i-1, is that of web01" in told["web03"]
    assert "the report has it twice" in told["web04"]
    assert entry_of(ledger, key("web02")).asset["id"] == "i-3"


def test_a_row_without_its_beginning_is_named(opened, location):
    ledger = opened(location)
    (told,) = settle(ledger, row(EXISTS, began=0))["names"]["left"]
    assert "does not say when it began" in told


def test_only_a_report_shows_that_a_ledger_has_what_was_lost(opened, location):
    """An outcome that is recorded anew, after a restore, says nothing of the rows before it."""
    ledger = opened(location)
    end(ledger, begin(ledger, BEGAN), DONE)
    execute(location, f"DELETE FROM infrastructure_services_history WHERE revision = {BEGAN}")
    assert not ledger.had(Serial(99, BEGAN))
    assert not settle(ledger, row(EXISTS))["changed"]  # the entry is as the report has it
    assert ledger.had(Serial(99, BEGAN))


@pytest.mark.parametrize("asset", [{"id": "i-1", "attributes": True}, {}, {"id": "absent"}])
def test_values_of_a_report_are_checked(opened, location, asset):
    ledger = opened(location)
    (told,) = settle(ledger, {**row(EXISTS), "asset": asset})["names"]["left"]
    assert told.startswith("web01 (asset")
    assert entry_of(ledger, KEY) is None
