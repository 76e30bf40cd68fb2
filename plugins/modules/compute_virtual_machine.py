#!/usr/bin/python
# -*- coding: utf-8 -*-

# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The documentation and entry point of the module; its operation is in
module_utils/_resources/resources.py, the way of a task in module_utils/_task/task.py.
"""

DOCUMENTATION = r"""
---
module: compute_virtual_machine
short_description: Create a virtual machine
description:
  - Creates a virtual machine through the Infrastructure Service, once, by its O(ledger).
  - A task needs O(name), O(ledger), O(base_url), and O(access_token) or O(auth_url); all but the name may come from
    the environment.
  - The service creates a machine for each request and cannot look up, list or delete machines. With the word V(none) as
    O(ledger) the task is not idempotent; each run creates another machine.
  - The task never repeats a request that the service may have processed, and RV(outcome) says what is known.
version_added: 1.0.0
author:
  - The infrastructure.services contributors (@infrastructure-services)
extends_documentation_fragment:
  - infrastructure.services.connection.creation
  - infrastructure.services.connection
  - infrastructure.services.assets.virtual_machine
  - infrastructure.services.assets.on_difference
attributes:
  idempotent:
    description: Running the task again changes nothing.
    support: partial
    details:
      - Unless O(ledger=none).
seealso:
  - module: infrastructure.services.compute_virtual_machines
  - module: infrastructure.services.ledger_info
  - name: How it works
    link: https://github.com/ansible-collections/infrastructure.services/blob/main/docs/docsite/rst/ledger.rst
    description: How it works, outcomes and the ledger.
  - name: Troubleshoot failures
    link: https://github.com/ansible-collections/infrastructure.services/blob/main/docs/docsite/rst/failures.rst
    description: What to do after each outcome.
  - name: Create virtual machines
    link: https://github.com/ansible-collections/infrastructure.services/blob/main/docs/docsite/rst/create_machines.rst
    description: A loop, a thousand at once.
"""

EXAMPLES = r"""
- name: Create a virtual machine
  infrastructure.services.compute_virtual_machine:
    base_url: "{{ lookup('ansible.builtin.env', 'INFRASTRUCTURE_SERVICES_BASE_URL') }}"
    access_token: "{{ lookup('ansible.builtin.env', 'INFRASTRUCTURE_SERVICES_ACCESS_TOKEN') }}"
    name: web01
    attributes:
      cpu: 4
      vm_ram: 16
      operating_system: Debian 13
      volumes:
        - name: data
          size_gb: 100
    ledger: "{{ lookup('ansible.builtin.env', 'INFRASTRUCTURE_SERVICES_LEDGER') }}"

- name: Use the asset in the next task
  ansible.builtin.debug:
    msg: "The id is {{ ansible_facts.compute_virtual_machine.id }}"

# base_url, access_token and ledger come from the environment here, and below.
- name: Create several virtual machines
  infrastructure.services.compute_virtual_machine:
    name: "{{ item }}"
    attributes:
      team: platform
  loop:
    - app01
    - app02
    - app03
  register: created

# The fact holds the asset of the last item only; register keeps all of them.
- name: Show all of them
  ansible.builtin.debug:
    msg: "{{ created.results | map(attribute='asset.id') | list }}"

# The token of a client of an identity provider. The secret belongs into ansible-vault.
- name: Create web02 as a client
  infrastructure.services.compute_virtual_machine:
    auth_url: https://login.example.com/oauth/token
    client_id: provisioning
    client_secret: "{{ vaulted_client_secret | default('from ansible-vault') }}"
    name: web02
    attributes:
      cpu: 4

- name: Set options once for several tasks
  module_defaults:
    group/infrastructure.services.all:
      timeout: 60
      retries: 5
  block:
    - name: Create web02 with these options
      infrastructure.services.compute_virtual_machine:
        name: web02
        attributes:
          cpu: 4

# Nothing is sent: the ledger records the machine, or settles it if it is in doubt.
- name: Adopt a machine that exists
  infrastructure.services.compute_virtual_machine:
    name: web04
    id: 0b5f1a52-7d3c-4a0e-9d0e-5a1d3b0f6f14
    attributes:
      cpu: 4

- name: See what would be sent
  infrastructure.services.compute_virtual_machine:
    name: web02
    attributes:
      cpu: 4
  check_mode: true
  diff: true

- name: Create web02 from the controller in a play for other hosts
  infrastructure.services.compute_virtual_machine:
    name: web02
    attributes:
      cpu: 4
  delegate_to: localhost

- name: Act on the outcome
  block:
    - name: Create web03
      infrastructure.services.compute_virtual_machine:
        name: web03
      register: web03
  rescue:
    - name: Stop, since the machine may exist
      ansible.builtin.fail:
        msg: "{{ web03.msg }}"
      when: web03.outcome | default('unknown') in ['accepted', 'unknown']
"""

RETURN = r"""
asset:
  description:
    - The envelope of the virtual machine, exactly as the service returned it.
    - In check mode it is predicted, with null where only the service can know.
  returned: on success
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
      description: The attributes, with the fields of O(attributes) and whatever else the service returns.
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
ansible_facts:
  description: The asset as a fact. In a loop only that of the last item remains; use C(register) to keep all of them.
  returned: on success
  type: dict
  contains:
    compute_virtual_machine:
      description: The same as RV(asset).
      type: dict
outcome:
  description:
    - What is known of the request. V(not_sent), provably nothing reached the service, or nothing needed to.
      V(rejected), the service refused it. V(accepted), the service accepted it. V(unknown), it may or may not have been
      processed.
  returned: always
  type: str
  sample: accepted
plan:
  description:
    - What the next run would do. V(create), send the request. V(adopt), record the machine with its O(id) and send
      nothing. V(keep), nothing, since it is already as requested.
      V(differs), nothing either, although O(ledger) has it with different values; the message names both.
  returned: on success, in check mode
  type: str
  sample: create
differs:
  description: The fields that differ from what O(ledger) has, each with both values.
  returned: when there are such fields
  type: list
  elements: str
  sample:
    - attributes.cpu (8 asked for, 4 recorded)
request:
  description: The request as it was sent, or would be sent; there is none for a machine that is recorded or adopted.
  returned: when there is something to send
  type: dict
  contains:
    method:
      description: HTTP method.
      type: str
      sample: POST
    url:
      description: URL.
      type: str
      sample: https://infrastructure.example.com/api/v1/services/compute/virtual_machines
    body:
      description: The JSON body.
      type: dict
      sample:
        name: web01
        attributes:
          cpu: 4
error_body:
  description:
    - The body of an answer that was not a success, at most 1,000 characters, without secrets and control characters.
    - The service sends none; gateways and proxies do.
  returned: on failure, when there was one
  type: str
  sample: upstream connect error
location:
  description: The C(Location) header of a success without a usable body, which may be the only trace of the id.
  returned: when the service accepted the request and its answer cannot be used
  type: str
  sample: /api/v1/services/compute/virtual_machines/vm-0001
status:
  description: HTTP status of the last answer, null when there was none.
  returned: when the options can be used
  type: int
  sample: 201
request_attempts:
  description: How many times the request was attempted.
  returned: when the options can be used
  type: int
  sample: 1
"""

from ..module_utils._task.module import run_module
from ..module_utils._task.specs import VIRTUAL_MACHINE

if __name__ == "__main__":
    run_module(VIRTUAL_MACHINE)
