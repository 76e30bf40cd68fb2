"""The play of the guide "Manage a fleet" that creates the hosts of an inventory."""

from __future__ import annotations

import json
from typing import Any

_MACHINES = (
    "{{ dict(groups.fleet | zip(groups.fleet | map('extract', hostvars, 'virtual_machine_attributes')))"
    " | dict2items(key_name='name', value_name='attributes') }}"
)


def play_of_hosts(**variables: Any) -> str:
    """Return a play with the role, which takes its list from the group `fleet`, and its variables."""
    role = {"name": "infrastructure.services.fleet"}
    task = {
        "name": "Create the virtual machine of each host",
        "ansible.builtin.import_role": role,
        "vars": {"fleet_virtual_machines": _MACHINES, **variables},
    }
    return json.dumps([{"hosts": "localhost", "gather_facts": False, "tasks": [task]}]) + "\n"
