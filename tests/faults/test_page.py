"""docs/reliability.md matches the table."""

from __future__ import annotations

from tools import reliability


def test_the_page_is_current():
    assert reliability.PAGE.read_text(encoding="utf-8") == reliability.page(), (
        f"run: {reliability.COMMAND}"
    )
