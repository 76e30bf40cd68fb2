"""Writes how many seconds each task took over all its hosts, one JSON line each, to the file
STOPWATCH_FILE.
"""

from __future__ import annotations

import json
import os
import time

from ansible.plugins.callback import CallbackBase

DOCUMENTATION = """
name: stopwatch
type: aggregate
short_description: Writes how long each task took
description: Writes a line of JSON for each task to the file named by the environment variable STOPWATCH_FILE.
"""


class CallbackModule(CallbackBase):
    """A task starts when Ansible announces it, and ends when the next one starts or the play is
    over.
    """

    CALLBACK_VERSION = 2.0
    CALLBACK_TYPE = "aggregate"
    CALLBACK_NAME = "stopwatch"
    CALLBACK_NEEDS_ENABLED = True

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self._running = None

    def v2_playbook_on_task_start(self, task, is_conditional):
        self._end()
        self._running = task.get_name(), time.monotonic()

    def v2_playbook_on_play_start(self, play):
        self._end()

    def v2_playbook_on_stats(self, stats):
        self._end()

    def _end(self):
        if self._running:
            name, began = self._running
            with open(os.environ["STOPWATCH_FILE"], "a", encoding="utf-8") as file:
                print(json.dumps({"task": name, "seconds": time.monotonic() - began}), file=file)
        self._running = None
