# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""An edit as a task; tests/ledger has what becomes of the entry."""

from __future__ import annotations

import pytest
from story.commands import Terminal


@pytest.mark.parametrize(
    ("edit", "is_created"),
    [({"state": "absent"}, False), ({"state": "present", "asset": {"id": "i-1"}}, True)],
)
def test_only_an_edit_that_adds_something_creates_a_ledger(tmp_path, edit, is_created):
    ended = Terminal(tmp_path, "https://s.example").edit("new.db", "web01", **edit)
    assert ended.result["changed"] is is_created
    assert (tmp_path / "new.db").exists() is is_created


def test_control_characters_of_a_name_do_not_reach_the_screen(tmp_path):
    somebody = Terminal(tmp_path, "https://s.example")
    (warning,) = somebody.edit("new.db", "a\x1b[31m", state="absent").result["warnings"]
    assert warning.startswith("compute_virtual_machine a [31m: no entry of this name for")
