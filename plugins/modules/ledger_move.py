#!/usr/bin/python
# -*- coding: utf-8 -*-

# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The documentation of the module; its action plugin does the work, on the controller."""

DOCUMENTATION = r"""
---
module: ledger_move
short_description: Move a ledger to another place, or its entries to the new URL of a service
description:
  - Moves a ledger with all its entries and its whole history, from a file to PostgreSQL when several controllers are to
    share it, back, or to another file or schema. Nothing is sent to the service.
  - From then on the old ledger is refused wherever it is named, with the name of the new one. A run that is at work
    begins nothing more; this task waits for the requests that it has in flight.
  - A move that was cut off is completed when the task runs again. Until then at most one of the two can be used.
  - A ledger is never used again where it was. To go back, move it to a new place.
  - If the file to move was last used elsewhere, or is a restored backup, a line on the screen says so.
  - With O(to_base_url) instead of O(to), the ledger stays where it is, and the entries of a service get the new URL of
    that service, with their history. Otherwise each machine would be a new one at the new URL. One transaction moves
    all of them or none.
  - From then on every task that uses the old URL with this ledger is refused, with the new URL.
version_added: 1.0.0
author:
  - The infrastructure.services contributors (@infrastructure-services)
extends_documentation_fragment:
  - infrastructure.services.connection.ledger
options:
  to:
    description:
      - The new location, a path or a C(postgresql://) URL.
      - There must not be a ledger yet; ledgers are not merged. If there is one, nothing is moved.
      - Either this or O(to_base_url) is required.
    type: str
  base_url:
    description:
      - The old URL of the service, as recorded. It is needed with O(to_base_url).
      - It is not taken from the environment.
      - With O(to) it has no effect, because a ledger moves as a whole.
    type: str
  to_base_url:
    description:
      - The new URL of the same service.
      - Nothing is moved while a task waits for an answer for one of the entries, or if a name is recorded at both URLs.
      - To undo the move, move the entries back.
    type: str
attributes:
  action_group:
    description: Use C(group/infrastructure.services.all) in C(module_defaults) to set options for all modules.
    support: full
    membership:
      - infrastructure.services.all
  check_mode:
    description: Can run in C(check_mode) and says whether the move is possible; both ledgers are then only read.
    support: full
    details:
      - With O(to_base_url) and an SQLite ledger, it does not see whether a task is running.
  diff_mode:
    description: Returns how many entries of each resource get the new URL.
    support: partial
    details:
      - With O(to) there is no diff, because no entry changes.
notes:
  - Behind a pooler of PostgreSQL connections it cannot wait for requests in flight; their assets are then in doubt.
  - In PostgreSQL, the user must own the tables of the ledger that is moved away.
seealso:
  - module: infrastructure.services.ledger_info
"""

EXAMPLES = r"""
- name: Move the ledger to another file
  infrastructure.services.ledger_move:
    ledger: fleet.db
    to: shared.db

- name: The service has a new URL
  infrastructure.services.ledger_move:
    ledger: shared.db
    base_url: https://infrastructure.example.com
    to_base_url: https://services.example.com
"""

RETURN = r"""
counts:
  description: How many entries, and rows of their history, are moved or were moved before.
  returned: on success
  type: dict
  sample:
    entries: 500
    history: 712
ledger:
  description: Where the ledger was, without a password; with O(to_base_url), where it is.
  returned: on success
  type: str
  sample: /srv/fleet/fleet.db
to:
  description: Where it is now, without a password.
  returned: on success, with O(to)
  type: str
  sample: postgresql://db.example.com/ledger
ledger_id:
  description: The id of the ledger, which it keeps.
  returned: on success
  type: str
  sample: 6b0f2c1d4e8a4b7f9c3d5e6f7a8b9c0d
base_url:
  description: The old URL, as it was recorded.
  returned: on success, with O(to_base_url)
  type: str
  sample: https://infrastructure.example.com
to_base_url:
  description: The new URL, as it is recorded.
  returned: on success, with O(to_base_url)
  type: str
  sample: https://services.example.com
outcome:
  description: Always V(not_sent), since nothing is sent to the service.
  returned: always
  type: str
  sample: not_sent
"""

from ansible_collections.infrastructure.services.plugins.module_utils._task.module import run_module
from ansible_collections.infrastructure.services.plugins.module_utils._task.specs import LEDGER_MOVE

if __name__ == "__main__":
    run_module(LEDGER_MOVE)
