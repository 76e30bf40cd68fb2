# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The SQLite ledgers that the workers of a run used: when it ends, its first process makes each of them one whole file.

A worker ends without a word, with its ledgers open, so it leaves their paths in the temporary directory of the run.
"""

from __future__ import annotations

import atexit
import hashlib
import os
from contextlib import suppress
from pathlib import Path

from .._ledger.sqlite import make_whole
from .core import run_directory

_PREFIX = "infrastructure.services-ledger-"
_FIRST = os.getpid()  # the process that starts the workers imports the action plugins, too


def note(file: str) -> None:
    """Remember a ledger until the end of the run."""
    with suppress(OSError):
        path = Path(run_directory(), _PREFIX + hashlib.sha256(os.fsencode(file)).hexdigest())
        path.write_bytes(os.fsencode(file))


@atexit.register  # later than ansible-core's own, which removes the directory, and so run before it
def settle() -> None:
    """Make the ledgers whole that nobody uses any more."""
    if os.getpid() == _FIRST:
        for path in Path(run_directory()).glob(f"{_PREFIX}*"):
            make_whole(os.fsdecode(path.read_bytes()))
