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
options:
  become_success_timeout:
    description: As that of the local connection.
    type: int
    default: 10
  become_strip_preamble:
    description: As that of the local connection.
    type: bool
    default: true
"""


class Connection(LocalConnection):
    """A host like any other, which happens to be this one."""

    transport = "process"
