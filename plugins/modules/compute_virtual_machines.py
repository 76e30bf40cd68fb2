#!/usr/bin/python
# -*- coding: utf-8 -*-

# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The documentation and entry point of the module; a list goes its way in
module_utils/_list/lists.py, each of its tasks in module_utils/_task/task.py.
"""

DOCUMENTATION = r"""
---
module: compute_virtual_machines
short_description: Create many virtual machines at once
description:
  - Creates the virtual machines of a list through the Infrastructure Service, several at once from one task, and each
    once, by the O(ledger). With the word V(none) as O(ledger) the task is not idempotent; each run creates all of them
    again.
  - All of them are validated before the first request. Each is then handled as by
    M(infrastructure.services.compute_virtual_machine), and has a result of its own, whatever the results of the
    others.
  - The number of concurrent requests adapts to what the service can handle. It starts with a few, grows while all is
    well and shrinks when the service is overloaded, so that one that is down leaves only a few machines in doubt.
version_added: 1.0.0
author:
  - The infrastructure.services contributors (@infrastructure-services)
extends_documentation_fragment:
  - infrastructure.services.connection.creation
  - infrastructure.services.connection
  - infrastructure.services.many
  - infrastructure.services.assets.virtual_machines
  - infrastructure.services.assets.on_difference
options:
  virtual_machines:
    description:
      - The virtual machines. Two with the same name are refused.
    type: list
    elements: dict
    required: true
attributes:
  idempotent:
    description: Running the task again changes nothing.
    support: partial
    details:
      - Unless O(ledger=none).
seealso:
  - module: infrastructure.services.compute_virtual_machine
  - name: Create virtual machines
    link: https://github.com/ansible-collections/infrastructure.services/blob/main/docs/docsite/rst/create_machines.rst
    description: Concurrency, limits, results and speed.
  - name: Manage a fleet
    link: https://github.com/ansible-collections/infrastructure.services/blob/main/docs/docsite/rst/fleet.rst
    description: The same list with a plan, an approval and a report.
"""

EXAMPLES = r"""
# base_url, access_token and ledger come from the environment.
- name: Create three machines, all at once
  infrastructure.services.compute_virtual_machines:
    virtual_machines:
      - name: web01
        attributes:
          cpu: 4
      - name: web02
        attributes:
          cpu: 4
      - name: db01
        attributes:
          cpu: 16

- name: Create two hundred machines, at most twenty at once
  infrastructure.services.compute_virtual_machines:
    virtual_machines: "{{ machines | dict2items(key_name='name', value_name='attributes') }}"
    concurrency: 20
    asset_fields: [id, name, attributes.ip]
  register: created
  vars:
    machines: "{{ dict(names | zip_longest([], fillvalue={'cpu': 4})) }}"
    names: "{{ range(200) | map('regex_replace', '^', 'web') }}"

- name: Show those that failed
  ansible.builtin.debug:
    msg: "{{ created.results | selectattr('failed') | map(attribute='item') }}"
"""

RETURN = r"""
results:
  description:
    - The result of each item, in the order given. Every item is listed, whatever its result and those of the others.
    - An item that was not started has C(skipped), V(true), and says why in its C(msg).
  returned: when the options can be used
  type: list
  elements: dict
  contains:
    item:
      description: The name of the item.
      type: str
      sample: web01
    changed:
      description:
        - Whether the service accepted its request, or O(ledger) adopted the machine; in check mode, whether that would
          be done.
      type: bool
    failed:
      description: Whether it failed.
      type: bool
    outcome:
      description: What is known of its request; the values are those of RV(outcome).
      type: str
      sample: accepted
    status:
      description: HTTP status of the last answer, null when there was none.
      type: int
      sample: 201
    request_attempts:
      description: How many times the request was attempted.
      type: int
      sample: 1
    msg:
      description: What happened, what is known of the effect, and what to do next.
      returned: when there is something to say
      type: str
    plan:
      description:
        - The plan for the next run. V(create), send the request. V(adopt), record the machine with its id and send
          nothing. V(keep), nothing, since it is already as requested.
          V(differs), nothing either, although O(ledger) has it with different values. V(in_doubt), O(ledger) does not
          know how an earlier task ended. V(in_flight), another task has a request in flight for it.
      returned: in check mode
      type: str
      sample: create
    differs:
      description: The fields that differ from what O(ledger) has, each with both values.
      returned: when there are such fields
      type: list
      elements: str
      sample:
        - attributes.cpu (8 asked for, 4 recorded)
    begun_after:
      description: How many seconds after the start of its list it was started.
      returned: when it was started and has ended
      type: float
      sample: 0.2
    seconds:
      description: How long it took, including further attempts and the waits before them.
      returned: when it was started and has ended
      type: float
      sample: 1.5
    skipped:
      description: V(true) when it was not started.
      returned: when it was not started
      type: bool
    asset:
      description: The envelope as the service returned it, or only the fields that O(asset_fields) names.
      returned: when it is known
      type: dict
      contains:
        id:
          description: Unique identifier of the asset.
          type: str
          sample: 0b5f1a52-7d3c-4a0e-9d0e-5a1d3b0f6f11
        name:
          description: Name of the asset.
          type: str
          sample: web01
        description:
          description: Description of the asset.
          type: str
        service:
          description: Service the asset belongs to.
          type: str
        attributes:
          description:
            - The attributes, with the fields of O(virtual_machines[].attributes) and whatever else the service
              returns.
          type: dict
          sample:
            cpu: 4
            ip: 192.0.2.10
        platform:
          description: Platform of the asset.
          type: str
        region:
          description: Region of the asset.
          type: str
        tenant:
          description: Tenant of the asset.
          type: str
counts:
  description:
    - How many items have each RV(outcome), how many are changed, failed and not started, and how many have each plan.
  returned: when the options can be used
  type: dict
  sample:
    not_sent: 0
    rejected: 2
    unknown: 1
    accepted: 997
    changed: 997
    failed: 3
    not_begun: 0
not_listed:
  description:
    - The names that O(ledger) has for the same service and that O(virtual_machines) does not list.
    - Of more than 1000, the first 1000; RV(counts) has the number of all.
  returned: in check mode with O(ledger)
  type: list
  elements: str
ansible_facts:
  description: The assets as a fact.
  returned: when the options can be used
  type: dict
  contains:
    compute_virtual_machines:
      description:
        - The assets by name, as far as the service is known to have them, in check mode as predicted.
        - Without those of which no field is left by O(asset_fields).
      type: dict
outcome:
  description:
    - What is known of the whole list. V(accepted), the service accepted at least one item. Otherwise V(unknown), at
      least one may or may not have been processed. Otherwise V(rejected), the service refused at least one. Otherwise
      V(not_sent), nothing reached the service, or nothing needed to.
    - RV(counts) has how many items there are of each.
  returned: always
  type: str
  sample: accepted
"""

from ..module_utils._list.lists import send_list
from ..module_utils._task.module import run_module
from ..module_utils._task.specs import VIRTUAL_MACHINES

if __name__ == "__main__":
    run_module(VIRTUAL_MACHINES, send_list)
