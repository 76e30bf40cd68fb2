# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The number of writes to a ledger file, noted in its lock file.

The file itself counts them in its user_version. A file that counts fewer writes than its lock file
is older: somebody has restored a backup.
"""

from __future__ import annotations

import os
import re
from contextlib import suppress

_NOTE = re.compile(rb"([0-9]{20})\n")
_BYTES = 21


def read_note(lock_file: int | str) -> int:
    """Return the noted number of writes, 0 if there is none; `lock_file`: a descriptor or a path."""
    with suppress(OSError):
        if isinstance(lock_file, int):
            found = os.pread(lock_file, _BYTES + 1, 0)
        else:
            with open(lock_file, "rb") as file:
                found = file.read(_BYTES + 1)
        note = _NOTE.fullmatch(found)
        return int(note[1]) if note else 0
    return 0


def write_note(descriptor: int, count: int) -> None:
    """Note the number of writes; if this fails, an older file is used without a warning."""
    with suppress(OSError):
        os.pwrite(descriptor, b"%020d\n" % count, 0)


def is_lock_file(descriptor: int) -> bool:
    """Return whether nothing but a lock file can be behind a descriptor.

    Another user may have put a different file there: one with another name, or with content.
    """
    with suppress(OSError):
        found = os.fstat(descriptor)
        if found.st_nlink == 1:
            is_empty = found.st_size == 0 and found.st_uid == os.geteuid()
            return is_empty or _NOTE.fullmatch(os.pread(descriptor, _BYTES + 1, 0)) is not None
    return False
