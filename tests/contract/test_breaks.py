# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Each deliberate break (tests/tools/breaks.py) can be applied to the code, and its test files
exist.
"""

from __future__ import annotations

from support.checkout import CHECKOUT
from tools.breaks import entries


def test_every_break_can_be_applied():
    assert [entry["break"] for entry in entries([]) if times_found(entry) != 1] == []


def test_the_tests_that_notice_a_break_exist():
    files = {file for entry in entries([]) for file in entry["red"]}
    assert [file for file in sorted(files) if not (CHECKOUT / file).is_file()] == []


def times_found(entry: dict) -> int:
    """Return how often the code has the text that a break replaces."""
    return (CHECKOUT / entry["file"]).read_text(encoding="utf-8").count(entry["old"])
