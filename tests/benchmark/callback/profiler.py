# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Profiles the workers of a run, and writes the figures of the last one to the file PROFILER_FILE."""

from __future__ import annotations

import cProfile
import os
from functools import wraps

from ansible.executor.task_executor import TaskExecutor
from ansible.plugins.callback import CallbackBase

DOCUMENTATION = """
name: profiler
type: aggregate
short_description: Profiles the workers
description: Writes the measurements of cProfile to the file named by the environment variable PROFILER_FILE.
"""


def profiled(run):
    """Wrap what a worker does for a task."""

    @wraps(run)
    def wrapped(*args, **kwargs):
        profile = cProfile.Profile()
        try:
            return profile.runcall(run, *args, **kwargs)
        finally:
            profile.dump_stats(os.environ["PROFILER_FILE"])

    return wrapped


class CallbackModule(CallbackBase):
    """Only needs to be loaded; workers are forks of the process that loads it."""

    CALLBACK_VERSION = 2.0
    CALLBACK_TYPE = "aggregate"
    CALLBACK_NAME = "profiler"
    CALLBACK_NEEDS_ENABLED = True

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        TaskExecutor.run = profiled(TaskExecutor.run)
