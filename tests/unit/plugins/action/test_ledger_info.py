# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A listing as a task; tests/ledger has what is listed."""

from __future__ import annotations

import pytest
from story.commands import Terminal


@pytest.mark.parametrize("no_log", [True, False])
def test_the_table_is_not_shown_if_the_task_hides_it(tmp_path, no_log):
    somebody = Terminal(tmp_path, "https://s.example")
    somebody.edit("fleet.db", "web01", asset={"id": "i-1"})
    shows = {"__shows_table": True}
    ended = somebody.run("ledger_info", {"ledger": "fleet.db"}, variables=shows, no_log=no_log)
    assert any("web01" in line for line in ended.result["text"])
    assert any("web01" in line for line in ended.lines) is not no_log
