#!/usr/bin/python
# -*- coding: utf-8 -*-

# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The documentation of the module; its action plugin does the work, on the controller."""

DOCUMENTATION = r"""
---
module: ledger_entries
short_description: Adopt, correct or forget many entries of the ledger
description:
  - Does for a list what M(infrastructure.services.ledger_entry) does for one asset, in one transaction. Nothing is sent
    to the service.
  - All entries are checked before any is changed, and all that is wrong with them is reported at once. Either all of
    them become as given, or none changes.
  - What M(infrastructure.services.ledger_info) returns as RV(infrastructure.services.ledger_info#module:entries) can
    be given as it is, or with another asset or state.
version_added: 1.0.0
author:
  - The infrastructure.services contributors (@infrastructure-services)
extends_documentation_fragment:
  - infrastructure.services.connection.ledger
options:
  base_url:
    description:
      - Base URL of the Infrastructure Service that the assets are on. An entry may have another one.
      - If not given, E(INFRASTRUCTURE_SERVICES_BASE_URL) is used.
    type: str
  entries:
    description:
      - The entries. Each of them must be for another asset.
      - The other keys that M(infrastructure.services.ledger_info) returns, such as C(sent), C(by) and C(began_at), are
        accepted and not used.
    type: list
    elements: dict
    required: true
    suboptions:
      base_url:
        description: Base URL of the service that the asset is on, if it is not O(base_url).
        type: str
      resource:
        description: The module that creates or updates the asset.
        type: str
        required: true
        choices:
          - cassandra_application_role
          - compute_virtual_machine
      name:
        description: Name of the virtual machine.
        type: str
      id:
        description: Identifier of the role.
        type: str
      state:
        description:
          - V(present) records O(entries[].asset), which is then required, as done. V(absent) forgets the entry. An
            O(entries[].asset) that is given as well must have the id that is recorded, since whoever gives another one
            says that the asset is there.
          - V(intent), V(done), V(accepted) and V(unknown), which M(infrastructure.services.ledger_info) returns, mean
            V(present) if there is an O(entries[].asset). An entry in doubt without one is left as it is, provided that
            the ledger has it in this state.
        type: str
        choices:
          - absent
          - present
          - intent
          - done
          - accepted
          - unknown
        default: present
      asset:
        description:
          - The envelope of the asset as it is on the service, as in
            O(infrastructure.services.ledger_entry#module:asset).
        type: dict
      changed_at:
        description:
          - The C(changed_at) of the entry that was looked at. If one of the entries has changed since, or is gone,
            nothing at all is changed, so that a file that is used twice, or late, does no harm.
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
    description: Returns the entries that changed, or would change, when in diff mode.
    support: full
notes:
  - If another task is working on one of the assets, this one waits until it has ended, and then fails without a change
    if the entry has changed meanwhile, unless it already is as wanted. Behind a pooler of PostgreSQL connections it
    cannot wait.
  - Each change is recorded in the history of the ledger.
seealso:
  - module: infrastructure.services.ledger_entry
  - module: infrastructure.services.ledger_info
"""

EXAMPLES = r"""
- name: Adopt virtual machines, so that they are not created again
  infrastructure.services.ledger_entries:
    ledger: fleet.db
    base_url: https://infrastructure.example.com
    entries:
      - resource: compute_virtual_machine
        name: web01
        asset:
          id: 0b5f1a52-7d3c-4a0e-9d0e-5a1d3b0f6f11
          attributes:
            cpu: 4
      - resource: compute_virtual_machine
        name: web02
        asset:
          id: 0b5f1a52-7d3c-4a0e-9d0e-5a1d3b0f6f12

- name: List what is in doubt
  infrastructure.services.ledger_info:
    ledger: fleet.db
    states: in_doubt
  register: doubtful

- name: Forget all of it, after none was found on the service
  infrastructure.services.ledger_entries:
    ledger: fleet.db
    entries: "{{ doubtful.entries | map('combine', {'state': 'absent'}) }}"
"""

RETURN = r"""
counts:
  description:
    - How many entries were adopted (there was none), settled as present or absent (they were in doubt), corrected,
      forgotten, and left as they were.
    - C(in_doubt) is how many entries of the ledger are still in doubt.
  returned: on success
  type: dict
  sample:
    adopted: 2
    settled_present: 1
    settled_absent: 0
    corrected: 0
    forgotten: 0
    unchanged: 0
    in_doubt: 3
names:
  description:
    - The names or ids of the entries that were changed, by what was done to them.
    - C(in_doubt) has those of the list that are left in doubt.
  returned: on success
  type: dict
  sample:
    adopted: [web01, web02]
    settled_present: [web03]
    settled_absent: []
    corrected: []
    forgotten: []
    in_doubt: []
outcome:
  description: Always V(not_sent), since nothing is sent to the service.
  returned: always
  type: str
  sample: not_sent
"""

from ansible_collections.infrastructure.services.plugins.module_utils._task.module import run_module
from ansible_collections.infrastructure.services.plugins.module_utils._task.specs import (
    LEDGER_ENTRIES,
)

if __name__ == "__main__":
    run_module(LEDGER_ENTRIES)
