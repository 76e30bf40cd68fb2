# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A worker: the process that forked it, its environment, and what it says at its end.

After Ctrl-C nobody waits for the results of workers, so each leaves its message in a file in the
temporary directory of the run, for the exit handler there.
"""

from __future__ import annotations

import atexit
import hashlib
import multiprocessing
import os
import sys
import time
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Iterable, Iterator, Mapping

from ansible import constants
from ansible.utils.display import Display

from ...module_utils._errors import InvalidInput, ServicesError
from ...module_utils._task.signals import Signals

_DIRECTORY = (
    constants.DEFAULT_LOCAL_TMP
)  # of this run of Ansible alone, which removes it at its end
_MESSAGE = "infrastructure.services-message-"
_POLL_INTERVAL = 0.1  # seconds
_DISPLAYED = "infrastructure_services_lines"  # what the first process displays for its workers
_FIRST = os.getpid()  # the process that starts the workers imports the action plugins, too
_HAS_COLORS = (
    sys.stderr.isatty() or constants.ANSIBLE_FORCE_COLOR
)  # asked here: the stderr of a worker is none
_COLORS = {
    "?": "WARN",
    "x": "ERROR",
    "!": "WARN",
    "+": "OK",
    "~": "CHANGED",
    "-": "SKIP",
}  # by the mark of a line
_WHY = "a name must not be empty or contain =; neither it nor its value may contain NUL or a lone surrogate"

_fork = {"parent": os.getppid(), "forking": 0}
os.register_at_fork(  # asked before the fork: the parent may die right after it
    before=lambda: _fork.update(forking=os.getpid()),
    after_in_child=lambda: _fork.update(parent=_fork["forking"]),
)


def run_id() -> str:
    """Return the unique id of this run, the same in all its workers."""
    return os.path.basename(_DIRECTORY).removeprefix("ansible-local-")


def is_orphan() -> bool:
    """Return whether ansible-playbook has died, so that nobody reads the result of this worker."""
    return os.getppid() != _fork["parent"]


def require_parent() -> None:
    """Raise ServicesError in an orphan."""
    if is_orphan():
        raise ServicesError(
            "Nothing was sent: the run of Ansible that this task belongs to has ended."
        )


@contextmanager
def environment(variables: Mapping[str, str]) -> Iterator[None]:
    """Set exactly these environment variables within the context; raise InvalidInput for one that
    cannot be set.
    """
    before = dict(os.environ)
    if before == variables:
        yield
        return
    try:
        _set(variables)
        yield
    finally:
        _set(before)


def _set(variables: Mapping[str, str]) -> None:
    for name in os.environ.keys() - variables.keys():
        del os.environ[name]
    for name, value in variables.items():
        try:
            os.environ[name] = value
        except (OSError, ValueError):
            raise InvalidInput(
                "environment", f"the variable {name!r} cannot be set: {_WHY}"
            ) from None


def color_of(line: str) -> str | None:
    """Return the color of a line on stderr, None for that of the terminal; Ansible adds none with
    ANSIBLE_NOCOLOR.
    """
    mark = line[2:4].removesuffix(" ")
    return getattr(constants, f"COLOR_{_COLORS[mark]}") if _HAS_COLORS and mark in _COLORS else None


def show_lines(lines: Iterable[str], stderr: bool = True) -> None:
    """Display lines, on stderr where stdout stays a document that a callback prints."""
    colored = [(line, color_of(line)) for line in lines]
    queue = Display()._final_q if os.getpid() != _FIRST else None
    if queue:
        queue.send_display(_DISPLAYED, colored, stderr)
    else:
        _display(colored, stderr)


def _display(lines: list[tuple[str, str | None]], stderr: bool = True) -> None:
    """Display lines with their colors, as long as somebody reads them.

    The thread of the first process that does it for workers receives their results, too, and any
    OSError ends it.
    """
    with suppress(OSError):
        for line, color in lines:
            Display().display(line, color=color, stderr=stderr)


setattr(
    Display(), _DISPLAYED, _display
)  # a worker can have the first process call a method of its display


def show_message(message: str) -> None:
    """Have a message shown by a run that is ending, which no longer displays what its workers say."""
    with suppress(OSError):
        content = os.fsencode(message)
        name = _MESSAGE + hashlib.sha256(content).hexdigest()
        written = Path(_DIRECTORY, f"new-{name}")
        written.write_bytes(content)
        written.rename(Path(_DIRECTORY, name))


def say(signals: Signals, line: str) -> None:
    """Display a line, also when Ansible no longer displays what workers say."""
    if signals.caught:
        show_message(line)
    else:
        show_lines([line])


@atexit.register  # registered after ansible-core's own handler, which removes the directory, so it runs first
def finish() -> None:
    """Wait for the workers, and show their messages."""
    if os.getpid() != _FIRST:
        return
    workers = [worker for worker in multiprocessing.active_children() if not worker.daemon]
    with suppress(KeyboardInterrupt):  # a second Ctrl-C: stop waiting
        while any(worker.is_alive() for worker in workers):  # Python itself waits for them, too
            _show_messages()
            time.sleep(_POLL_INTERVAL)
    _show_messages()


def _show_messages() -> None:
    for message in Path(_DIRECTORY).glob(f"{_MESSAGE}*"):
        text = os.fsdecode(message.read_bytes())
        message.unlink()
        _display([(f"[WARNING]: {text}", constants.COLOR_WARN)])
