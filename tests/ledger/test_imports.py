# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What Ansible's processes import: only what their tasks need, requests in the parent, before it
forks workers.
"""

from __future__ import annotations

import json

import pytest
from support.running import PLUGINS

LIBRARIES = ("requests", "psycopg")
VM = "infrastructure.services.compute_virtual_machine"
ENTRY, INFO = "infrastructure.services.ledger_entry", "infrastructure.services.ledger_info"
CREATE = {VM: {"name": "web01", "ledger": "{{ ledger }}"}}


@pytest.fixture
def imported(ansible_once):
    """Run tasks; return what each worker had imported before its task (hence in the parent), and
    after it.
    """
    file = ansible_once.directory / "imported"

    def run(*tasks: dict, **environment: str) -> list[list[str]]:
        file.write_text("")
        told = []
        for task in tasks:
            look = f"lookup('imported', '%s', {', '.join(map(repr, LIBRARIES))}) == '%s'"
            told.append(
                {
                    **task,
                    "when": look % ("before", "before"),
                    "failed_when": look % ("after", "failed"),
                }
            )
        play = {"hosts": "localhost", "gather_facts": False, "tasks": told}
        ansible_once.playbook(
            json.dumps([play]) + "\n",
            "-e",
            json.dumps({"ledger": environment.pop("ledger", "")}),
            ANSIBLE_LOOKUP_PLUGINS=str(PLUGINS / "lookup"),
            IMPORTED_FILE=str(file),
            **environment,
        ).ok()
        return [names for _label, names in map(json.loads, file.read_text().splitlines())]

    return run


@pytest.mark.matrix
def test_nothing_is_imported_that_no_task_needs(ansible_once, imported):
    """Nor by the inventory; a request with a ledger in a file needs requests."""
    ledger = str(ansible_once.directory / "ledger.db")
    entry = {
        ENTRY: {
            "ledger": "{{ ledger }}",
            "base_url": "https://s.example",
            "name": "web01",
            "state": "absent",
            "resource": VM.rpartition(".")[2],
        }
    }
    info = {INFO: {"ledger": "{{ ledger }}"}}
    assert imported(entry, info, CREATE, ledger=ledger) == [[]] * 4 + [["requests"]] * 2
    source = ansible_once.directory / "ledger.yml"
    source.write_text(json.dumps({"plugin": "infrastructure.services.ledger", "ledger": ledger}))
    inventories = f"{ansible_once.directory / 'inventory.yml'},{source}"
    assert imported(
        {
            "ansible.builtin.ping": {},
            "delegate_to": "web01",
            "vars": {"ansible_connection": "local"},
        },
        ANSIBLE_INVENTORY=inventories,
    ) == [[], []]


@pytest.mark.matrix
def test_a_worker_imports_psycopg_for_a_ledger_in_postgresql_only(imported, postgres):
    told = imported({"ansible.builtin.ping": {}}, CREATE, CREATE, ledger=postgres)
    assert told == [[], [], ["requests"], [*LIBRARIES], ["requests"], [*LIBRARIES]]
