# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Runs ledger_entry on the controller, whatever the connection of the task."""

from __future__ import annotations

from ..module_utils._fields import Params
from ..module_utils._result import Returned
from ..module_utils._task.specs import LEDGER_ENTRY
from ..plugin_utils._ledger.editing import Editor
from ..plugin_utils._run.ledger_actions import EditingAction


class ActionModule(EditingAction):
    """Edits one entry."""

    spec = LEDGER_ENTRY

    def edit(self, editor: Editor, params: Params) -> Returned:
        return editor.edit_entry(params)
