# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Shell commands to paste that settle doubts.

`shown`: the ledger in commands, '' if its URL has a password, so that they rely on a variable.
"""

from __future__ import annotations

import re
import shlex

from ...module_utils._resources.virtual_machine import VIRTUAL_MACHINE
from ...module_utils._task.options import LEDGER_VARIABLE
from .entries import STATES_IN_DOUBT, Entry, Key

_PLAYBOOK = "ansible-playbook infrastructure.services"
_ENTRY = "ansible localhost -m infrastructure.services.ledger_entry"
# Any other character could mean something else to a shell or to Ansible, even another option.
_PLAIN = re.compile(r"[\w.@%+:,/~\[\]-]+")


def playbook_command(shown: str, playbook: str) -> str:
    """Return the command that runs a playbook of the collection with this ledger."""
    command = f"{_PLAYBOOK}.{playbook}"
    if shown and shlex.quote(shown) == shown:
        return f"{command} -e ledger={shown}"
    return f"{_in_environment(shown)}{command}"


def settle_commands(shown: str) -> list[str]:
    """Return the commands that write a file of all doubts, and that record it."""
    return [
        f"{playbook_command(shown, 'in_doubt')} -e file=in_doubt.csv",
        f"{playbook_command(shown, 'settle')} -e file=in_doubt.csv",
    ]


def settle_command(shown: str, file: str) -> str:
    """Return the command that records a file after the user has filled it in."""
    return f"{playbook_command(shown, 'settle')} -e {shlex.quote(f'file={file}')}"


def settling(shown: str, key: Key, entry: Entry) -> dict[str, list[str]]:
    """Return the commands that settle an entry in doubt, as the key `settle` of a result.

    The first one records the asset and lacks the id at its end; the second one removes the entry.
    There are none for a role, or for a name that no command line can hold.
    """
    if entry.state not in STATES_IN_DOUBT:
        return {}
    is_machine = key.resource == VIRTUAL_MACHINE.operation.resource
    if not (is_machine and _PLAIN.fullmatch(key.base_url + key.name)):
        return {"settle": []}
    given = f"resource={key.resource} base_url={key.base_url} name={key.name}"
    if _PLAIN.fullmatch(shown):
        command = f"{_ENTRY} -a 'ledger={shown} {given}"
    else:
        command = f"{_in_environment(shown)}{_ENTRY} -a '{given}"
    return {"settle": [f"{command} asset=id='", f"{command} state=absent'"]}


def _in_environment(shown: str) -> str:
    """Return how a command begins that takes the ledger from the environment.

    Nothing if its URL has a password: the user has set the variable, or Ansible names it.
    """
    # Without double quotes, which a message would escape.
    return f"{LEDGER_VARIABLE}={shlex.quote(shown)} " if shown else ""
