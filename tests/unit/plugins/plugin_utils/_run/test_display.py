# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Messages for the end of a run: the process that started the workers displays each of them once."""

from __future__ import annotations

import os

import pytest
from ansible_collections.infrastructure.services.plugins.plugin_utils._run import display


@pytest.fixture
def lines(monkeypatch, tmp_path) -> list[str]:
    """What is displayed in a run with a directory of its own."""
    shown: list[str] = []
    monkeypatch.setattr(display, "run_directory", lambda: str(tmp_path))
    monkeypatch.setattr(display, "_display", lambda line, *_color: shown.append(line))
    return shown


def test_the_first_process_displays_the_messages_of_its_workers(lines):
    for message in ("web01 is in doubt", "web01 is in doubt", "web02 is in doubt"):
        display.leave_message(message)
    display._end_display(os.getpid() + 1)
    assert lines == []
    display._end_display(os.getpid())
    told = ["[WARNING]: web01 is in doubt", "[WARNING]: web02 is in doubt"]
    assert sorted(lines) == told
    display._end_display(os.getpid())
    assert sorted(lines) == told


@pytest.mark.parametrize(
    ("line", "color"),
    [
        ("  ? web01  in doubt since 2026-11-22 10:02", "WARN"),
        ("  x web01", "ERROR"),
        ("  ! web01", "WARN"),
        ("  + web01", "OK"),
        ("  ~ web01", "CHANGED"),
        ("  . web01  recorded, not listed: left alone", None),
        ("      + web01", None),
        ("  and 3 more", None),
        ("vmx   done    2026-11-22 10:02", None),  # a row of show_ledger
        ("vm~", None),
        ("", None),
    ],
)
def test_a_line_has_the_color_of_its_mark(monkeypatch, line, color):
    monkeypatch.setattr(display, "setting", lambda name: name)
    assert display.color_of(line) == (color and f"COLOR_{color}")


@pytest.mark.parametrize("stderr", [True, False])
def test_the_first_process_displays_the_lines_of_its_workers(lines, monkeypatch, stderr):
    asked = []
    monkeypatch.setattr(display.atexit, "register", lambda *_work: None)
    monkeypatch.setattr(display, "prints_lines", lambda: not stderr)
    monkeypatch.setattr(display, "call_first_display", lambda *call: asked.append(call) or True)
    display.prepare_display.__wrapped__()
    display.show_lines(["one", "two"])
    assert lines == []
    ((method, *arguments),) = asked
    getattr(display.Display(), method)(*arguments)
    assert lines == ["one", "two"]
