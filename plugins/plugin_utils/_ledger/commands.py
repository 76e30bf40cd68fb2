# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Shell commands about what is in doubt, which can be pasted: they name the ledger unless its URL
has a password.
"""

from __future__ import annotations

import re
import shlex

from ...module_utils._resources.virtual_machine import VIRTUAL_MACHINE
from ...module_utils._task.options import LEDGER_VARIABLE
from .entries import DONE, Entry, Key
from .store import Ledger

_PLAYBOOK = "ansible-playbook infrastructure.services"
_HIDDEN = f"${{{LEDGER_VARIABLE}:?}}"  # the shell says so if the user has not set it
# Any other character could mean something else to a shell or to Ansible, even another option.
_PLAIN = re.compile(r"[\w.@%+:,/~\[\]-]+")


def playbook_command(ledger: Ledger, playbook: str) -> str:
    """Return the command that runs a playbook of the collection with this ledger."""
    shown, command = ledger.database.shown, f"{_PLAYBOOK}.{playbook}"
    is_plain = shown and shlex.quote(shown) == shown
    return f"{command} -e ledger={shown}" if is_plain else f"{_in_environment(shown)} {command}"


def settle_commands(ledger: Ledger) -> list[str]:
    """Return the commands that write what is in doubt to a file, and that record what was filled in
    there.
    """
    return [
        f"{playbook_command(ledger, playbook)} -e file=in_doubt.csv"
        for playbook in ("in_doubt", "settle")
    ]


def settle_command(ledger: Ledger, file: str) -> str:
    """Return the command that records what was filled in in a file."""
    return f"{playbook_command(ledger, 'settle')} -e {shlex.quote(f'file={file}')}"


def settling(ledger: Ledger, key: Key, entry: Entry) -> dict[str, list[str]]:
    """Return the commands that settle an entry in doubt, none for a role or for what no command
    line can hold.

    The first one records the asset and lacks the id at its end; the second one removes the entry.
    """
    if entry.state == DONE:
        return {}
    if key.resource != VIRTUAL_MACHINE.operation.resource or not _PLAIN.fullmatch(
        key.base_url + key.name
    ):
        return {"settle": []}
    shown = ledger.database.shown
    is_plain = _PLAIN.fullmatch(shown)
    given = f"{f'ledger={shown} ' if is_plain else ''}resource={key.resource} base_url={key.base_url} name={key.name}"
    command = f"ansible localhost -m infrastructure.services.ledger_entry -a '{given}"
    command = command if is_plain else f"{_in_environment(shown)} {command}"
    return {"settle": [f"{command} {last}'" for last in ("asset=id=", "state=absent")]}


def _in_environment(shown: str) -> str:
    """Return how a command begins that takes the ledger from the environment; a message would
    escape double quotes.
    """
    return f"{LEDGER_VARIABLE}={shlex.quote(shown) if shown else _HIDDEN}"
