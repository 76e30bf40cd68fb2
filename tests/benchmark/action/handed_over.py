# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A task that ignores its options and returns the contents of a file: the cost of ansible-core
alone for both.
"""

from __future__ import annotations

import json

from ansible.plugins.action import ActionBase
from ansible_collections.infrastructure.services.plugins.plugin_utils._run.ansible_core import (
    untrusted,
)


class ActionModule(ActionBase):
    """Options: `given`, a list; `returned`, the path of a JSON file."""

    _supports_check_mode = True

    def run(self, tmp=None, task_vars=None):
        with open(self._task.args["returned"], encoding="utf-8") as file:
            return untrusted(json.load(file))
