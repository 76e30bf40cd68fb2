#!/usr/bin/python
# -*- coding: utf-8 -*-

# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Documentation of the module and a hand-over; what it does is in module_utils/virtual_machine.py."""

from __future__ import annotations

DOCUMENTATION = r"""
---
module: compute_virtual_machine
short_description: Create a virtual machine
description:
  - Creates a virtual machine through the Infrastructure Service.
  - The service can neither be asked what exists nor delete anything, and it creates another machine each time
    it is asked. The task therefore never repeats a request that may have been processed, and says what is known.
version_added: 1.0.0
author:
  - The infrastructure.services contributors (@infrastructure-services)
extends_documentation_fragment:
  - infrastructure.services.connection
options:
  name:
    description:
      - Name of the virtual machine.
    type: str
    required: true
  attributes:
    description:
      - Attributes of the virtual machine. What is not given, or null, is not sent.
      - The units of O(attributes.cpu), O(attributes.vm_ram), O(attributes.partitions[].capacity) and
        O(attributes.partitions[].free), the meaning of O(attributes.global_status.status) and the values that
        strings may have are not specified by the service.
    type: dict
    default: {}
    suboptions:
      bios_serial_number:
        description: Serial number of the BIOS.
        type: str
      cdc_security:
        description: State of the security agent.
        type: dict
        suboptions:
          anti_tamper:
            description: Anti-tamper setting of the agent.
            type: str
          connectivity:
            description: Connectivity of the agent.
            type: str
          customer_id:
            description: Identifier of the customer.
            type: str
          s1_version:
            description: Version of the agent.
            type: str
          uuid:
            description: Identifier of the agent.
            type: str
      cmdb_application_service:
        description: Application service in the CMDB.
        type: str
      cmdb_management_group:
        description: Management group in the CMDB.
        type: str
      cpu:
        description: Number of CPUs; the unit is not specified.
        type: float
      creation_date:
        description:
          - When the machine was created, ISO 8601; without a time zone it is UTC. Fractions of a second are dropped.
        type: str
      datacenter:
        description: Data centre.
        type: str
      global_status:
        description: Overall status.
        type: dict
        suboptions:
          label:
            description: The status in words.
            type: str
          status:
            description: The status as a number; what it means is not specified.
            type: float
      instance:
        description: Instance.
        type: str
      ip:
        description: IP address.
        type: str
      last_reboot_date:
        description: When the machine was last booted, in the form of O(attributes.creation_date).
        type: str
      memory_used_percent:
        description: Memory in use, in percent.
        type: float
      name:
        description: Name of the machine within its attributes.
        type: str
      operating_system:
        description: Operating system.
        type: str
      partitions:
        description: Partitions of its disks.
        type: list
        elements: dict
        suboptions:
          capacity:
            description: Capacity; the unit is not specified.
            type: float
          free:
            description: Free space; the unit is not specified.
            type: float
          path:
            description: Where it is mounted.
            type: str
      puppet_classes:
        description: Puppet classes.
        type: list
        elements: str
      status:
        description: Status; the values are not specified.
        type: str
      subnet:
        description: The subnet of the machine.
        type: dict
        suboptions:
          dns:
            description: Name server.
            type: str
          gateway:
            description: Gateway.
            type: str
          mask:
            description: Mask.
            type: str
          network:
            description: Network.
            type: str
      team:
        description: Team.
        type: str
      vm_ram:
        description: Memory; the unit is not specified.
        type: float
      volumes:
        description: Volumes.
        type: list
        elements: dict
        suboptions:
          name:
            description: Name of the volume.
            type: str
          size_gb:
            description: Size in gigabytes.
            type: float
  on_difference:
    description:
      - What to do when O(ledger) has the virtual machine already and it was created with other values than those given
        here. No operation of the service updates a virtual machine.
      - V(warn) names the fields and both values in a warning; the task is not changed.
      - V(fail) makes it a failure. Nothing is sent either way.
    type: str
    choices:
      - warn
      - fail
    default: warn
  extra_attributes:
    description:
      - Attributes that O(attributes) does not know, sent beside its own. One that it knows is refused here.
    type: dict
    default: {}
seealso:
  - module: infrastructure.services.cassandra_application_role
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
      operating_system: Debian 12
      volumes:
        - name: data
          size_gb: 100

- name: Use the asset in the next task
  ansible.builtin.debug:
    msg: "{{ compute_virtual_machine.name }} is {{ compute_virtual_machine.id }}"

# base_url and access_token come from the environment here.
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
  description: The asset as a fact. In a loop the last item wins; use C(register) to keep all of them.
  returned: on success
  type: dict
  contains:
    compute_virtual_machine:
      description: The same as RV(asset).
      type: dict
outcome:
  description:
    - What is known of the request. V(not_sent), provably nothing reached the service, or nothing needed to.
      V(rejected), the service said no. V(accepted), the service said yes. V(unknown), it may or may not have happened.
  returned: always
  type: str
  sample: accepted
plan:
  description:
    - What the next run would do. V(create), send the request. V(keep), nothing, since it is as it should be.
      V(differs), nothing either, although O(ledger) has it with other values; a warning names both.
  returned: on success, in check mode
  type: str
  sample: create
request:
  description: The request as it was sent, or would be.
  returned: when the options can be used
  type: dict
  contains:
    method:
      description: Method.
      type: str
      sample: POST
    url:
      description: Address.
      type: str
      sample: https://infrastructure.example.com/api/v1/services/compute/virtual_machines
    body:
      description: Body.
      type: dict
      sample:
        name: web01
        attributes:
          cpu: 4
error_body:
  description:
    - The body of an answer that was no success, at most 1,000 characters of it, without secrets and control characters.
    - The service sends none; gateways and proxies do.
  returned: on failure, when there was one
  type: str
  sample: upstream connect error
location:
  description: The C(Location) header of a success without a usable body, which may be all that tells the id.
  returned: when the service accepted the request and its answer cannot be used
  type: str
  sample: /api/v1/services/compute/virtual_machines/vm-0001
status:
  description: Status of the last answer, null when there was none.
  returned: when the options can be used
  type: int
  sample: 201
attempts:
  description: The same as RV(request_attempts), but ansible-core overwrites it under C(until).
  returned: when the options can be used
  type: int
  sample: 1
request_attempts:
  description: How often the request was tried.
  returned: when the options can be used
  type: int
  sample: 1
trace_id:
  description: Trace that the request belonged to, from E(TRACEPARENT).
  returned: when the options can be used and the environment has a valid TRACEPARENT
  type: str
  sample: 4bf92f3577b34da6a3ce929d0e0e4736
trace:
  description: Each attempt, those for a token included, in their order.
  returned: when the options can be used and the verbosity is 3 or more
  type: list
  elements: dict
  contains:
    method:
      description: Method.
      type: str
      sample: POST
    url:
      description: Address.
      type: str
    status:
      description: Status of the answer, null when there was none.
      type: int
      sample: 503
    error:
      description: What was wrong, empty after a success.
      type: str
    seconds:
      description: How long the attempt took.
      type: float
      sample: 0.012
    wait:
      description: Seconds until the next attempt, null after the last.
      type: float
      sample: 0.5
"""

from ansible_collections.infrastructure.services.plugins.module_utils._resources.virtual_machine import VIRTUAL_MACHINE
from ansible_collections.infrastructure.services.plugins.module_utils._task.module import main

if __name__ == "__main__":
    main(VIRTUAL_MACHINE)
