"""What `ledger_entry` records of the report of a run, on both databases."""

from __future__ import annotations

import pytest
from ansible_collections.infrastructure.services.plugins.module_utils._errors import ServicesError
from ansible_collections.infrastructure.services.plugins.plugin_utils._ledger.entries import (
    DONE,
    INTENT,
    UNKNOWN,
    Change,
    HistoryRow,
    Write,
    stamped,
)
from ledger.entries import edited, put, states
from ledger.tasks import key
from ledger.test_edits import ENTRIES, KEY, RUNNING, adopted, machine
from support.ledgers import entry_of

ENDED = "2026-01-02T12:00:00Z"
EXISTS, DOUBTFUL = machine(asset={"id": "i-1"}), machine(state=UNKNOWN)
OTHER_ID = machine(asset={"id": "i-2"})


@pytest.mark.parametrize(
    ("entry", "item", "done", "state"),
    [
        pytest.param("none", EXISTS, "adopted", DONE, id="it exists, and the ledger has nothing"),
        pytest.param(UNKNOWN, EXISTS, "settled_present", DONE, id="it exists, and was in doubt"),
        pytest.param(INTENT, EXISTS, "settled_present", DONE, id="its task was killed"),
        pytest.param(DONE, EXISTS, "unchanged", DONE, id="it is known"),
        pytest.param(DONE, OTHER_ID, "left", DONE, id="another id is known"),
        pytest.param(RUNNING, EXISTS, "left", INTENT, id="a request may be in flight"),
        pytest.param(
            "none", DOUBTFUL, "in_doubt", UNKNOWN, id="a doubt, and the ledger has nothing"
        ),
        pytest.param(INTENT, DOUBTFUL, "in_doubt", INTENT, id="a doubt that is known"),
        pytest.param(DONE, DOUBTFUL, "unchanged", DONE, id="a doubt that was settled"),
    ],
)
@pytest.mark.parametrize("check_mode", [True, False])
def test_a_report_fills_what_the_ledger_lacks(
    opened, location, entry, item, done, state, check_mode
):
    ledger = opened(location)
    before = put(ledger, KEY, ENTRIES[entry], 1000 if entry == RUNNING else 0)
    result = edited(ledger, check_mode, reported_at=ENDED, entries=[item])
    assert [kind for kind, count in result["counts"].items() if count] == [done]
    after = entry_of(ledger, KEY)
    assert result["changed"] == (done in ("adopted", "settled_present") or entry == "none")
    if check_mode or not result["changed"]:
        assert after == before
    else:
        assert after.state == state
        assert before or state != UNKNOWN or after.began_at == ENDED
        assert edited(ledger, reported_at=ENDED, entries=[item])["changed"] is False


@pytest.mark.parametrize(("at", "is_left"), [(ENDED, False), ("2026-01-02T12:00:01Z", True)])
@pytest.mark.parametrize("item", [EXISTS, DOUBTFUL], ids=["exists", "doubt"])
def test_what_happened_after_the_run_is_left(opened, location, at, is_left, item):
    """As when a person has deleted the machine and forgotten it."""
    ledger = opened(location)
    before = put(ledger, KEY, ENTRIES[DONE])
    row = HistoryRow(DONE, "absent", at=at)
    ledger.write([stamped(Change(Write.EDIT, KEY, before, None, row))])
    result = edited(ledger, reported_at=ENDED, entries=[item])
    assert result["changed"] is not is_left
    if is_left:
        (told,) = result["names"]["left"]
        assert told == f"web01 (it became absent at {at}, after that run)"


LATER = "2026-01-03T12:00:00Z"


@pytest.mark.parametrize("reports", [(DOUBTFUL, EXISTS), (EXISTS, DOUBTFUL)], ids=["old", "new"])
def test_the_reports_of_several_runs_in_any_order(opened, location, reports):
    """When the ledger was lost; the machine was in doubt in the first run, and created later."""
    ledger = opened(location)
    for item in reports:
        edited(ledger, reported_at=ENDED if item is DOUBTFUL else LATER, entries=[item])
    assert (states(ledger), entry_of(ledger, KEY).asset["id"]) == ({"web01": DONE}, "i-1")


def test_one_that_is_left_does_not_keep_the_others_from_being_recorded(opened, location):
    ledger = opened(location)
    put(ledger, KEY, ENTRIES[DONE])
    same = machine("web03", asset={"id": "i-1"})
    result = edited(ledger, reported_at=ENDED, entries=[OTHER_ID, adopted("web02"), same])
    assert result["names"]["adopted"] == ["web02"]
    assert [told.partition(" (")[0] for told in result["names"]["left"]] == ["web01", "web03"]
    assert "its id, i-1, is that of web01" in result["names"]["left"][1]
    assert states(ledger) == {"web01": DONE, "web02": DONE}
    assert entry_of(ledger, key("web02")).asset["id"] == "id-web02"


@pytest.mark.parametrize(
    "asset", [{"id": "i-1", "attributes": True}, {}, {"id": "absent"}], ids=str
)
def test_values_of_a_report_are_checked(opened, location, asset):
    ledger = opened(location)
    (told,) = edited(ledger, reported_at=ENDED, entries=[machine(asset=asset)])["names"]["left"]
    assert told.startswith("web01 (asset")
    with pytest.raises(ServicesError, match="name: must be a string"):
        edited(ledger, reported_at=ENDED, entries=[machine(name=["web01"], asset=asset)])
    assert states(ledger) == {}
