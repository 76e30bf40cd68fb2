"""Lists that are refused before anything is sent."""

from __future__ import annotations

import json
import threading
import time
from typing import Any

import pytest
from ansible_collections.infrastructure.services.plugins.plugin_utils._ledger.entries import (
    DONE,
    INTENT,
    Entry,
    Key,
)
from ansible_collections.infrastructure.services.plugins.plugin_utils._ledger.ledger import Ledger
from story.commands import Ended, Terminal
from support.ledgers import create, finish, opened, put
from support.wire import answer, running


def test_a_list_that_fails_says_where_each_item_is_explained(tmp_path):
    ledger = create(str(tmp_path / "ledger.db"), "http://127.0.0.1:9")
    ended = Terminal(tmp_path, "http://127.0.0.1:9").send_list(["a"], ledger)
    assert ended.result["msg"].endswith(" failed (1 not sent): a. See above.")


def test_a_list_that_is_refused_leaves_the_last_report_as_it_is(tmp_path):
    with running(lambda sent: answer(201, {"id": "i-1", "name": "a"})) as service:
        ledger = create(str(tmp_path / "ledger.db"), service.url)
        terminal, how = Terminal(tmp_path, service.url), {"report": str(tmp_path / "fleet.json")}
        terminal.send_list(["a"], ledger, **how)
        before = {file: file.read_bytes() for file in tmp_path.glob("fleet.*")}
        ended = terminal.send_list(["b", ""], ledger, **how)
    assert (ended.result["failed"], ended.result["outcome"]) == (True, "not_sent")
    assert {file: file.read_bytes() for file in tmp_path.glob("fleet.*")} == before
    assert (len(before), len(service.sent)) == (3, 1)


@pytest.mark.parametrize("no_log", [True, False])
def test_a_list_shows_nothing_on_the_screen_if_its_task_hides_it(tmp_path, no_log):
    somebody = Terminal(tmp_path, "http://127.0.0.1:9")
    ended = somebody.send_list(["a"], "none", check_mode=True, no_log=no_log)
    assert ended.result["counts"]["create"] == 1
    assert (ended.lines == []) is no_log


ROLE = Key("cassandra_application_role", "role-1")


def update(somebody: Terminal, **more: Any) -> Ended:
    """Run a list that sends the whole asset of a role."""
    options = {
        "base_url": somebody.base_url,
        "access_token": "a-token-of-this-test",
        "application_roles": [{"id": "role-1", "description": "one", "send": "complete"}],
        "ledger": str(somebody.directory / "ledger.db"),
    }
    return somebody.run("cassandra_application_roles", options, **more)


def test_a_list_waits_for_the_asset_of_another_run_if_it_sends_the_whole_asset(tmp_path):
    """Without the entry that the other run leaves, nobody knows what the whole asset is."""
    asset = {"id": "role-1", "name": "orders", "attributes": {"login": True}}
    with (
        running(lambda sent: answer(200, {"id": "role-1", **json.loads(sent.body)})) as service,
        opened(str(tmp_path / "ledger.db"), service.url) as others,
    ):
        intent = put(others, ROLE, Entry(INTENT, {"name": "orders"}, {}), lease_seconds=600)
        other = threading.Thread(target=end_after, args=(0.3, others, intent, asset))
        other.start()
        ended = update(Terminal(tmp_path, service.url))
        other.join()
    assert ended.result["counts"]["changed"] == 1
    (sent,) = service.sent
    assert json.loads(sent.body) == {**asset, "description": "one"}


def end_after(seconds: float, ledger: Ledger, intent: Entry, asset: dict) -> None:
    """Record that the other run has ended."""
    time.sleep(seconds)
    finish(ledger, ROLE, intent, Entry(DONE, {"name": "orders"}, asset))
