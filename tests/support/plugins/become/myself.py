"""Become the current user, through a shell as sudo does, or fail the way sudo fails."""

from __future__ import annotations

from ansible.plugins.become import BecomeBase

DOCUMENTATION = """
name: myself
short_description: become the current user
description: Takes the code path of every become method, and needs no other user on this machine.
author: The infrastructure.services contributors (!UNKNOWN)
options:
  become_user:
    description: V(nobody) is refused.
    default: myself
    vars: [{name: ansible_become_user}]
    keyword: [{name: become_user}]
  become_exe:
    description: Not used.
    default: ""
  become_flags:
    description: Not used.
    default: ""
  become_pass:
    description: Not used.
    vars: [{name: ansible_become_password}]
"""


class BecomeModule(BecomeBase):
    """Runs the command; becoming nobody fails with sudo's message."""

    name = "myself"
    fail = ("Sorry, you are not allowed",)

    def build_become_command(self, cmd, shell):
        """Return the command that becomes the user."""
        super().build_become_command(cmd, shell)
        if not cmd:
            return cmd
        if self.get_option("become_user") == "nobody":
            return "echo 'Sorry, you are not allowed to become nobody.' >&2; exit 1"
        return self._build_success_command(cmd, shell)
