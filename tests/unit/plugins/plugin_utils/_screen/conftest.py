# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Every report that is written is held against its schema."""

from __future__ import annotations

import pytest
from ansible_collections.infrastructure.services.plugins.plugin_utils._screen import report
from support.reports import hold


@pytest.fixture(autouse=True)
def _reports_are_as_their_schema_says(monkeypatch):
    replace = report.replace

    def held(file: str, text: str) -> None:
        hold(text)
        replace(file, text)

    monkeypatch.setattr(report, "replace", held)
