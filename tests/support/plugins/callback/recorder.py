"""Write the result of each task, and of each loop item, as a line of JSON to the file named by
RECORDER_FILE.
"""

from __future__ import annotations

import json
import os
from pathlib import Path

from ansible.plugins.callback import CallbackBase

DOCUMENTATION = """
name: recorder
type: aggregate
short_description: record results for the tests
description: Writes a line of JSON for each result to the file named by the environment variable RECORDER_FILE.
author: The infrastructure.services contributors (!UNKNOWN)
"""


class CallbackModule(CallbackBase):
    """Records what Ansible passes to callbacks, before it is formatted."""

    CALLBACK_VERSION = 2.0
    CALLBACK_TYPE = "aggregate"
    CALLBACK_NAME = "recorder"

    def _record(self, kind: str, result, failed: bool = False) -> None:
        # ansible-core 2.19 renamed the attributes and warns about the old names.
        task = result.task if hasattr(result, "task") else result._task
        host = result.host if hasattr(result, "host") else result._host
        data = result.result if hasattr(result, "result") else result._result
        # Newer cores omit `failed` from a result: add it on every core.
        said = {**data, "failed": failed}
        line = {
            "kind": kind,
            "task": task.get_name().strip(),
            "host": host.get_name(),
            "result": said,
        }
        with Path(os.environ["RECORDER_FILE"]).open("a", encoding="utf-8") as file:
            file.write(json.dumps(line) + "\n")

    def v2_runner_on_ok(self, result):
        """Record a task, including a whole loop."""
        self._record("task", result)

    def v2_runner_on_failed(self, result, ignore_errors=False):
        """Record a failed task."""
        self._record("task", result, failed=True)

    def v2_runner_on_unreachable(self, result):
        """Record a host that could not be reached."""
        self._record("task", result, failed=True)

    def v2_runner_item_on_ok(self, result):
        """Record an item of a loop."""
        self._record("item", result)

    def v2_runner_item_on_failed(self, result):
        """Record a failed item of a loop."""
        self._record("item", result, failed=True)
