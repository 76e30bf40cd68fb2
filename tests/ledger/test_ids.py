"""A machine with an id exists: it is recorded and never sent, by what the ledger has of it, on both
databases.
"""

from __future__ import annotations

from typing import Any

import pytest
from ansible_collections.infrastructure.services.plugins.module_utils._errors import InvalidInput
from ansible_collections.infrastructure.services.plugins.module_utils._task.specs import (
    VIRTUAL_MACHINES,
)
from ansible_collections.infrastructure.services.plugins.plugin_utils._ledger import recording
from ansible_collections.infrastructure.services.plugins.plugin_utils._ledger.entries import (
    ABSENT,
    ACCEPTED,
    DONE,
    INTENT,
    UNKNOWN,
    Entry,
    Write,
)
from ansible_collections.infrastructure.services.plugins.plugin_utils._ledger.ledger import Ledger
from ledger.entries import edited, history, put, states
from ledger.tasks import key, list_task, task
from support import CREATE
from support.ledgers import entry_of
from support.lists import run_list

ID = "id-1"
GIVEN = {"id": ID, "attributes": {"cpu": 4}}
SENT = {"name": "web01", "attributes": {"cpu": 4, "team": "web"}}
BODY = {"name": "web01", **GIVEN}
ADOPT, KEEP, REFUSED = "adopt", "keep", "refused"
# The entry that is found, and what a task with the id does.
FOUND = {
    "none": (None, ADOPT),
    "intent": (Entry(INTENT, SENT, {}), ADOPT),
    "accepted": (Entry(ACCEPTED, SENT, {}), ADOPT),
    "unknown": (Entry(UNKNOWN, SENT, {}), ADOPT),
    "created": (Entry(DONE, SENT, {"id": ID, **SENT}), KEEP),
    "a number": (Entry(DONE, SENT, {**SENT, "id": 1}), REFUSED),
    "adopted": (Entry(DONE, {}, {"id": ID, "name": "web01", "attributes": {"cpu": 4}}), KEEP),
    "another": (Entry(DONE, SENT, {"id": "id-2", **SENT}), REFUSED),
    "no id": (Entry(DONE, SENT, SENT), REFUSED),
}


@pytest.fixture
def ledger(location, opened, service) -> Ledger:
    return opened(location, base_url=service.url)


@pytest.fixture
def run(location, service, ledger):
    """Run the task with the id, or the list of given machines."""

    def run(*machines: dict, **options: Any) -> dict:
        options = {"base_url": service.url, **options}
        if machines:
            return list_task(location, [], virtual_machines=[*machines], **options)
        return task(location, **{**GIVEN, **options})

    yield run
    assert service.api.conversation == []


@pytest.mark.parametrize("found", FOUND)
def test_the_entry_decides_what_is_recorded_and_nothing_is_ever_sent(run, ledger, found):
    entry, does = FOUND[found]
    before = put(ledger, key(), entry)
    planned = run(check_mode=True)
    assert entry_of(ledger, key()) == before
    result = run()
    after = entry_of(ledger, key())
    assert (result["outcome"], planned["outcome"]) == ("not_sent", "not_sent")
    assert planned["changed"] is result["changed"] is (does == ADOPT)
    assert planned.get("failed", False) is result.get("failed", False) is (does == REFUSED)
    if does != ADOPT:
        assert (after, history(ledger, key())) == (before, [])
    if does == REFUSED:
        recorded = before.asset.get("id", "no id")
        assert f"id: is 'id-1', but {recorded} is recorded for this name." in result["msg"]
        return
    assert planned["plan"] == does
    assert planned["asset"] == result["asset"] == after.asset
    assert result["ansible_facts"] == {CREATE: after.asset}
    assert (after.state, after.asset["id"], after.asset["attributes"]["cpu"]) == (DONE, ID, 4)
    if does == ADOPT:
        assert "request" not in result
        (row,) = history(ledger, key())
        assert (row.from_state, row.to_state, row.outcome) == (
            entry.state if entry else ABSENT,
            DONE,
            "",
        )
        assert (row.run, after.run, bool(after.by)) == ("run-of-the-tests",) * 2 + (True,)
        assert after.sent == (SENT | {"attributes": SENT["attributes"]} if entry else {})
        assert after.asset["attributes"].get("team") == (entry and "web")
        again = run()
        assert (again["changed"], again["asset"]) == (False, result["asset"])
        assert entry_of(ledger, key()) == after


