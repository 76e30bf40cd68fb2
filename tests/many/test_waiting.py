"""A task that waits for the lease of another run on its assets says for which, who that is, and
since when; an edit does not wait.
"""

from __future__ import annotations

from contextlib import suppress

import pytest
from ansible_collections.infrastructure.services.plugins.plugin_utils._ledger.entries import (
    INTENT,
    Entry,
    Key,
)
from support.databases import schema_in
from support.ledgers import finish, opened, put
from support.waiting import until


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
"""


@pytest.mark.matrix
@pytest.mark.parametrize("kind", ["sqlite", "postgresql"])
def test_a_wait_for_another_run_is_said(start, service, tmp_path, request, kind):
    location = str(tmp_path / "fleet.db")
    if kind == "postgresql":
        location = schema_in(request.getfixturevalue("postgres_server"))
    with opened(location, service.url) as others:
        keys = [Key(MACHINES, name) for name in ("one", "two", "three", "four")]
        begun = [put(others, key, Entry(INTENT, {}, {}, run="theirs"), 600) for key in keys]
        run = start(0, PLAY, ("-i", "single,list,entry,", "--forks", "3"), ledger=location)
        by = f"{begun[0].by} has worked since {begun[0].began_at}, at most until"
        lines = [
            f"waiting for one: {by}",
            f"waiting for two, three: {by}",
            f"{begun[3].by} may have a request in flight for it",
        ]
        with suppress(AssertionError):
            until(
                lambda: all(line in run.output for line in lines) or run.process.poll() is not None,
                20,
            )
        for key, intent in zip(keys, begun):
            finish(others, key, intent, None)
        output = run.end()
    assert all(line in output for line in lines), output
    assert set(service.created) == {"new", "one", "two", "three"}
    assert set(service.created.values()) == {1}
