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
module: cassandra_application_role
short_description: Update a Cassandra application role
description:
  - Updates an existing Cassandra application role through the Infrastructure Service.
  - A task needs O(id), O(base_url), and O(access_token) or O(auth_url); all but the id may come from the environment.
  - The service does not specify whether an update replaces the role or changes only the fields that are sent, and it
    cannot return the role. Set O(send=complete) to send the whole known role, which is safe in both cases. A field
    that is neither recorded nor given is not sent.
  - With O(ledger) or O(current), the task sends nothing if the known role already has all given values.
version_added: 1.0.0
author:
  - The infrastructure.services contributors (@infrastructure-services)
extends_documentation_fragment:
  - infrastructure.services.connection
  - infrastructure.services.assets.application_role
attributes:
  idempotent:
    description: Running the task again changes nothing.
    support: partial
    details:
      - The update has the same effect twice. With O(ledger) or O(current), nothing is sent again.
seealso:
  - module: infrastructure.services.cassandra_application_roles
  - module: infrastructure.services.ledger_entry
  - name: Update a Cassandra role
    link: https://github.com/ansible-collections/infrastructure.services/blob/main/docs/docsite/rst/update_a_role.rst
    description: Update a role without losing fields.
  - name: Troubleshoot failures
    link: https://github.com/ansible-collections/infrastructure.services/blob/main/docs/docsite/rst/failures.rst
    description: What to do after each outcome.
"""

EXAMPLES = r"""
- name: Update an application role
  infrastructure.services.cassandra_application_role:
    base_url: "{{ lookup('ansible.builtin.env', 'INFRASTRUCTURE_SERVICES_BASE_URL') }}"
    access_token: "{{ lookup('ansible.builtin.env', 'INFRASTRUCTURE_SERVICES_ACCESS_TOKEN') }}"
    id: role-0001
    description: Orders service
    attributes:
      login: true
      effective_grants:
        - permissions:
            - SELECT
            - MODIFY
          resource_kind: keyspace
          resource_name: orders
    ledger: "{{ lookup('ansible.builtin.env', 'INFRASTRUCTURE_SERVICES_LEDGER') }}"

# base_url, access_token and ledger come from the environment here, and below.
- name: Send nothing, since the known role already has all of it
  infrastructure.services.cassandra_application_role:
    id: role-0001
    attributes:
      login: true

- name: Send a body of your own
  infrastructure.services.cassandra_application_role:
    id: role-0001
    body:
      description: null

- name: Change one field and send the whole known role
  infrastructure.services.cassandra_application_role:
    id: role-0001
    attributes:
      login: false
    send: complete

# The token of a client of an identity provider. The secret belongs into ansible-vault.
- name: Update the role as a client
  infrastructure.services.cassandra_application_role:
    auth_url: https://login.example.com/oauth/token
    client_id: provisioning
    client_secret: "{{ vaulted_client_secret | default('from ansible-vault') }}"
    id: role-0001
    attributes:
      login: true

- name: Set options once for several tasks
  module_defaults:
    group/infrastructure.services.all:
      timeout: 60
      retries: 5
  block:
    - name: Update the role with these options
      infrastructure.services.cassandra_application_role:
        id: role-0001
        attributes:
          login: true

- name: See what would be sent
  infrastructure.services.cassandra_application_role:
    id: role-0001
    attributes:
      login: true
  check_mode: true
  diff: true

- name: Update the role from the controller in a play for other hosts
  infrastructure.services.cassandra_application_role:
    id: role-0001
    attributes:
      login: true
  delegate_to: localhost

- name: Act on the outcome
  block:
    - name: Let the role log in
      infrastructure.services.cassandra_application_role:
        id: role-0001
        attributes:
          login: true
      register: role
  rescue:
    - name: Say what is known
      ansible.builtin.fail:
        msg: "{{ role.msg }} ({{ role.outcome | default('unknown') }})"
"""

RETURN = r"""
asset:
  description:
    - The envelope of the role, exactly as the service returned it.
    - In check mode it is predicted, with null where only the service can know.
    - When nothing was sent because O(current) already has all of it, it is O(current).
  returned: on success
  type: dict
  contains:
    id:
      description: Unique identifier of the asset.
      type: str
      sample: role-0001
    name:
      description: Name of the asset.
      type: str
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
        login: true
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
    cassandra_application_role:
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
    - What the next run would do. V(update), send the request. V(keep), nothing, since it is already as requested.
  returned: on success, in check mode
  type: str
  sample: update
request:
  description: The request as it was sent, or would be sent.
  returned: when there is something to send
  type: dict
  contains:
    method:
      description: HTTP method.
      type: str
      sample: PUT
    url:
      description: URL.
      type: str
      sample: https://infrastructure.example.com/api/v1/services/cassandra/application_roles/role-0001
    body:
      description: The JSON body.
      type: dict
      sample:
        attributes:
          login: true
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
  sample: /api/v1/services/cassandra/application_roles/role-0001
status:
  description: HTTP status of the last answer, null when there was none.
  returned: when the options can be used
  type: int
  sample: 200
lost:
  description:
    - The fields that were known before the update, from O(current) or O(ledger), were not sent, and came back
      different or not at all. The service replaces what is not sent, or somebody else changed it.
    - An answer that only repeats what was sent tells nothing of them.
  returned: on success, when there are any
  type: list
  elements: dict
  contains:
    name:
      description: The field, such as C(attributes.cluster_id).
      type: str
      sample: attributes.cluster_id
    known:
      description: Its value as it was known.
      type: raw
      sample: eu/a
    now:
      description: Its value as it came back.
      type: raw
      returned: when it came back
request_attempts:
  description: How many times the request was attempted.
  returned: when the options can be used
  type: int
  sample: 1
"""

from ..module_utils._task.module import run_module
from ..module_utils._task.specs import APPLICATION_ROLE

if __name__ == "__main__":
    run_module(APPLICATION_ROLE)
