# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A move as a task; tests/ledger has the moves themselves."""

from __future__ import annotations

import threading
from contextlib import closing

import pytest
from ansible_collections.infrastructure.services.plugins.plugin_utils._ledger import store
from ansible_collections.infrastructure.services.plugins.plugin_utils._ledger.entries import (
    INTENT,
    Entry,
    Key,
)
from ansible_collections.infrastructure.services.plugins.plugin_utils._ledger.location import (
    open_ledger,
)
from ansible_collections.infrastructure.services.plugins.plugin_utils._ledger.moving import (
    move_ledger,
    open_source,
)
from ledger.entries import put
from story.commands import Terminal
from support.waiting import until

KEY = Key("https://s.example", "compute_virtual_machine", "web01")


@pytest.fixture
def somebody(tmp_path) -> Terminal:
    return Terminal(tmp_path, KEY.base_url)


def test_a_move_says_which_request_it_waits_for(somebody, monkeypatch):
    monkeypatch.setattr(store, "SILENT", 0)
    intent = Entry(INTENT, {"name": KEY.name}, {}, by="me@here", began_at="2026-01-02T03:04:05Z")
    with closing(open_ledger(str(somebody.directory / "old.db"))) as ledger:
        put(ledger, KEY, intent)
        ledger.lock(KEY, wait=True)
        threading.Timer(0.3, ledger.release, [KEY]).start()
        moved = somebody.move("old.db", "new.db")
    assert moved.result["changed"]
    waits = "virtual machine web01: waiting for me@here, since 2026-01-02T03:04:05Z"
    assert waits in moved.lines


def test_a_move_that_waits_for_another_one_says_so_and_goes_on_where_that_ended(somebody):
    old, new = (str(somebody.directory / name) for name in ("old.db", "new.db"))
    intent = Entry(INTENT, {"name": KEY.name}, {})

    def move() -> None:
        with closing(open_source(old, read_only=False)) as source:
            move_ledger(source, lambda reads: open_ledger(new, reads, moving=True), False)

    with closing(open_ledger(old)) as ledger:
        put(ledger, KEY, intent)
        ledger.lock(KEY, wait=True)
        other = threading.Thread(target=move)
        other.start()
        until(lambda: ledger.mark().state == "moving")
        threading.Timer(0.3, ledger.release, [KEY]).start()
        moved = somebody.move("old.db", "new.db")
        other.join()
    assert (moved.result["changed"], moved.result["counts"]["entries"]) == (False, 1)
    assert "ledger move: waiting for another task" in moved.lines


@pytest.mark.parametrize("check_mode", [True, False])
def test_entries_of_no_ledger_are_not_moved_and_none_is_created(somebody, check_mode):
    options = {"ledger": "old.db", "base_url": KEY.base_url, "to_base_url": "https://t.example"}
    ended = somebody.run("ledger_move", options, check_mode)
    assert ended.result["failed"]
    assert "no ledger at " in ended.said
    assert [*somebody.directory.iterdir()] == []


@pytest.mark.parametrize(
    ("to", "problem"),
    [
        ("", "to: is empty"),
        ("mysql://x/y", "to: it must be a path or a postgresql:// URL"),
        ("a\0b", "to: it is not a path"),
        ("ansible_collections/new.db", "to: {directory}/ansible_collections/new.db is inside"),
        ("none/new.db", "to: {directory}/none/new.db cannot be opened"),
        ("postgresql://host:port/db", "to: it is not a valid postgresql:// URL"),
    ],
)
def test_a_place_to_move_to_that_cannot_be_used_is_refused_by_the_name_of_its_option(
    somebody, to, problem
):
    open_ledger(str(somebody.directory / "old.db")).close()
    ended = somebody.run("ledger_move", {"ledger": "old.db", "to": to})
    assert ended.result["msg"].startswith(problem.format(directory=somebody.directory))


def test_a_new_ledger_that_may_not_be_created_is_refused_by_the_name_of_its_option(somebody):
    open_ledger(str(somebody.directory / "old.db")).close()
    options = {"ledger": "old.db", "to": "new.db", "ledger_create": False}
    ended = somebody.run("ledger_move", options)
    assert ended.result["msg"].startswith(f"to: there is none at {somebody.directory}/new.db")


@pytest.mark.parametrize(
    "options",
    [
        {"ledger": "none.db", "to": "new.db"},
        {"ledger": "old.db", "to": "other.db"},
        {"ledger": "none.db", "base_url": KEY.base_url, "to_base_url": "https://t.example"},
        {"ledger": "old.db", "base_url": KEY.base_url, "to_base_url": KEY.base_url},
        {"ledger": "old.db", "base_url": KEY.base_url, "to_base_url": "https://t.example"},
    ],
)
def test_a_move_that_is_refused_says_once_that_it_has_no_effect(somebody, options):
    for name in ("old.db", "other.db"):
        open_ledger(str(somebody.directory / name)).close()
    said = somebody.run("ledger_move", options).result["msg"]
    assert said.endswith(". No entry was changed.")
    assert "nothing was moved" not in said.lower()
