# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The local connection under another name, so that modules run the ordinary way: packaged, in a
Python of their own.
"""

from __future__ import annotations

from ansible.plugins.connection.local import Connection as LocalConnection

DOCUMENTATION = """
name: process
short_description: run modules on this machine as on any other
description: Does what the local connection does; its different name keeps tasks from running inside the worker.
author: The infrastructure.services contributors (!UNKNOWN)
"""


class Connection(LocalConnection):
    """A host like any other, which happens to be this one."""

    transport = "process"
