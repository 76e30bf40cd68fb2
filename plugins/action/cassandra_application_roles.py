# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Runs the module of the same name inside the Ansible worker where that is safe."""

from ..module_utils._task.specs import APPLICATION_ROLES
from ..plugin_utils._run.action import Action
from ..plugin_utils._run.sending import send


class ActionModule(Action):
    """The same options and results as the module."""

    spec = APPLICATION_ROLES
    work = staticmethod(send)
