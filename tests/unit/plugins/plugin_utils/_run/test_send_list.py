# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Lists that are refused before anything is sent."""

from __future__ import annotations

import json
import threading
import time
from contextlib import closing
from types import SimpleNamespace
from typing import Any

import pytest
from ansible_collections.infrastructure.services.plugins.module_utils._errors import (
    InvalidInput,
    MissingLibrary,
)
from ansible_collections.infrastructure.services.plugins.module_utils._task.specs import (
    VIRTUAL_MACHINES,
)
from ansible_collections.infrastructure.services.plugins.module_utils._task.validation import (
    validate,
)
from ansible_collections.infrastructure.services.plugins.plugin_utils._ledger.entries import (
    DONE,
    INTENT,
    Entry,
    Key,
)
from ansible_collections.infrastructure.services.plugins.plugin_utils._ledger.location import (
    open_ledger,
)
from ansible_collections.infrastructure.services.plugins.plugin_utils._ledger.store import Ledger
from ansible_collections.infrastructure.services.plugins.plugin_utils._run import send_list
from ledger.entries import put
from story.commands import Ended, Terminal
from support.wire import Sent, answer, running

OPTIONS = {"base_url": "https://s", "access_token": "token", "virtual_machines": [{"name": "a"}]}


@pytest.mark.parametrize("missing", [None, MissingLibrary("requests is missing")])
def test_a_list_on_a_target_is_refused(monkeypatch, missing):
    def require_libraries() -> None:
        if missing:
            raise missing

    monkeypatch.setattr(send_list, "require_libraries", require_libraries)
    own = {"spec": VIRTUAL_MACHINES, "runs_here": False}
    action = type("ActionModule", (send_list.SendingListAction,), own)(*[None] * 6)
    action.keywords = SimpleNamespace(check_mode=False, is_async=False)
    with pytest.raises(MissingLibrary if missing else InvalidInput) as refused:
        action.work(validate(VIRTUAL_MACHINES, OPTIONS))
    advice = "ledger: a list can use one only on the controller: add delegate_to: localhost"
    assert refused.value.msg.startswith("requests is missing" if missing else advice)


def test_a_plan_that_was_made_with_a_ledger_is_not_carried_out_without_one(tmp_path):
    somebody = Terminal(tmp_path, "http://127.0.0.1:9")
    somebody.send_list(["a"], "ledger.db", check_mode=True, report="report.json")
    ended = somebody.send_list(["a"], "", approved="report.plan.json")
    assert ended.result["failed"]
    assert "and the ledger of this list is none. Check the ledger, or make" in ended.said


def test_a_list_that_fails_says_where_each_item_is_explained(tmp_path):
    ended = Terminal(tmp_path, "http://127.0.0.1:9").send_list(["a"], "ledger.db")
    assert ended.result["msg"].endswith(" failed (1 not sent): a. See above.")


def test_after_a_signal_the_message_names_the_report():
    action = SimpleNamespace(signals=SimpleNamespace(caught=True))
    said = send_list.SendingListAction._next_step(action, {"report": "/fleet.json", "ledger": ""})
    assert said.startswith("The report /fleet.json lists the known effect of each. Look on ")


@pytest.mark.parametrize("no_log", [True, False])
def test_a_list_shows_nothing_on_the_screen_if_its_task_hides_it(tmp_path, no_log):
    somebody = Terminal(tmp_path, "http://127.0.0.1:9")
    ended = somebody.send_list(["a"], "", check_mode=True, no_log=no_log)
    assert ended.result["counts"]["create"] == 1
    assert (ended.lines == []) is no_log


@pytest.mark.parametrize(
    ("caught", "is_late", "is_orphan", "why"),
    [
        (True, True, True, "the task received SIGTERM"),
        (False, True, True, "the keyword timeout (3 seconds) expired"),
        (False, False, True, "the run of Ansible that the task belongs to has ended"),
        (False, False, False, ""),
    ],
)
def test_why_a_list_has_to_end(monkeypatch, caught, is_late, is_orphan, why):
    monkeypatch.setattr(send_list, "is_orphan", lambda: is_orphan)
    signals = SimpleNamespace(caught=caught, name="SIGTERM", is_late=is_late)
    keywords = SimpleNamespace(timeout=3)
    action = SimpleNamespace(signals=signals, keywords=keywords, spec=VIRTUAL_MACHINES)
    assert send_list.ListPlace(action).why_to_stop() == why


