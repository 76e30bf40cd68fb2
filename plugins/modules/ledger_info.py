#!/usr/bin/python
# -*- coding: utf-8 -*-

# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The documentation of the module; its action plugin does the work, on the controller."""

DOCUMENTATION = r"""
---
module: ledger_info
short_description: List what the ledger knows, in particular what is in doubt
description:
  - Lists the entries of the O(ledger), with what was sent for each asset and what came back. Nothing is sent or
    changed. A ledger that does not exist is an error.
  - After a crash, O(states=in_doubt) lists the assets that may or may not exist. Settle them with
    M(infrastructure.services.ledger_entry). A request that may still be in flight is not in doubt; RV(in_flight) has
    it.
version_added: 1.0.0
author:
  - The infrastructure.services contributors (@infrastructure-services)
extends_documentation_fragment:
  - infrastructure.services.connection.ledger
options:
  resource:
    description: Only assets of this module.
    type: str
    choices:
      - cassandra_application_role
      - compute_virtual_machine
  names:
    description: Only assets whose name, or id for a role, matches one of these shell patterns (such as V(web*)).
    type: list
    elements: str
  states:
    description:
      - Only entries in one of these states, which RV(entries[].state) explains.
      - V(in_doubt) means virtual machines in all states but V(done), without requests that may still be in flight. The
        task of a role may run again.
    type: list
    elements: str
    choices:
      - intent
      - done
      - accepted
      - unknown
      - in_doubt
  changed_since:
    description: Only entries that were written at this time or later, in ISO 8601; without a time zone it is UTC.
    type: str
  run:
    description:
      - Only entries that this run of Ansible was the last to write, as RV(entries[].run) and the reports of lists
        identify it.
      - A run that was killed (C(kill -9)) has no report; this lists what it had done.
    type: str
  history:
    description: Whether to include in each entry how each of its attempts began and ended.
    type: bool
  summary:
    description:
      - Return RV(counts) and RV(oldest_in_doubt) as the database counts them, and no entries. For monitoring a large
        ledger.
      - It cannot be combined with O(names), O(history), O(file) or O(table).
    type: bool
  file:
    description:
      - Write the entries to this new or empty file, whose path is relative to the working directory, instead of
        returning them. A file that is not empty is never overwritten.
      - Let the name end in C(.csv). To settle what is in doubt, fill in an id or the state absent, and give the file to
        M(infrastructure.services.ledger_entry).
      - In check mode nothing is written.
    type: path
  delimiter:
    description: What separates the cells of O(file), such as V(;) for some spreadsheets.
    type: str
    default: ','
  table:
    description:
      - Show the entries on the screen as a table, and how to settle those in doubt, instead of returning them.
    type: bool
attributes:
  check_mode:
    description: Can run in C(check_mode); it never changes anything.
    support: full
  diff_mode:
    description: Changes nothing, so it returns no diff.
    support: none
seealso:
  - module: infrastructure.services.ledger_entry
  - plugin: infrastructure.services.ledger
    plugin_type: inventory
  - name: Troubleshoot failures
    link: https://github.com/ansible-collections/infrastructure.services/blob/main/docs/docsite/rst/failures.rst
    description: Settle what is in doubt.
"""

EXAMPLES = r"""
- name: List what is in doubt
  infrastructure.services.ledger_info:
    ledger: "{{ playbook_dir }}/fleet.db"
    states: in_doubt
  register: doubtful

- name: Show what was sent for each
  ansible.builtin.debug:
    msg: "{{ item.name | default(item.id) }}: {{ item.sent }}"
  loop: "{{ doubtful.entries }}"
  loop_control:
    label: "{{ item.state }}"

- name: List the web servers that changed this year, with all that happened to them
  infrastructure.services.ledger_info:
    ledger: "{{ playbook_dir }}/fleet.db"
    resource: compute_virtual_machine
    names:
      - web*
    changed_since: '2026-01-01T00:00:00Z'
    history: true
"""

