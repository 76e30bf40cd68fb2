#!/usr/bin/python
# -*- coding: utf-8 -*-

# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The documentation of the module; its action plugin does the work, on the controller."""

DOCUMENTATION = r"""
---
module: ledger_entry
short_description: Adopt, correct or forget entries of the ledger
description:
  - Changes the O(ledger) entry of one asset, or with O(entries) or O(file) of many. Nothing is sent to the service.
  - Use it to settle an asset in doubt. Look for it on the service (M(infrastructure.services.ledger_info) shows what
    was sent). If it exists, record it (O(state=present) and its O(asset)). If not, forget the entry (O(state=absent)),
    and the next task creates the asset.
  - It also adopts assets that already exist, so that they are not created again.
  - A list of entries is one transaction. The task reports all errors at once, and changes all entries or none.
version_added: 1.0.0
author:
  - The infrastructure.services contributors (@infrastructure-services)
extends_documentation_fragment:
  - infrastructure.services.connection.ledger
options:
  base_url:
    description:
      - Base URL of the Infrastructure Service that the assets are on. A ledger belongs to one service, so another one
        is refused.
      - It may be left out.
      - If not given, E(INFRASTRUCTURE_SERVICES_BASE_URL) is used.
    type: str
  resource:
    description:
      - The module that creates or updates the asset.
      - Either this, O(entries) or O(file) is required. With a list, this and the other options about one entry are not
        allowed.
    type: str
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
      - V(present), the default, records O(asset), which is then required, as done.
      - V(absent) forgets the entry; the asset itself is not touched. If there is no such entry, a warning says so. An
        O(asset) that is given as well must have the recorded id.
    type: str
    choices:
      - absent
      - present
  asset:
    description:
      - The envelope of the asset as it is on the service. For a virtual machine it needs the C(id) that the service
        shows, exactly and as text. Its name, or the id of a role, may be omitted, or must be that of the entry.
      - An entry in doubt keeps the values that were sent, so the id is enough. An entry that is done keeps the fields
        that are not given. Otherwise, fields that are not given are recorded as null.
      - The id of an entry that is done cannot be replaced. If that machine is gone, forget the entry first.
      - The attributes have the types of the resource (V('4') from a CSV file becomes V(4)). Unknown attributes are
        recorded as they are.
    type: dict
  changed_at:
    description:
      - The C(changed_at) of the entry that you looked at, as M(infrastructure.services.ledger_info) returns it. If the
        entry has changed since, the task fails and changes nothing. Without it, the task does not check that.
    type: str
  entries:
    description:
      - The entries, each for another asset, such as RV(infrastructure.services.ledger_info#module:entries), as they are
        or with another asset or state. Other keys, such as C(sent), C(by) and C(began_at), are not used.
    type: list
    elements: dict
    suboptions:
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
          - As O(state). V(intent), V(done), V(accepted) and V(unknown), which M(infrastructure.services.ledger_info)
            returns, mean V(present). An entry that already has this state and O(entries[].asset) stays as it is.
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
        description: The envelope of the asset as it is on the service, as in O(asset).
        type: dict
      changed_at:
        description:
          - As O(changed_at). If one entry has changed since, none is changed, so a file that is used twice or late does
            no harm.
        type: str
  file:
    description:
      - A file with entries, as M(infrastructure.services.ledger_info) writes it, relative to the working directory. A
        name that ends in C(.json) means JSON, a list as in O(entries). Any other name means CSV, as
        P(infrastructure.services.from_csv#filter) reads it.
      - It may also be the JSON report of a list. The task adopts the machines that exist by the report, or settles
        them, and records its doubts. It names and leaves what contradicts the ledger, or changed after that run.
      - A report has only the ids and addresses of machines, so their other attributes are recorded as null. Roles are
        not recorded, because it has only their ids.
    type: path
  delimiter:
    description: The delimiter of a CSV O(file), detected by default.
    type: str
attributes:
  check_mode:
    description: Can run in C(check_mode) and return what would change; the ledger is then only read.
    support: full
  diff_mode:
    description: Returns the entries that changed, or would change, when in diff mode.
    support: full
notes:
  - While another task may have a request in flight for one of the assets, this one changes nothing and fails. The
    message says who has it and until when.
seealso:
  - module: infrastructure.services.ledger_info
  - module: infrastructure.services.compute_virtual_machine
  - module: infrastructure.services.cassandra_application_role
  - plugin: infrastructure.services.ledger
    plugin_type: inventory
  - name: Adopt existing machines
    link: https://github.com/ansible-collections/infrastructure.services/blob/main/docs/docsite/rst/existing_machines.rst
    description: A list, a file or a task that adopts machines.
"""

