"""Write what workers do in our tasks, as reported by Python's audit hooks, to the file named by
AUDITOR_FILE.
"""

from __future__ import annotations

import os
import sys
from functools import wraps
from pathlib import Path

from ansible.plugins.callback import CallbackBase

DOCUMENTATION = """
name: auditor
type: aggregate
short_description: record worker activity for the tests
description: Writes a line for each import, process and connection to the file named by the variable AUDITOR_FILE.
author: The infrastructure.services contributors (!UNKNOWN)
"""
ACTION = "ansible_collections.infrastructure.services.plugins.plugin_utils._run.action"
WATCHED = {
    "import",
    "os.fork",
    "os.forkpty",
    "os.exec",
    "os.posix_spawn",
    "subprocess.Popen",
    "socket.connect",
}


class CallbackModule(CallbackBase):
    """Watches from the start of a task, by which time the parent should have imported all that a
    worker needs.
    """

    CALLBACK_VERSION = 2.0
    CALLBACK_TYPE = "aggregate"
    CALLBACK_NAME = "auditor"
    CALLBACK_NEEDS_ENABLED = True
    _watching = False

    def v2_playbook_on_task_start(self, task, is_conditional):
        """Start watching; this process forks the workers, which inherit the hook."""
        if self._watching:
            return
        self._watching, parent = True, os.getpid()
        self._write(f"imported {'requests' in sys.modules and ACTION in sys.modules}")
        action = sys.modules[ACTION].Action
        action.run = self._marked(action.run)
        sys.addaudithook(
            lambda event, arguments: (
                self._heard(event, arguments) if os.getpid() != parent else None
            )
        )

    def _marked(self, run):
        @wraps(run)
        def marked(*args, **kwargs):
            self._write("item")
            return run(*args, **kwargs)

        return marked

    def _heard(self, event: str, arguments: tuple) -> None:
        if event in WATCHED:
            self._write(f"{event} {arguments[0] if event == 'import' else ''}")

    def _write(self, line: str) -> None:
        with Path(os.environ["AUDITOR_FILE"]).open("a", encoding="utf-8") as file:
            file.write(f"{line.strip()}\n")
