"""Gives the requests of a list that is told to stop half a second instead of ten, so that a test
need not wait.
"""

from __future__ import annotations

from ansible.plugins.callback import CallbackBase

DOCUMENTATION = """
name: impatient
type: aggregate
short_description: shortens the grace period of a list
description: Used by tests/many/test_ends.py.
"""


class CallbackModule(CallbackBase):
    """Changes a module that workers inherit when they are forked."""

    CALLBACK_VERSION = 2.0
    CALLBACK_TYPE = "aggregate"
    CALLBACK_NAME = "impatient"
    CALLBACK_NEEDS_ENABLED = True

    def v2_playbook_on_task_start(self, task, is_conditional):
        """Wait until the collections can be imported."""
        from ansible_collections.infrastructure.services.plugins.module_utils._list import threads  # noqa: PLC0415

        threads.GRACE = 0.5
