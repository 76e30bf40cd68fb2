# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Runs a task under a file size limit: `python limited.py LOCATION URL MODE [WHEN]`. Prints its result.

MODE: `run` or `check`. WHEN: the files may not grow from `before` the task, or from `after` its answer; without WHEN
there is no limit.
"""

from __future__ import annotations

import json
import os
import resource
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
__import__("conftest")  # makes the collection importable
from ansible_collections.infrastructure.services.plugins.module_utils._http.transport import Transport
from ledger.tasks import task


def fill(location: str) -> None:
    """Stop files from growing beyond the log of the ledger, as on a full disk."""
    log = Path(f"{location}-wal")
    size = os.path.getsize(log) if log.exists() else 0
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))


def main(location: str, url: str, mode: str, when: str = "") -> None:
    real = Transport.send

    def send(*arguments, **options):
        try:
            return real(*arguments, **options)
        finally:
            fill(location)

    if when == "before":
        fill(location)
    elif when == "after":
        Transport.send = send
    os.write(1, json.dumps(task(location, base_url=url, check_mode=mode == "check")).encode())


if __name__ == "__main__":
    main(*sys.argv[1:])
