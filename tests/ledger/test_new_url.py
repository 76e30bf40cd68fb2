# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A service that has a new URL: its entries move there in one transaction, and no task goes on at
the old URL; on both databases.
"""

from __future__ import annotations

import json
import time
from threading import Barrier, Thread

import pytest
from ansible_collections.infrastructure.services.plugins.module_utils._errors import (
    InvalidInput,
    ServicesError,
)
from ansible_collections.infrastructure.services.plugins.module_utils._task.specs import (
    LEDGER_MOVE,
)
from ansible_collections.infrastructure.services.plugins.module_utils._task.validation import (
    validate,
)
from ansible_collections.infrastructure.services.plugins.plugin_utils._ledger.entries import (
    ABSENT,
    DONE,
    INTENT,
    STATES,
    Change,
    Ended,
    Entry,
    Key,
    Kind,
    LedgerError,
)
from ansible_collections.infrastructure.services.plugins.plugin_utils._ledger.renaming import (
    move_entries,
)
from ansible_collections.infrastructure.services.plugins.plugin_utils._ledger.store import Ledger
from ledger.entries import bare, begin, history, put
from ledger.tasks import task
from ledger.test_move import move as move_ledger
from support import CREATE, UPDATE
from support.running import Run
from support.waiting import until

OLD, NEW, THIRD = "https://old", "https://new", "https://third"
AT = "2026-01-02T03:04:05Z"
ENTRY = Entry(DONE, {"name": "web01"}, {"id": "1", "name": "web01"}, AT, AT, "me@here", "run-1")
ENDED = Ended(ABSENT, DONE, AT, "me@here", "run-1", "accepted", 201, "fine", 1.5, "ab")
FLEET = """
- hosts: localhost
  gather_facts: false
  tasks:
    - infrastructure.services.compute_virtual_machines:
        base_url: "{{ base_url }}"
        access_token: a-token-of-this-test
        ledger: "{{ fleet_ledger }}"
        virtual_machines: [{name: web01}, {name: web02}, {name: web03}]
