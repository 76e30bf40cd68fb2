# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A task that waits for the work of another run on its asset says so: for which one, who that is,
since when.
"""

from __future__ import annotations

from contextlib import closing, suppress

import pytest
from ansible_collections.infrastructure.services.plugins.plugin_utils._ledger.entries import (
    INTENT,
    Change,
    Entry,
    Key,
)
from ansible_collections.infrastructure.services.plugins.plugin_utils._ledger.location import (
    open_ledger,
)
from support.databases import postgres_server, schema_in
from support.waiting import until

__all__ = ["postgres_server"]

MACHINES = "compute_virtual_machine"
PLAY = f"""
- hosts: all
  gather_facts: false
  strategy: free
  vars: {{ansible_connection: local}}
  module_defaults:
    group/infrastructure.services.all: {{ledger: "{{{{ ledger }}}}", retries: 0}}
  tasks:
    - infrastructure.services.{MACHINES}: {{name: one}}
      when: inventory_hostname == 'single'
    - infrastructure.services.{MACHINES}s: {{virtual_machines: [{{name: new}}, {{name: two}}, {{name: three}}]}}
      when: inventory_hostname == 'list'
    - infrastructure.services.ledger_entry: {{resource: {MACHINES}, name: four, state: absent}}
      when: inventory_hostname == 'entry'
    - infrastructure.services.ledger_entries: {{entries: [{{resource: {MACHINES}, name: five, state: absent}}]}}
      when: inventory_hostname == 'entries'
"""


@pytest.mark.matrix
@pytest.mark.parametrize("kind", ["sqlite", "postgresql"])
def test_a_wait_for_another_run_is_said(start, service, tmp_path, request, kind):
    location = str(tmp_path / "fleet.db")
    if kind == "postgresql":
        location = schema_in(request.getfixturevalue("postgres_server"))
    with closing(open_ledger(location)) as others:
        keys = {
            name: Key(service.url, MACHINES, name)
            for name in ("one", "two", "three", "four", "five")
        }
        begun = {
            name: others.begin(Change(key, None, Entry(INTENT, {"name": name}, {}, run="theirs")))[
                1
            ]
            for name, key in keys.items()
        }
        run = start(0, PLAY, ("-i", "single,list,entry,entries,", "--forks", "4"), ledger=location)
        said = {name: f"{entry.by}, since {entry.began_at}" for name, entry in begun.items()}
        lines = [
            f"virtual machine one: waiting for {said['one']}",
            f"virtual machines two, three: waiting for {said['two']}",
            f"virtual machine four: waiting for {said['four']}",
            f"virtual machine five: waiting for {said['five']}",
        ]
        with suppress(AssertionError):
            until(
                lambda: all(line in run.errors for line in lines) or run.process.poll() is not None,
                20,
            )
        for key in keys.values():
            others.release(key)
        errors = run.end() and run.errors
        assert all(errors.count(line) == 1 for line in lines), run.output
        assert list(service.created) == ["new"]
