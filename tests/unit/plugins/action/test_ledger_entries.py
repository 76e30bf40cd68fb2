# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Edits of a list as a task; tests/ledger has what becomes of the entries."""

from __future__ import annotations

import pytest
from story.commands import Terminal


def test_reports_that_are_no_list_of_paths_are_refused(tmp_path):
    options = {"ledger": "fleet.db", "base_url": "https://s.example", "entries": []}
    somebody = Terminal(tmp_path, "https://s.example")
    ended = somebody.run("ledger_entries", options, variables={"__reports": [{}]})
    assert ended.result["msg"].startswith("report[0]: must be a string")


@pytest.mark.parametrize("no_log", [True, False])
def test_the_edited_entries_are_not_named_if_the_task_hides_them(tmp_path, no_log):
    entry = {"resource": "compute_virtual_machine", "name": "web01", "asset": {"id": "i-1"}}
    options = {"ledger": "fleet.db", "base_url": "https://s.example", "entries": [entry]}
    somebody = Terminal(tmp_path, "https://s.example")
    ended = somebody.run("ledger_entries", options, no_log=no_log)
    assert ended.result["names"]["adopted"] == ["web01"]
    assert any("web01" in line for line in ended.lines) is not no_log
    assert any("is a new ledger" in line for line in ended.lines)
