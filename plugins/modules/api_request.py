#!/usr/bin/python
# -*- coding: utf-8 -*-

# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The documentation and entry point of the module; the code is in
module_utils/_task/api_request.py.
"""

DOCUMENTATION = r"""
---
module: api_request
short_description: Send any other request to the service
description:
  - Sends a request for which the collection has no module, with the same token, retries, masking and messages.
  - An operation that has a module here is refused, and the message names the module.
version_added: 1.0.0
author:
  - The infrastructure.services contributors (@infrastructure-services)
extends_documentation_fragment:
  - infrastructure.services.connection
options:
  method:
    description:
      - HTTP method. V(POST) and V(PATCH) are sent again only when it is proven that nothing of the request was sent, or
        when the service answered 429; the others also after a lost answer.
    type: str
    choices:
      - POST
      - PATCH
      - PUT
      - GET
      - HEAD
      - DELETE
    default: GET
  path:
    description:
      - Path below O(base_url), which starts with C(/api/v1/). It is sent as it is, so special characters must be
        percent-encoded, for example by the filter C(urlencode).
      - A query, a fragment, parameters after C(;), and the segments C(.) and C(..) are refused, encoded or not.
    type: str
    required: true
  query:
    description:
      - Parameters of the query. A list repeats its name, V(true) and V(false) are sent as such words, and null is
        omitted.
      - The result shows them. Send credentials as O(headers).
    type: dict
    default: {}
  body:
    description:
      - Body to send as JSON, of any type. A string is sent as a JSON string. Null sends no body.
    type: raw
attributes:
  check_mode:
    description: Can run in C(check_mode) and return what would change.
    support: full
    details:
      - C(GET) and C(HEAD) are sent in check mode as well, because they change nothing. Other requests are not sent.
  diff_mode:
    description: Returns what changed, or would change, when in diff mode.
    support: none
  idempotent:
    description: Running the task again changes nothing.
    support: N/A
    details:
      - This depends on the operation. The keywords C(until) and C(retries) are refused with V(POST) and V(PATCH).
notes:
  - Nothing is recorded, so O(ledger) has no effect.
seealso:
  - module: infrastructure.services.compute_virtual_machine
  - module: infrastructure.services.cassandra_application_role
  - name: Troubleshoot failures
    link: https://github.com/ansible-collections/infrastructure.services/blob/main/docs/docsite/rst/failures.rst
    description: What to do after each outcome.
"""

EXAMPLES = r"""
# base_url and access_token come from the environment here.
- name: Wait for the machine that was created last
  infrastructure.services.api_request:
    path: /api/v1/services/compute/virtual_machines/{{ ansible_facts.compute_virtual_machine.id | urlencode }}
  register: seen
  until: seen is success and seen.json.attributes.status == 'running'
  retries: 30
  delay: 10

- name: List two pages of a kind
  infrastructure.services.api_request:
    path: /api/v1/services/compute/virtual_machines
    query:
      team: [web, shop]
      page: "{{ item }}"
  loop: [1, 2]

- name: Delete a machine
  infrastructure.services.api_request:
    method: DELETE
    path: /api/v1/services/compute/virtual_machines/{{ ansible_facts.compute_virtual_machine.id | urlencode }}
"""

RETURN = r"""
json:
  description:
    - The JSON of the answer, null if its body is empty. In check mode it is null unless the request was sent.
  returned: on success
  type: raw
  sample:
    id: vm-0001
outcome:
  description:
    - What is known of the request. V(not_sent), provably nothing reached the service. V(rejected), the service refused
      it. V(accepted), the service accepted it. V(unknown), it may or may not have been processed.
  returned: always
  type: str
  sample: accepted
request:
  description: The request as it was sent, or would be sent.
  returned: when the options can be used
  type: dict
  contains:
    method:
      description: HTTP method.
      type: str
      sample: GET
    url:
      description: URL, with the query.
      type: str
      sample: https://infrastructure.example.com/api/v1/services/compute/virtual_machines/vm-0001
    body:
      description: The JSON body, null if there is none.
      type: raw
error_body:
  description:
    - The body of an answer that was not a success, at most 1,000 characters, without secrets and control characters.
  returned: on failure, when there was one
  type: str
  sample: upstream connect error
location:
  description: The C(Location) header of a success without a usable body.
  returned: when the service accepted the request and its answer cannot be used
  type: str
  sample: /api/v1/services/compute/virtual_machines/vm-0001
status:
  description: HTTP status of the last answer, null when there was none.
  returned: when the options can be used
  type: int
  sample: 200
request_attempts:
  description: How many times the request was attempted.
  returned: when the options can be used
  type: int
  sample: 1
"""

from ..module_utils._task.api_request import API_REQUEST, send_request
from ..module_utils._task.module import run_module

if __name__ == "__main__":
    run_module(API_REQUEST, send_request)
