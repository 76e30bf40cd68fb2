# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What workers leave to the exit handler of a run: ledgers to checkpoint, and messages to show.

A worker exits without running its exit handlers, with its ledgers open, and after Ctrl-C nobody waits for its result.
So it writes the paths of its SQLite ledgers, and its message, to files in the temporary directory of the run.
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

from ...module_utils._task.shutdown import MAX_SHUTDOWN
from .._ledger.sqlite import checkpoint
from .core import run_directory

_LEDGER, _MESSAGE = _KINDS = ("infrastructure.services-ledger-", "infrastructure.services-message-")
_FIRST = os.getpid()  # the process that starts the workers imports the action plugins, too


def checkpoint_ledger(file: str) -> None:
    """Have a ledger checkpointed at the end of the run."""
    _save(_LEDGER, file)


def show_message(message: str) -> None:
    """Have a message shown at the end of the run."""
    _save(_MESSAGE, message)


def _save(kind: str, text: str) -> None:
    with suppress(OSError):
        content = os.fsencode(text)
        Path(run_directory(), kind + hashlib.sha256(content).hexdigest()).write_bytes(content)


@atexit.register  # registered after ansible-core's own handler, which removes the directory, so it runs first
def finish() -> None:
    """Show the messages, and checkpoint the ledgers that are no longer in use."""
    if os.getpid() != _FIRST:
        return
    deadline = time.monotonic() + MAX_SHUTDOWN  # Python itself waits for them, too
    with suppress(KeyboardInterrupt):  # a second Ctrl-C: stop waiting
        for worker in multiprocessing.active_children():
            if not worker.daemon:
                worker.join(max(0.0, deadline - time.monotonic()))
    ledgers, messages = (
        [os.fsdecode(path.read_bytes()) for path in Path(run_directory()).glob(f"{kind}*")] for kind in _KINDS
    )
    for message in messages:
        Display().display(f"[WARNING]: {message}", color=constants.COLOR_WARN, stderr=True)
    for file in ledgers:
        checkpoint(file)
