# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A worker detects that its parent has died."""

from __future__ import annotations

import os
import time

from ansible_collections.infrastructure.services.plugins.module_utils._errors import ServicesError
from ansible_collections.infrastructure.services.plugins.plugin_utils._run import worker


def said_by_a_worker(run_goes_on: bool) -> str:
    """Return what a worker reports whose run goes on, or ends before the worker's first line."""
    read, write = os.pipe()
    if not (run := os.fork()):
        try:
            fork_worker(write, run_goes_on)
        finally:
            os._exit(0)
    os.close(write)
    os.waitpid(run, 0)
    with os.fdopen(read) as file:
        return file.read()


def fork_worker(write: int, run_goes_on: bool) -> None:
    """Fork a worker that writes what it knows of its run, this process."""
    run = os.getpid()

    def wait_for_the_end():
        while not run_goes_on and os.getppid() == run:
            time.sleep(0.005)

    os.register_at_fork(after_in_child=wait_for_the_end)
    worker.parent.cache_clear()
    worker.parent()  # its hook runs after that one
    if not os.fork():
        try:
            worker.require_parent()
            os.write(write, b"there")
        except ServicesError as error:
            os.write(write, f"{error.outcome}: {error.msg}".encode())
    elif run_goes_on:
        os.wait()


def test_a_worker_of_a_live_run_may_send():
    assert said_by_a_worker(run_goes_on=True) == "there"


def test_an_orphan_may_not():
    assert said_by_a_worker(run_goes_on=False).startswith("not_sent: Nothing was sent")
