# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
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
        from ansible_collections.infrastructure.services.plugins.module_utils._list import sending  # noqa: PLC0415

        sending.GRACE = 0.5
