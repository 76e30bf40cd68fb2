"""Every report that is written is held against its schema."""

from __future__ import annotations

import pytest
from ansible_collections.infrastructure.services.plugins.plugin_utils._screen import report
from support.reports import hold


@pytest.fixture(autouse=True)
def _reports_are_as_their_schema_says(monkeypatch):
    dumps = report.json.dumps

    def held(value: object, **options: object) -> str:
        text = dumps(value, **options)
        hold(text)
        return text

    monkeypatch.setattr(report.json, "dumps", held)
