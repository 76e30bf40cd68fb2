"""A host that is unreachable, or whose connection is lost once it has run the module."""

from __future__ import annotations

from ansible.errors import AnsibleConnectionFailure
from ansible.plugins.connection.local import Connection as LocalConnection

DOCUMENTATION = """
name: away
short_description: lose the host
description: Fails as ssh does for an unreachable host, before the first command or after the module has run.
author: The infrastructure.services contributors (!UNKNOWN)
options:
  away:
    description: V(late) to fail after the module has run, else at once.
    type: str
    default: at once
    vars: [{name: ansible_away}]
  reconnection_retries:
    description: How often a command is run again after that, as ssh does.
    type: int
    default: 0
    vars: [{name: ansible_ssh_retries}]
"""


class Connection(LocalConnection):
    """This machine, with a cable that gets unplugged."""

    transport = "away"

    def _connect(self):
        """Fail as ssh does when nothing is listening."""
        if self.get_option("away") != "late":
            raise AnsibleConnectionFailure(
                "Failed to connect to the host via ssh: Connection refused"
            )
        return super()._connect()

    def exec_command(self, cmd, in_data=None, sudoable=True):
        """Run the command, but lose the module's answer."""
        done = super().exec_command(cmd, in_data, sudoable)
        if in_data or "AnsiballZ_" in str(cmd):
            for _again in range(self.get_option("reconnection_retries")):
                super().exec_command(cmd, in_data, sudoable)
            raise AnsibleConnectionFailure(
                "Failed to connect to the host via ssh: Connection reset by peer"
            )
        return done
