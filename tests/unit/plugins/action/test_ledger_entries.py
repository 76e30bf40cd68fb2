# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Edits of a list as a task; tests/ledger has what becomes of the entries."""

from __future__ import annotations

from story.commands import Terminal


def test_reports_that_are_no_list_of_paths_are_refused(tmp_path):
    options = {"ledger": "fleet.db", "base_url": "https://s.example", "entries": []}
    somebody = Terminal(tmp_path, "https://s.example")
    ended = somebody.run("ledger_entries", options, variables={"__reports": [{}]})
    assert ended.result["msg"].startswith("report[0]: must be a string")
