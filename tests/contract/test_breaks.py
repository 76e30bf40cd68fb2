# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Each deliberate break (tests/tools/breaks.py) can be applied to the code, and its test files
exist.
"""

from __future__ import annotations

import pytest
from support.checkout import CHECKOUT
from tools.breaks import entries

ENTRIES = {entry["break"]: entry for entry in entries([])}


@pytest.mark.parametrize("name", ENTRIES)
def test_a_break_can_be_applied(name):
    entry = ENTRIES[name]
    assert (CHECKOUT / entry["file"]).read_text(encoding="utf-8").count(entry["old"]) == 1
    assert [file for file in entry["red"] if not (CHECKOUT / file).is_file()] == []
