# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What urllib3 would log or warn of while requests are sent."""

from __future__ import annotations

import logging
import threading
import warnings
from contextlib import ExitStack

try:
    from urllib3.exceptions import InsecureRequestWarning
except ImportError:
    InsecureRequestWarning = Warning  # then nothing is sent


class _LoggingDisabled:
    """Log nothing: urllib3 quotes what servers send, secrets included, on standard error or in Ansible's log.

    Both settings are the whole process's: the first thread to enter makes them, the last one to leave restores them.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._inside = 0
        self._restore = ExitStack()

    def __enter__(self) -> None:
        with self._lock:
            if not self._inside:
                self._restore.callback(logging.disable, logging.root.manager.disable)
                logging.disable(logging.CRITICAL)
                self._restore.enter_context(warnings.catch_warnings())
                warnings.simplefilter("ignore", InsecureRequestWarning)  # reported once, as a warning of the task
            self._inside += 1

    def __exit__(self, *_error: object) -> None:
        with self._lock:
            self._inside -= 1
            if not self._inside:
                self._restore.close()


logging_disabled = _LoggingDisabled()
