# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A worker detects that its parent has died."""

from __future__ import annotations

import os
import time

from ansible_collections.infrastructure.services.plugins.module_utils._errors import ServicesError
from ansible_collections.infrastructure.services.plugins.plugin_utils._run.process import require_parent


def said_by_a_grandchild(child_stays: bool) -> str:
    """Return what a worker reports whose parent stays or dies."""
    read, write = os.pipe()
    if not (child := os.fork()):
        parent = os.getpid()
        if not os.fork():
            while not child_stays and os.getppid() == parent:
                time.sleep(0.005)
            try:
                require_parent()
                os.write(write, b"there")
            except ServicesError as error:
                os.write(write, f"{error.outcome}: {error.msg}".encode())
            os._exit(0)
        if child_stays:
            os.wait()
        os._exit(0)
    os.close(write)
    os.waitpid(child, 0)
    with os.fdopen(read) as file:
        return file.read()


def test_a_worker_of_a_live_run_may_send():
    assert said_by_a_grandchild(child_stays=True) == "there"


def test_an_orphan_may_not():
    assert said_by_a_grandchild(child_stays=False).startswith("not_sent: Nothing was sent")
