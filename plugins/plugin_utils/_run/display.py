# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Lines on the screen: the process that starts the workers displays them.

After Ctrl-C it displays no more lines of workers. So each worker leaves its last message in a file
in the temporary directory of the run, for the exit handler of that process.
"""

from __future__ import annotations

import atexit
import hashlib
import multiprocessing
import os
import time
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Iterable

from ansible.utils.display import Display

from ...module_utils._task.signals import Signals
from .ansible_core import call_first_display, prints_lines, run_directory, setting

_MESSAGE = "infrastructure.services-message-"
_POLL_INTERVAL = 0.1  # seconds
# The method of the display in the process that starts the workers.
_METHOD = "infrastructure_services_lines"
# By the mark of a line, which two spaces precede.
_COLORS = {
    "?": "WARN",
    "x": "ERROR",
    "!": "WARN",
    "+": "OK",
    "~": "CHANGED",
}


@cache
def prepare_display() -> None:
    """Display the lines of the workers that this process starts, and their messages at its end."""
    setattr(Display(), _METHOD, _display_lines)
    # It runs before ansible-core's own handler, registered earlier, which removes the directory.
    atexit.register(_end_display, os.getpid())


def show_lines(lines: Iterable[str]) -> None:
    """Display a plan or a result on stdout, or on stderr where a callback prints a document."""
    _show(list(lines), stderr=not prints_lines())


def _show(lines: list[str], stderr: bool) -> None:
    if not call_first_display(_METHOD, lines, stderr):
        _display_lines(lines, stderr)


def _display_lines(lines: list[str], stderr: bool) -> None:
    for line in lines:
        # Ansible detects whether stdout shows colors, but does not check stderr.
        _display(line, None if stderr else color_of(line), stderr)


def color_of(line: str) -> str | None:
    """Return the color of a line, None for the default of the terminal."""
    mark = line[2:4].removesuffix(" ") if line.startswith("  ") else ""
    return setting(f"COLOR_{_COLORS[mark]}") if mark in _COLORS else None


def _display(line: str, color: str | None, stderr: bool = True) -> None:
    """Display a line if somebody reads it.

    The thread that displays lines of workers also receives their results, and any OSError ends it.
    """
    with suppress(OSError):
        Display().display(line, color=color, stderr=stderr)


def say(signals: Signals, line: str) -> None:
    """Display a line on stderr, even when Ansible no longer displays lines of workers."""
    if signals.caught:
        leave_message(line)
    else:
        _show([line], stderr=True)


def leave_message(message: str) -> None:
    """Leave a message for the end of a run that no longer displays lines of workers."""
    with suppress(OSError):
        content = os.fsencode(message)
        name = _MESSAGE + hashlib.sha256(content).hexdigest()
        written = Path(run_directory(), f"new-{name}")
        written.write_bytes(content)
        written.rename(Path(run_directory(), name))


def _end_display(first: int) -> None:
    """Wait for the workers of the first process, and show their messages."""
    if os.getpid() != first:
        return
    workers = [worker for worker in multiprocessing.active_children() if not worker.daemon]
    with suppress(KeyboardInterrupt):  # a second Ctrl-C: stop waiting
        # Python itself waits for them as well.
        while any(worker.is_alive() for worker in workers):
            _show_messages()
            time.sleep(_POLL_INTERVAL)
    _show_messages()


def _show_messages() -> None:
    for message in Path(run_directory()).glob(f"{_MESSAGE}*"):
        text = os.fsdecode(message.read_bytes())
        message.unlink()
        _display(f"[WARNING]: {text}", setting("COLOR_WARN"))