"""
REFUSED = f"the entries of {OLD} were moved to {NEW}"


@pytest.fixture
def ledger(location, opened) -> Ledger:
    """A ledger with a machine in each state and a role at the old URL, and a machine elsewhere."""
    found = opened(location)
    keys = [(OLD, CREATE, f"web{number}", state) for number, state in enumerate(STATES)]
    keys += [(OLD, UPDATE, "role-1", DONE), (THIRD, CREATE, "web0", DONE)]
    changes = [
        Change(Key(url, resource, name), None, ENTRY._replace(state=state), ENDED)
        for url, resource, name, state in keys
    ]
    assert None not in found.write(changes, Kind.BEGIN)
    return found


def rename(ledger: Ledger, old: str = OLD, new: str = NEW, check_mode: bool = False) -> dict:
    return move_entries(ledger, old, new, check_mode, "run-2")


def entries(ledger: Ledger, url: str) -> dict[tuple[str, str], Entry]:
    found = ledger.entries({"base_url = ?": (url,)}, bool)
    return {(key.resource, key.name): entry for key, entry in found}


def test_entries_move_as_they_are_with_their_history_and_a_second_run_changes_nothing(ledger):
    before, elsewhere = entries(ledger, OLD), entries(ledger, THIRD)
    result = rename(ledger)
    assert (result["changed"], result["outcome"]) == (True, "not_sent")
    assert result["counts"] == {"entries": 5, "history": 5}
    assert result["diff"] == {
        "before": {OLD: {UPDATE: 1, CREATE: 4}},
        "after": {NEW: {UPDATE: 1, CREATE: 4}},
    }
    assert (entries(ledger, NEW), entries(ledger, OLD)) == (before, {})
    assert entries(ledger, THIRD) == elsewhere
    for resource, name in before:
        first, second = ledger.history(NEW, resource, [name])[name]
        assert first == ENDED
        assert second.message == f"by ledger_move: base_url {OLD} -> {NEW}"
        assert (second.run, second.outcome) == ("run-2", "not_sent")
        assert second.from_state == second.to_state == before[resource, name].state
    everything = history(ledger)
    assert ledger.has_history(*ledger.history_end())
    again = rename(ledger)
    assert (again["changed"], again["counts"]["entries"]) == (False, 5)
    assert again["diff"] == {"before": {}, "after": {}}
    assert history(ledger) == everything


def test_check_mode_predicts_and_writes_nothing(ledger, location, opened):
    everything = [entries(ledger, OLD), history(ledger)]
    found = opened(location, True)
    assert rename(found, check_mode=True)["changed"]
    assert [entries(ledger, OLD), history(ledger)] == everything
    rename(ledger)
    assert not rename(found, check_mode=True)["changed"]


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        (None, NEW, "base_url: is needed with to_base_url"),
        ("old", NEW, "base_url: is not an absolute URL"),
        (OLD, "new", "to_base_url: is not an absolute URL"),
        (OLD, f"{NEW}/?x=1", "to_base_url: must not have a query"),
        (OLD, f"{NEW}/api/v1", f"to_base_url: must not end in /api/v1, .* give {NEW}"),
        (OLD, "https://OLD:443/", f"to_base_url: is {OLD}, as base_url is"),
        ("https://odl", NEW, rf"has no entry of https://odl\. .*{OLD} \(5\), {THIRD} \(1\)"),
        (OLD, THIRD, f"web0: recorded at {OLD} and at {THIRD}. Look on the service"),
    ],
)
@pytest.mark.parametrize("check_mode", [True, False])
def test_what_cannot_be_meant_is_refused_and_nothing_changes(ledger, old, new, said, check_mode):
    before = [entries(ledger, OLD), entries(ledger, THIRD), history(ledger)]
    with pytest.raises(InvalidInput, match=said):
        rename(ledger, old, new, check_mode)
    assert [entries(ledger, OLD), entries(ledger, THIRD), history(ledger)] == before


def test_a_ledger_without_entries_says_so(location, opened):
    with pytest.raises(LedgerError, match=r"has no entry of .* The ledger is empty"):
        rename(opened(location))


def test_other_names_at_the_new_url_stay(ledger):
    put(ledger, Key(NEW, CREATE, "other"), ENTRY)
    rename(ledger)
    assert len(entries(ledger, NEW)) == 6


def test_an_entry_whose_task_is_running_is_named_and_one_whose_task_died_moves(
    ledger, location, opened
):
    run, key = opened(location), Key(OLD, CREATE, "busy")
    assert run.lock(key, wait=True)
    begin(run, key, ENTRY._replace(state=INTENT), None)
    with pytest.raises(LedgerError, match="base_url: busy: a task is waiting "):
        rename(ledger)
    assert len(entries(ledger, OLD)) == 6
    run.close()  # the task is killed; PostgreSQL notices that a moment later
    until(lambda: not is_refused(ledger))
    assert entries(ledger, NEW)[CREATE, "busy"].state == INTENT


def test_after_the_move_the_new_url_sends_nothing_and_the_old_one_is_refused(
    ledger, service, location
):
    old, new = service.url, service.url.replace("127.0.0.1", "localhost")
    assert task(location, base_url=old)["outcome"] == "accepted"
    rename(ledger, old, new)
    sent = len(service.api.conversation)
    same = task(location, base_url=new)
    assert (same["changed"], same["outcome"]) == (False, "not_sent")
    for resource, options in ((CREATE, {}), (CREATE, {"name": "web99"}), (UPDATE, {})):
        for more in ({}, {"check_mode": True}, {"force": True}):
            result = task(location, resource, base_url=old, **options, **more)
            assert (result["failed"], result["outcome"]) == (True, "not_sent")
            assert f"were moved to {new}" in result["msg"]
            assert f"Set base_url to {new}" in result["msg"]
    assert len(service.api.conversation) == sent


def test_control_characters_of_a_name_do_not_reach_the_screen(ledger, location, opened):
    put(ledger, Key(OLD, CREATE, "a\x1b[31m"), ENTRY)
    put(ledger, Key(THIRD, CREATE, "a\x1b[31m"), ENTRY)
    with pytest.raises(LedgerError, match=r"to_base_url: a \[31m, web0: recorded at"):
        rename(ledger, OLD, THIRD)
    run, key = opened(location), Key(OLD, CREATE, "b\x1b[31m")
    assert run.lock(key, wait=True)
    begin(run, key, ENTRY._replace(state=INTENT), None)
    with pytest.raises(LedgerError, match=r"base_url: b \[31m: a task is waiting"):
        rename(ledger)


def test_a_task_that_looked_before_the_move_begins_nothing_after_it(ledger, location, opened):
    """Neither for a new name, nor for one that another run has created and moved since."""
    late = opened(location)
    keys = [Key(OLD, CREATE, "new"), Key(OLD, CREATE, "created by another run")]
    put(ledger, keys[1], ENTRY)
    rename(ledger)
    for key in keys:
        with pytest.raises(LedgerError, match=REFUSED):
            late.begin(Change(key, None, ENTRY._replace(state=INTENT)))
    known = entries(ledger, NEW)[UPDATE, "role-1"]
    with pytest.raises(LedgerError, match=REFUSED):
        late.begin(Change(Key(OLD, UPDATE, "role-1"), known, known._replace(state=INTENT)))
    assert entries(ledger, OLD) == {}


def test_a_task_that_runs_through_a_pooler_meanwhile_leaves_a_doubt(ledger, location, opened):
    """Without locks the move does not see the task, whose outcome then finds no entry."""
    run, key = opened(location), Key(OLD, CREATE, "busy")
    begun = Change(key, None, ENTRY._replace(state=INTENT))
    intent = begin(run, key, begun.after, None)
    rename(ledger)
    assert not run.finish(Change(key, intent, intent._replace(state=DONE), ENDED))
    assert bare(entries(ledger, NEW)[CREATE, "busy"]).state == INTENT


def test_the_move_has_no_effect_if_a_task_begins_in_its_last_moment(ledger, location, opened):
    key = Key(OLD, CREATE, "late")
    said = []
    write = ledger.database.write

    def late(statements, kind):
        if not said:
            said.append(begin(opened(location), key, ENTRY._replace(state=INTENT), None))
        return write(statements, kind)

    ledger.database.write = late
    with pytest.raises(LedgerError, match=f"changed the entries of {OLD} .* Run it again"):
        rename(ledger)
    assert len(entries(ledger, OLD)) == 6
    assert entries(ledger, NEW) == {}


def test_moves_at_the_same_time_end_at_one_url(ledger, location, opened):
    """One of two other URLs; whoever asked for the other one is told."""
    movers, said, start = [opened(location) for _number in range(6)], [], Barrier(6)

    def attempt(number: int) -> None:
        start.wait()
        try:
            said.append(rename(movers[number], OLD, [NEW, "https://other"][number % 2])["changed"])
        except ServicesError as error:
            said.append(error.msg)

    threads = [Thread(target=attempt, args=(number,)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert said.count(True) == 1, said
    at = [len(entries(ledger, url)) for url in (OLD, NEW, "https://other")]
    assert sorted(at) == [0, 0, 5]
    assert at[0] == 0


def test_creations_and_the_move_at_the_same_time_leave_nothing_at_the_old_url(
    ledger, location, opened
):
    def create(own: Ledger, names: range) -> None:
        for number in names:
            entry = ENTRY._replace(state=INTENT)
            change = Change(Key(OLD, CREATE, f"n{number}"), None, entry)
            try:
                _ours, begun = own.begin(change)
            except LedgerError as error:
                refused.append(error.msg)
                return
            own.finish(change._replace(before=begun, after=begun._replace(state=DONE), ended=ENDED))
            own.release(change.key)
            time.sleep(0.002)

    refused: list[str] = []
    threads = [
        Thread(target=create, args=(opened(location), range(first, 1000, 2))) for first in range(2)
    ]
    for thread in threads:
        thread.start()
    assert not all(is_refused(ledger) for _attempt in range(1000))
    for thread in threads:
        thread.join(60)
    assert len(refused) == 2
    assert all(REFUSED in said for said in refused)
    assert entries(ledger, OLD) == {}


def is_refused(ledger: Ledger) -> bool:
    """Try to move the entries; return whether that was refused because of a running task."""
    try:
        rename(ledger)
    except LedgerError as error:
        return "Run it again" in error.msg
    return False


def test_entries_go_on_and_back_and_each_url_that_was_left_names_the_last_one(ledger):
    rename(ledger, OLD, NEW)
    rename(ledger, NEW, "https://next")
    for old, new in ((OLD, NEW), (OLD, THIRD), (NEW, OLD)):
        with pytest.raises(LedgerError, match="were moved to https://next"):
            rename(ledger, old, new)
    with pytest.raises(LedgerError, match="to_base_url: its entries were moved to https://next"):
        rename(ledger, THIRD, OLD)
    with pytest.raises(LedgerError, match="were moved to https://next"):
        ledger.require_same_url(OLD)
    rename(ledger, "https://next", OLD)
    ledger.require_same_url(OLD)
    for url in (NEW, "https://next"):
        with pytest.raises(LedgerError, match=f"were moved to {OLD} "):
            ledger.require_same_url(url)
    begin(ledger, Key(OLD, CREATE, "new"), ENTRY._replace(state=INTENT), None)
    assert len(entries(ledger, OLD)) == 6


def test_a_ledger_that_moves_keeps_where_the_entries_went(ledger, location, tmp_path, opened):
    rename(ledger)
    target = str(tmp_path / "target.db")
    move_ledger(location, target)
    with pytest.raises(LedgerError, match="was moved to"):
        rename(ledger, NEW, OLD)
    moved = opened(target)
    with pytest.raises(LedgerError, match=REFUSED):
        moved.begin(Change(Key(OLD, CREATE, "new"), None, ENTRY._replace(state=INTENT)))
    assert not rename(moved)["changed"]


def test_a_ledger_that_does_not_exist_is_not_made(location, opened):
    with pytest.raises(LedgerError, match=r"no ledger at .* yet\. Check the location"):
        rename(opened(location, True))
    assert not opened(location, True).version


@pytest.mark.matrix
def test_the_playbook_moves_the_entries_and_the_list_sends_nothing_more(
    ansible_once, service, tmp_path
):
    """`service`: the same one under both URLs, as if its host had two names."""
    location = str(tmp_path / "fleet.db")
    old, new = service.url, service.url.replace("127.0.0.1", "localhost")
    fleet = tmp_path / "fleet.yml"
    fleet.write_text(FLEET, encoding="utf-8")

    def create(url: str) -> Run:
        variables = json.dumps({"base_url": url, "fleet_ledger": location})
        return ansible_once.playbook(str(fleet), "-e", variables)

    create(old).ok()
    sent = len(service.api.conversation)
    variables = {"ledger": location, "base_url": old, "to_base_url": new}
    move = ["infrastructure.services.move_ledger", "-e", json.dumps(variables)]
    planned = ansible_once.playbook(*move, "--check", "--diff").ok()
    assert f"{new} would be the base_url; its entries: 3" in planned.output
    run = ansible_once.playbook(*move).ok()
    assert run.result("Move it")["changed"]
    assert f"{new} is now the base_url; its entries: 3" in run.output
    assert "3 unchanged" in create(new).ok().output
    refused = create(old)
    assert refused.rc == 2
    assert f"were moved to {new}" in " ".join(refused.output.split())
    assert len(service.api.conversation) == sent == 3


def test_the_module_takes_one_destination():
    for given, said in (
        ({}, "to, to_base_url: one of these is needed"),
        ({"to": "b.db", "to_base_url": NEW}, "to: cannot be given together with to_base_url"),
    ):
        assert said in validate(LEDGER_MOVE, {"ledger": "a.db", **given}).problem
