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
module: cassandra_application_roles
short_description: Update many Cassandra application roles at once
description:
  - Updates the application roles of a list through the Infrastructure Service, several at once from one task.
  - All of them are validated before the first request. Each is then handled as by
    M(infrastructure.services.cassandra_application_role), and has a result of its own, whatever the results of the
    others.
  - If the service replaces a role, the role loses every field that is not sent. Record the roles once, and set
    C(send=complete) in O(defaults) to send the whole recorded roles.
  - The number of concurrent requests adapts to what the service can handle. It starts with a few, grows while all is
    well and shrinks when the service is overloaded.
version_added: 1.0.0
author:
  - The infrastructure.services contributors (@infrastructure-services)
extends_documentation_fragment:
  - infrastructure.services.connection
  - infrastructure.services.many
  - infrastructure.services.assets.application_roles
options:
  application_roles:
    description:
      - The application roles. Two with the same id are refused.
    type: list
    elements: dict
    required: true
attributes:
  idempotent:
    description: Running the task again changes nothing.
    support: partial
    details:
      - An update has the same effect twice. With O(ledger), nothing is sent again.
seealso:
  - module: infrastructure.services.cassandra_application_role
  - name: Update a Cassandra role
    link: https://github.com/ansible-collections/infrastructure.services/blob/main/docs/docsite/rst/update_a_role.rst
    description: Update a role without losing fields.
  - name: Manage a fleet
    link: https://github.com/ansible-collections/infrastructure.services/blob/main/docs/docsite/rst/fleet.rst
    description: The same list with a plan, an approval and a report.
"""

EXAMPLES = r"""
# base_url, access_token and ledger come from the environment.
- name: Let three roles log in
  infrastructure.services.cassandra_application_roles:
    application_roles:
      - id: role-0001
        attributes:
          login: true
      - id: role-0002
        attributes:
          login: true
      - id: role-0003
        description: Orders service
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
      description: The id of the item.
      type: str
      sample: role-0001
    changed:
      description: Whether the service accepted its request; in check mode, whether a request would be sent.
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
      sample: 200
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
        - The plan for the next run. V(update), send the request. V(keep), nothing, since it is already as requested.
          V(in_flight), another task has a request in flight for it.
      returned: in check mode
      type: str
      sample: update
    lost:
      description:
        - The fields that were known before the update, from O(application_roles[].current) or O(ledger), were not sent,
          and came back different or not at all. The service replaces what is not sent, or somebody else changed it.
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
          description:
            - The attributes, with the fields of O(application_roles[].attributes) and whatever else the service
              returns.
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
    - The ids that O(ledger) has for the same service and that O(application_roles) does not list.
    - Of more than 1000, the first 1000; RV(counts) has the number of all.
  returned: in check mode with O(ledger)
  type: list
  elements: str
ansible_facts:
  description: The assets as a fact.
  returned: when the options can be used
  type: dict
  contains:
    cassandra_application_roles:
      description:
        - The assets by id, as far as the service is known to have them, in check mode as predicted.
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
from ..module_utils._task.specs import APPLICATION_ROLES

if __name__ == "__main__":
    run_module(APPLICATION_ROLES, send_list)