WRONG = [
    ({"name": "web02", "id": ID}, "web02): id: its id, id-1, is that of web01"),
    ({"name": "web03", "id": "id-3"}, ""),
    ({"name": "web04", "id": "id-3"}, "web04): id: its id, id-3, is that of web03"),
    ({"name": "web06", "id": "N/A"}, "web06): id: its id is 'N/A'. Give what the service shows"),
    (
        {"name": "web08", "id": "8", "attributes": {"ip": "ADDRESS"}},
        "web08): id: its attributes.ip is 'AD",
    ),
    ({"name": "web07", "id": " absent"}, "web07): id: its id is ' absent'. Give what the"),
]


@pytest.mark.parametrize("check_mode", [False, True])
def test_an_id_that_another_machine_has_or_that_is_none_is_refused_for_all(run, ledger, check_mode):
    """Before anything is recorded."""
    put(ledger, key(), FOUND["adopted"][0])
    new = {"name": "new", "id": "new"}
    refused = run(new, *(item for item, _told in WRONG), check_mode=check_mode)
    assert refused["failed"]
    assert [told for _item, told in WRONG if told not in refused["msg"]] == []
    assert states(ledger) == {"web01": DONE}


def test_an_id_moves_to_another_name_once_its_entry_is_forgotten(run, ledger):
    run()
    edited(ledger, resource=CREATE, name="web01", state="absent")
    assert run({"name": "web02", "id": ID})["changed"]
    assert states(ledger) == {"web02": DONE}


def test_without_a_ledger_it_is_refused_by_name(run, service):
    given = {
        "base_url": service.url,
        "virtual_machines": [{"name": "web01"}, {"name": "b", **GIVEN}],
    }
    for check_mode in (False, True):
        with pytest.raises(InvalidInput, match=r"\[1\] \(b\): id: needs a ledger"):
            run_list(VIRTUAL_MACHINES, given, check_mode=check_mode)


def test_a_list_is_planned_approved_and_run_with_ids_among_others(run, ledger, service):
    put(ledger, key("doubt"), Entry(UNKNOWN, {**SENT, "name": "doubt"}, {}))
    machines = [{"name": "web01", **GIVEN}, {"name": "doubt", "id": "id-2"}]
    planned = run(*machines, check_mode=True)
    assert planned["counts"]["adopt"] == 2
    assert [item["plan"] for item in planned["results"]] == ["adopt", "adopt"]
    found = ledger.find([key("web01"), key("doubt")], with_rows=True).last_rows
    rows = {each.name: number for each, number in found.items()}
    approved = {"web01": BODY, "doubt": {"name": "doubt", "id": "id-2", "attributes": {}}}
    for body in ({**BODY, "id": "id-9"}, {name: BODY[name] for name in ("name", "attributes")}):
        other = {**approved, "web01": body}
        refused = run(*machines, approved=other, rows=rows)
        assert 'does not match 1 asset of this list: web01: id ("id-1" now, ' in refused["msg"]
    assert states(ledger) == {"doubt": UNKNOWN}
    done = run(*machines, approved=approved, rows=rows)
    assert (done["changed"], done["counts"]["changed"], done["outcome"]) == (True, 2, "not_sent")
    assert states(ledger) == {"web01": DONE, "doubt": DONE}
    again = run(*machines, approved=approved, rows=rows)
    assert (again["changed"], again.get("failed", False)) == (False, False)
    edited(ledger, resource=CREATE, name="web01", state="absent")
    used, _kept = run(*machines, approved=approved, rows=rows)["results"]
    assert used["failed"]
    assert "An approved plan is good for one effect" in used["msg"]
    assert states(ledger) == {"doubt": DONE}


@pytest.mark.parametrize("how", ["a task", "a list"])
def test_who_comes_second_records_nothing(run, ledger, monkeypatch, how):
    """It is planned again, and finds it."""
    real, others = recording.Recording.beginning, []

    def beginning(self, task):
        if not others:
            others.append(True)
            others.append(run())
        return real(self, task)

    monkeypatch.setattr(recording.Recording, "beginning", beginning)
    result = run() if how == "a task" else run({"name": "web01", **GIVEN})["results"][0]
    assert others[1]["changed"] is True
    assert (result["changed"], result.get("failed", False)) == (False, False)
    assert len(history(ledger, key())) == 1


@pytest.mark.parametrize("lost", ["before the commit", "after it", "and another was first"])
def test_a_write_whose_answer_was_lost_is_recorded_once(
    postgres, opened, service, lose_an_answer, lost
):
    """What took effect is known by the revision, and a row says so only of what did."""
    given = {"base_url": service.url, **GIVEN}
    ledger = opened(postgres, base_url=service.url)

    def before() -> None:
        if lost == "and another was first":
            assert task(postgres, **given)["changed"]

    times = lose_an_answer(Write.ADOPT, lost == "after it", before)
    result = task(postgres, **given)
    assert times == [Write.ADOPT]
    assert (result["changed"], result["asset"]["id"]) == (lost != "and another was first", ID)
    assert len(history(ledger, key())) == 1
