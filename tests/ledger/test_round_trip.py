# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The entries that `ledger_info` lists are input for `ledger_entry` in a loop, and for the plural
modules.
"""

from __future__ import annotations

import resource

import pytest
from ansible_collections.infrastructure.services.plugins.plugin_utils._ledger.entries import (
    DONE,
    STATES,
    UNKNOWN,
    Change,
    Entry,
    Key,
    Kind,
)
from support import CREATE, UPDATE

PER_ENTRY = 0.05  # CPU seconds per entry; a separate process would take a quarter of a second

SETTLE = """
- name: List
  infrastructure.services.ledger_info: {{ledger: ledger.db, states: in_doubt}}
  register: doubtful
- name: Settle
  infrastructure.services.ledger_entry:
    ledger: ledger.db
    base_url: "{{{{ item.base_url }}}}"
    resource: "{{{{ item.resource }}}}"
    name: "{{{{ item.name | default(omit) }}}}"
    id: "{{{{ item.id | default(omit) }}}}"
    {how}
  loop: "{{{{ doubtful.entries }}}}"
"""
AGAIN = """
- name: List machines
  infrastructure.services.ledger_info: {ledger: ledger.db, resource: compute_virtual_machine}
  register: machines
- name: List roles
  infrastructure.services.ledger_info: {ledger: ledger.db, resource: cassandra_application_role}
  register: roles
- name: Machines
  infrastructure.services.compute_virtual_machines:
    ledger: ledger.db
    virtual_machines: "{{ machines.entries | map(attribute='options') }}"
- name: Roles
  infrastructure.services.cassandra_application_roles:
    ledger: ledger.db
    application_roles: "{{ roles.entries | map(attribute='options') }}"
- name: List machines again
  infrastructure.services.ledger_info: {ledger: ledger.db, resource: compute_virtual_machine}
"""


def states(ledger) -> dict[str, int]:
    """The number of entries in each state."""
    entries = ledger.entries({}, lambda name: True)
    return {
        state: count
        for state in STATES
        if (count := sum(entry.state == state for _key, entry in entries))
    }


def cpu() -> float:
    """CPU seconds used by this process's children."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


@pytest.mark.parametrize("count", [20, pytest.param(1000, marks=pytest.mark.stress)])
@pytest.mark.parametrize(
    ("how", "state"),
    [
        ("""asset: {id: "{{ item.id | default('i-' ~ item.name | default('')) }}"}""", DONE),
        ("state: absent", None),
    ],
    ids=["confirm", "forget"],
)
def test_everything_in_doubt_is_settled_in_one_task(ansible_once, opened, count, how, state):
    ledger = opened(str(ansible_once.directory / "ledger.db"))
    sent = {"name": "x", "attributes": {"cpu": 4}}
    keys = [Key("https://s", CREATE, f"vm{number}") for number in range(count - 1)]
    keys.append(Key("https://s", UPDATE, "role-1"))
    entries = [Entry(UNKNOWN, {**sent, "name": key.name}, {}) for key in keys]
    ledger.write([Change(key, None, entry) for key, entry in zip(keys, entries)], Kind.BEGIN)
    before = cpu()
    run = ansible_once.tasks(SETTLE.format(how=how)).ok()
    assert len(run.items("Settle")) == count
    assert cpu() - before < 5 + count * PER_ENTRY
    assert states(ledger) == ({state: count} if state else {})


@pytest.mark.matrix
def test_machines_and_roles_from_the_ledger_are_kept(ansible_once, service):
    service.api.store.seed("role-1", {"name": "reader"})
    ansible_once.tasks("""
- infrastructure.services.compute_virtual_machines:
    ledger: ledger.db
    virtual_machines:
      - {name: web01, attributes: {cpu: 4, creation_date: 2026-01-02 03:04:05Z, volumes: [{name: a, size_gb: 1}]}}
      - {name: web02, extra_attributes: {zone: {row: 1}}}
- infrastructure.services.cassandra_application_roles:
    ledger: ledger.db
    application_roles: [{id: role-1, attributes: {login: true}}]
""").ok()
    sent = len(service.api.conversation)
    run = ansible_once.tasks(AGAIN).ok()
    assert len(service.api.conversation) == sent == 3
    assert [
        item["changed"] for task in ("Machines", "Roles") for item in run.result(task)["results"]
    ] == [False] * 3
    assert run.result("List machines again")["entries"] == run.result("List machines")["entries"]
