#!/usr/bin/python
# -*- coding: utf-8 -*-

# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The documentation of the module; its action plugin does the work, on the controller."""

DOCUMENTATION = r"""
---
module: ledger_entry
short_description: Adopt, correct or forget an entry of the ledger
description:
  - Changes what the O(ledger) records of one asset. Nothing is sent to the service.
  - Use it when a task stopped because an earlier one began to create an asset and its outcome is unknown. Look for the
    asset on the service (M(infrastructure.services.ledger_info) shows what was sent for it). If it exists, confirm it
    (O(state=present) and its O(asset)); if not, forget the entry (O(state=absent)), so that the task creates it.
  - It can also adopt assets that already exist, so that they are not created again.
version_added: 1.0.0
author:
  - The infrastructure.services contributors (@infrastructure-services)
extends_documentation_fragment:
  - infrastructure.services.connection.ledger
options:
  base_url:
    description:
      - Base URL of the Infrastructure Service that the asset is on.
      - If not given, E(INFRASTRUCTURE_SERVICES_BASE_URL) is used.
    type: str
    required: true
  resource:
    description: The module that creates or updates the asset.
    type: str
    required: true
    choices:
      - cassandra_application_role
      - compute_virtual_machine
  name:
    description: Name of the virtual machine, as given to M(infrastructure.services.compute_virtual_machine).
    type: str
  id:
    description: Identifier of the role, as given to M(infrastructure.services.cassandra_application_role).
    type: str
  state:
    description:
      - V(present) records O(asset), which is then required, as done.
      - V(absent) forgets the entry; the asset itself is not touched. If there is no such entry, a warning says so. An
        O(asset) that is given as well must have the id that is recorded.
    type: str
    choices:
      - absent
      - present
    default: present
  asset:
    description:
      - The envelope of the asset as it is on the service. Its name, or the id of a role, must be that of the entry; it
        may be omitted.
      - For a virtual machine it must have the C(id) that the service shows.
      - What it leaves out of an entry in doubt is recorded as it was sent, with a warning that names it, so the id is
        enough. A null counts as given, and is recorded as null. Other fields that are not given are recorded as null.
      - An entry that is done keeps the fields that it leaves out. Its id cannot be replaced; if that machine is gone,
        forget the entry first.
      - The attributes have the types of those of the resource (V('4') from a CSV file becomes V(4)). Attributes that
        the resource does not have are recorded as they are.
    type: dict
  changed_at:
    description:
      - The C(changed_at) of the entry that you looked at, as M(infrastructure.services.ledger_info) returns it. If the
        entry has changed since, or is gone, nothing is changed and the task fails.
      - Without it, the task applies to whatever is recorded now.
    type: str
attributes:
  action_group:
    description: Use C(group/infrastructure.services.all) in C(module_defaults) to set options for all modules.
    support: full
    membership:
      - infrastructure.services.all
  check_mode:
    description: Can run in C(check_mode) and return what would change; the ledger is then only read.
    support: full
  diff_mode:
    description: Returns what changed, or would change, when in diff mode.
    support: full
notes:
  - If another task is working on the asset, this one waits until it has ended, and then fails without a change if the
    entry has changed meanwhile, unless it already is as wanted. Behind a pooler of PostgreSQL connections it cannot
    wait.
  - Each change is recorded in the history of the ledger.
seealso:
  - module: infrastructure.services.ledger_info
  - module: infrastructure.services.compute_virtual_machine
  - module: infrastructure.services.cassandra_application_role
  - plugin: infrastructure.services.ledger
    plugin_type: inventory
"""

EXAMPLES = r"""
# The machine was found on the service: it was created, only the answer was lost.
- name: Confirm a virtual machine whose creation had an unknown outcome
  infrastructure.services.ledger_entry:
    ledger: fleet.db
    base_url: https://infrastructure.example.com
    resource: compute_virtual_machine
    name: web01
    asset:
      id: 0b5f1a52-7d3c-4a0e-9d0e-5a1d3b0f6f11
      name: web01
      attributes:
        cpu: 4
        ip: 192.0.2.10

# ledger and base_url come from the environment here.
- name: Forget a virtual machine that is not on the service, so that it is created
  infrastructure.services.ledger_entry:
    resource: compute_virtual_machine
    name: web02
    state: absent

- name: List the virtual machines in doubt
  infrastructure.services.ledger_info:
    ledger: fleet.db
    resource: compute_virtual_machine
    states: in_doubt
  register: doubtful

# Each of these was found on the service, with the id that is in the variable `ids`.
- name: Confirm those of the web servers
  infrastructure.services.ledger_entry:
    ledger: fleet.db
    base_url: "{{ item.base_url }}"
    resource: "{{ item.resource }}"
    name: "{{ item.name }}"
    asset:
      id: "{{ ids[item.name] }}"
    changed_at: "{{ item.changed_at }}"
  vars:
    ids:
      web01: 0b5f1a52-7d3c-4a0e-9d0e-5a1d3b0f6f11
      web03: 0b5f1a52-7d3c-4a0e-9d0e-5a1d3b0f6f13
  loop: "{{ doubtful.entries | selectattr('name', 'match', 'web') }}"
  loop_control:
    label: "{{ item.name }}"

# None of the others was found.
- name: Forget the others, so that they are created
  infrastructure.services.ledger_entry:
    ledger: fleet.db
    base_url: "{{ item.base_url }}"
    resource: "{{ item.resource }}"
    name: "{{ item.name }}"
    state: absent
    changed_at: "{{ item.changed_at }}"
  loop: "{{ doubtful.entries | rejectattr('name', 'match', 'web') }}"
  loop_control:
    label: "{{ item.name }}"
"""

RETURN = r"""
asset:
  description: The envelope that is now recorded, null when there is none.
  returned: on success
  type: dict
  sample:
    id: 0b5f1a52-7d3c-4a0e-9d0e-5a1d3b0f6f11
    name: web01
    attributes:
      ip: 192.0.2.10
edit:
  description:
    - What was done. V(adopted), there was no entry. V(settled_present) or V(settled_absent), it was in doubt.
      V(corrected), V(forgotten), or V(unchanged).
  returned: on success
  type: str
  sample: settled_present
entry_state:
  description:
    - What is known. V(done), the asset exists as recorded. V(accepted), the service accepted the request, but its
      answer was lost or unusable. V(unknown), the request may or may not have been processed. V(intent), the same,
      since the task that sent it died. V(absent), there is no entry.
  returned: on success
  type: str
  sample: done
sent:
  description:
    - The body that was sent for the asset, to find it on the service; null when there is no entry.
    - For an asset that was adopted or corrected, its name and attributes, with which later tasks compare theirs.
  returned: on success
  type: dict
  sample:
    name: web01
    attributes:
      cpu: 4
changed_at:
  description:
    - When the entry was last written, in UTC; null when there is no entry, empty for an entry that check mode only
      predicts.
  returned: on success
  type: str
  sample: '2026-01-02T03:04:05Z'
outcome:
  description: Always V(not_sent), since nothing is sent to the service.
  returned: always
  type: str
  sample: not_sent
"""

from ansible_collections.infrastructure.services.plugins.module_utils._task.module import run_module
from ansible_collections.infrastructure.services.plugins.module_utils._task.specs import (
    LEDGER_ENTRY,
)

if __name__ == "__main__":
    run_module(LEDGER_ENTRY)