ROLE = Key("", "cassandra_application_role", "role-1")


def update(somebody: Terminal, **more: Any) -> Ended:
    """Run a list that sends the whole asset of a role."""
    options = {
        "base_url": somebody.base_url,
        "access_token": "a-token-of-this-test",
        "application_roles": [{"id": "role-1", "description": "one", "send": "complete"}],
        "ledger": "ledger.db",
    }
    return somebody.run("cassandra_application_roles", options, **more)


def test_a_list_waits_for_the_asset_of_another_run_if_it_sends_the_whole_asset(tmp_path):
    """Without the entry that the other run leaves, nobody knows what the whole asset is."""
    asset = {"id": "role-1", "name": "orders", "attributes": {"login": True}}
    with running(lambda sent: answer(200, {"id": "role-1", **json.loads(sent.body)})) as service:
        key = ROLE._replace(base_url=service.url)
        with closing(open_ledger(str(tmp_path / "ledger.db"))) as others:
            put(others, key, Entry(INTENT, {"name": "orders"}, {}))
            others.lock(key, wait=True)
            other = threading.Thread(target=end_after, args=(0.3, others, key, asset))
            other.start()
            ended = update(Terminal(tmp_path, service.url))
            other.join()
    assert ended.result["counts"]["changed"] == 1
    (sent,) = service.sent
    assert json.loads(sent.body) == {**asset, "description": "one"}


@pytest.mark.parametrize("only_checks", [False, True])
def test_a_plan_says_that_another_run_is_updating_a_role_whose_whole_asset_is_sent(
    tmp_path, only_checks
):
    """The check of the role `fleet`, before the first request, does not mind."""
    with closing(open_ledger(str(tmp_path / "ledger.db"))) as others:
        put(others, ROLE._replace(base_url="https://s"), Entry(INTENT, {"name": "orders"}, {}))
    somebody = Terminal(tmp_path, "https://s")
    ended = update(somebody, check_mode=True, variables={"__only_checks": only_checks})
    assert ended.result.get("failed", False) is not only_checks
    if not only_checks:
        (item,) = ended.result["results"]
        assert item["plan"] == "in_doubt"
        assert "another task is updating it, or was killed while it did so" in item["msg"]
        assert "  ? role-1  in doubt since 2" in ended.said


def end_after(seconds: float, ledger: Ledger, key: Key, asset: dict) -> None:
    """Record that the other run has ended, and release the asset."""
    time.sleep(seconds)
    put(ledger, key, Entry(DONE, {"name": "orders"}, asset))
    ledger.release(key)


def test_until_repeats_no_list_of_which_the_ledger_lacks_an_outcome(tmp_path):
    """Somebody removes the entry of a machine while its request is in flight."""
    path = str(tmp_path / "ledger.db")
    names: list[str] = []

    def choose(sent: Sent) -> bytes:
        body = json.loads(sent.body)
        names.append(body["name"])
        if body["name"] == "bad":
            return answer(422)
        with closing(open_ledger(path)) as others:
            put(others, Key(service.url, "compute_virtual_machine", body["name"]), None)
        return answer(201, {"id": "i-1", **body})

    with running(choose) as service:
        somebody = Terminal(tmp_path, service.url)
        ended = somebody.send_list(["web01", "bad"], path, attempts=2, concurrency=1)
    assert names == ["web01", "bad"]
    assert "This attempt sent nothing" in ended.said


def test_what_was_seen_during_a_run_forgets_nothing_of_it(tmp_path):
    """Somebody lists the entry while its request is in flight, and the machine is not there yet."""
    path = str(tmp_path / "ledger.db")
    seen: list[Entry] = []

    def choose(sent: Sent) -> bytes:
        with closing(open_ledger(path, read_only=True)) as others:
            seen.append(others.get(Key(service.url, "compute_virtual_machine", "web01")))
        return answer(201, {"id": "i-1", **json.loads(sent.body)})

    with running(choose) as service:
        somebody = Terminal(tmp_path, service.url)
        somebody.send_list(["web01"], path)
    ended = somebody.edit(path, "web01", state="absent", changed_at=seen[0].changed_at)
    assert ended.result["failed"]
    assert "was changed at 2026-01-01T00:01:01Z and is done" in ended.said