EXAMPLES = r"""
# The machine was found on the service: it was created, only the answer was lost.
- name: Confirm a virtual machine whose creation had an unknown outcome
  infrastructure.services.ledger_entry:
    ledger: "{{ playbook_dir }}/fleet.db"
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
    ledger: "{{ playbook_dir }}/fleet.db"
    resource: compute_virtual_machine
    states: in_doubt
  register: doubtful

# Each of these was found on the service, with the id that is in the variable `ids`.
- name: Confirm those of the web servers
  infrastructure.services.ledger_entry:
    ledger: "{{ playbook_dir }}/fleet.db"
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
    ledger: "{{ playbook_dir }}/fleet.db"
    resource: "{{ item.resource }}"
    name: "{{ item.name }}"
    state: absent
    changed_at: "{{ item.changed_at }}"
  loop: "{{ doubtful.entries | rejectattr('name', 'match', 'web') }}"
  loop_control:
    label: "{{ item.name }}"

- name: Adopt virtual machines, so that they are not created again
  infrastructure.services.ledger_entry:
    ledger: "{{ playbook_dir }}/fleet.db"
    entries:
      - resource: compute_virtual_machine
        name: db01
        asset:
          id: 0b5f1a52-7d3c-4a0e-9d0e-5a1d3b0f6f21
          attributes:
            cpu: 4
      - resource: compute_virtual_machine
        name: db02
        asset:
          id: 0b5f1a52-7d3c-4a0e-9d0e-5a1d3b0f6f22

- name: Forget all that is in doubt, after none was found on the service
  infrastructure.services.ledger_entry:
    ledger: "{{ playbook_dir }}/fleet.db"
    entries: "{{ doubtful.entries | map('combine', {'state': 'absent'}) }}"
"""

RETURN = r"""
counts:
  description:
    - How many entries were adopted (there was none), settled as present or absent (they were in doubt), corrected,
      forgotten, and left as they were.
    - C(in_doubt) is how many of the given entries are left in doubt.
  returned: on success
  type: dict
  sample:
    adopted: 2
    settled_present: 1
    settled_absent: 0
    corrected: 0
    forgotten: 0
    unchanged: 0
    in_doubt: 0
names:
  description:
    - The names or ids of the entries that were changed, by what was done to them.
    - C(in_doubt) has those that are left in doubt.
  returned: on success
  type: dict
  sample:
    adopted: [web01, web02]
    settled_present: [web03]
    settled_absent: []
    corrected: []
    forgotten: []
    in_doubt: []
text:
  description: The same for people, as lines. With a list they are shown on the screen.
  returned: on success
  type: list
  elements: str
  sample:
    - 'ledger entries: 2 adopted, 1 settled as present'
    - '  adopted: web01, web02'
    - '  settled as present: web03'
outcome:
  description: Always V(not_sent), since nothing is sent to the service.
  returned: always
  type: str
  sample: not_sent
"""

from ..module_utils._task.module import run_module
from ..module_utils._task.specs import LEDGER_ENTRY

if __name__ == "__main__":
    run_module(LEDGER_ENTRY)
