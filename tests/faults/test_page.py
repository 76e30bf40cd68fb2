# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""docs/reliability.md matches the table."""

from __future__ import annotations

from tools import reliability


def test_the_page_is_current():
    assert reliability.PAGE.read_text(encoding="utf-8") == reliability.page(), (
        f"run: {reliability.COMMAND}"
    )