RETURN = r"""
entries:
  description:
    - The entries that match all filters, sorted by module and name. RV(in_flight) has those whose request may be in
      flight.
  returned: on success, without O(file), O(summary) and O(table)
  type: list
  elements: dict
  contains:
    resource:
      description: The module that created or updated the asset.
      type: str
      returned: always
      sample: compute_virtual_machine
    name:
      description: Name of the virtual machine.
      type: str
      returned: for virtual machines
      sample: web01
    id:
      description: Identifier of the role.
      type: str
      returned: for roles
      sample: role-1
    state:
      description:
        - What is known. V(done), the asset exists as recorded. V(accepted), the service accepted the request, but its
          answer was lost or unusable. V(unknown), the request may or may not have been processed. V(intent), the
          process that sent it died.
      type: str
      returned: always
      sample: unknown
    sent:
      description: The body that was sent.
      type: dict
      returned: always
      sample:
        name: web01
        attributes:
          cpu: 4
    asset:
      description: The recorded envelope, null when none came back.
      type: dict
      returned: always
    settle:
      description:
        - The shell commands that settle an entry in doubt. The first one records the asset, once you have put its id
          and address in place of ID and ADDRESS; the second one removes the entry, so that the next run creates the
          asset.
        - Empty for a name that cannot be put on a command line.
        - If the URL of the ledger has a password, they take it from the environment variable
          E(INFRASTRUCTURE_SERVICES_LEDGER), which has to be set.
      type: list
      elements: str
      returned: for virtual machines in doubt
      sample:
        - >-
          ansible localhost -m infrastructure.services.ledger_entry -a '{"ledger": "/srv/fleet/fleet.db", "resource":
          "compute_virtual_machine", "name": "web01", "changed_at": "2026-01-02T03:04:05Z", "asset": {"id": "ID",
          "attributes": {"ip": "ADDRESS"}}}'
        - >-
          ansible localhost -m infrastructure.services.ledger_entry -a '{"ledger": "/srv/fleet/fleet.db", "resource":
          "compute_virtual_machine", "name": "web01", "changed_at": "2026-01-02T03:04:05Z", "state": "absent"}'
    began_at:
      description: When the last attempt began, in UTC.
      type: str
      returned: always
      sample: '2026-01-02T03:04:05Z'
    changed_at:
      description: When the entry was last written, in UTC.
      type: str
      returned: always
      sample: '2026-01-02T03:04:05Z'
    by:
      description: Who wrote it, as user@controller.
      type: str
      returned: always
      sample: deploy@controller-1
    run:
      description: Identifier of the Ansible run that wrote it.
      type: str
      returned: always
      sample: 4711abcdefgh
    history:
      description: How each attempt began and ended, oldest first.
      type: list
      elements: dict
      returned: when O(history=true)
      contains:
        from_state:
          description: State before it, V(absent) when there was no entry.
          type: str
          returned: always
          sample: absent
        to_state:
          description: State after it.
          type: str
          returned: always
          sample: unknown
        at:
          description: When it began or ended, in UTC.
          type: str
          returned: always
          sample: '2026-01-02T03:04:05Z'
        by:
          description: Who ran it, as user@controller.
          type: str
          returned: always
          sample: deploy@controller-1
        run:
          description: Identifier of the Ansible run.
          type: str
          returned: always
          sample: 4711abcdefgh
        outcome:
          description: The outcome of the task, empty when it began.
          type: str
          returned: always
          sample: unknown
        status:
          description: The HTTP status, null when there was none.
          type: int
          returned: always
          sample: 504
        message:
          description:
            - The message of the task when it failed, empty when it succeeded. An edit has V(by ledger_entry).
          type: str
          returned: always
          sample: ''
        seconds:
          description: How long the task took, null when that is not known.
          type: float
          returned: always
          sample: 1.5
in_flight:
  description:
    - The entries that match all filters and whose request may be in flight, with the same keys as RV(entries), and
      C(lease_until). Until then, in seconds since 1970, nobody else sends or settles it.
  returned: on success, without O(summary)
  type: list
  elements: dict
ledger:
  description: Location of the ledger, without a password.
  returned: on success
  type: str
  sample: /srv/fleet/fleet.db
ledger_id:
  description: The id of the ledger, which moves and copies keep.
  returned: on success
  type: str
  sample: 6b0f2c1d4e8a4b7f9c3d5e6f7a8b9c0d
base_url:
  description: Base URL of the service that the ledger belongs to.
  returned: on success
  type: str
  sample: https://infrastructure.example.com
serial:
  description: The number of the last row of the history, which grows with each row; 0 if there is none.
  returned: on success
  type: int
  sample: 712
file:
  description: The absolute path of the file that was written, or would be in check mode.
  returned: with O(file)
  type: str
  sample: /srv/fleet/in_doubt.csv
oldest_in_doubt:
  description: When the last attempt of the oldest matching entry in doubt began, in UTC; null if none is in doubt.
  returned: on success
  type: str
  sample: '2026-01-02T03:04:05Z'
counts:
  description: How many of the matching entries are in each state, without those whose request may be in flight.
  returned: on success
  type: dict
  sample:
    intent: 0
    done: 998
    accepted: 0
    unknown: 2
outcome:
  description: Always V(not_sent), since nothing is sent to the service.
  returned: always
  type: str
  sample: not_sent
"""

from ..module_utils._task.module import run_module
from ..module_utils._task.specs import LEDGER_INFO

if __name__ == "__main__":
    run_module(LEDGER_INFO)
