# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Messages that workers leave to the exit handler of a run: after Ctrl-C nobody waits for their results.

A worker writes its message to a file in the temporary directory of the run.
"""

from __future__ import annotations

import atexit
import hashlib
import multiprocessing
import os
import time
from contextlib import suppress
from pathlib import Path

from ansible import constants
from ansible.utils.display import Display

from ...module_utils._task.signals import MAX_SHUTDOWN
from .core import run_directory

_MESSAGE = "infrastructure.services-message-"
_FIRST = os.getpid()  # the process that starts the workers imports the action plugins, too


def show_message(message: str) -> None:
    """Have a message shown at the end of the run."""
    with suppress(OSError):
        content = os.fsencode(message)
        Path(run_directory(), _MESSAGE + hashlib.sha256(content).hexdigest()).write_bytes(content)


@atexit.register  # registered after ansible-core's own handler, which removes the directory, so it runs first
def finish() -> None:
    """Wait for the workers, and show their messages."""
    if os.getpid() != _FIRST:
        return
    deadline = time.monotonic() + MAX_SHUTDOWN  # Python itself waits for them, too
    with suppress(KeyboardInterrupt):  # a second Ctrl-C: stop waiting
        for worker in multiprocessing.active_children():
            if not worker.daemon:
                worker.join(max(0.0, deadline - time.monotonic()))
    for message in Path(run_directory()).glob(f"{_MESSAGE}*"):
        text = os.fsdecode(message.read_bytes())
        Display().display(f"[WARNING]: {text}", color=constants.COLOR_WARN, stderr=True)
