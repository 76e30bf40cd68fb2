#!/usr/bin/python
# -*- coding: utf-8 -*-

# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The documentation of the module; its action plugin does the work, on the controller."""

DOCUMENTATION = r"""
---
module: ledger_move
short_description: Move a ledger, or give it the new URL of its service
description:
  - Moves a ledger with all its entries and its whole history, from a file to PostgreSQL when several controllers are to
    share it, back, or to another file or schema. Nothing is sent to the service.
  - From then on the old ledger is refused wherever it is named, with the name of the new one.
  - A ledger with requests that may be in flight is refused, with their names. Wait until they have ended, and settle
    those that are in doubt then.
  - A move that was cut off is completed when the task runs again. Until then at most one of the two can be used.
  - A ledger is never used again where it was. To go back, move it to a new place.
  - With O(to_base_url) the ledger stays where it is, and gets the new URL of the service that it belongs to.
version_added: 1.0.0
author:
  - The infrastructure.services contributors (@infrastructure-services)
extends_documentation_fragment:
  - infrastructure.services.connection.ledger
options:
  to:
    description:
      - The new location, an absolute path or a C(postgresql://) URL with its C(schema), which is created. Either this
        or O(to_base_url) is required.
      - There must not be a ledger yet; ledgers are not merged. If there is one, nothing is moved.
    type: str
  to_base_url:
    description:
      - The new base URL of the service, which its tasks need from then on.
      - No environment variable is used.
    type: str
attributes:
  check_mode:
    description: Can run in C(check_mode) and says whether the move is possible; both ledgers are then only read.
    support: full
  diff_mode:
    description: Has no diff, because no entry changes.
    support: none
notes:
  - In PostgreSQL, the user must own the tables of the ledger that is moved away.
seealso:
  - module: infrastructure.services.ledger_info
  - name: Back up and restore a ledger
    link: https://github.com/ansible-collections/infrastructure.services/blob/main/docs/docsite/rst/backup.rst
    description: Backups, restores and moves.
"""

EXAMPLES = r"""
- name: Move the ledger to another file
  infrastructure.services.ledger_move:
    ledger: "{{ playbook_dir }}/fleet.db"
    to: /srv/fleet/shared.db

- name: The service has a new URL
  infrastructure.services.ledger_move:
    ledger: /srv/fleet/shared.db
    to_base_url: https://infrastructure.example.org
"""

RETURN = r"""
ledger:
  description: Where the ledger was, without a password.
  returned: on success
  type: str
  sample: /srv/fleet/fleet.db
to:
  description: Where it is now, without a password.
  returned: on success, with O(to)
  type: str
  sample: postgresql://db.example.com:5432/ledger?schema=fleet
base_url:
  description: The URL of the service before.
  returned: on success, with O(to_base_url)
  type: str
  sample: https://infrastructure.example.com
to_base_url:
  description: The URL of the service now, in its canonical form.
  returned: on success, with O(to_base_url)
  type: str
  sample: https://infrastructure.example.org
ledger_id:
  description: The id of the ledger, which it keeps.
  returned: on success
  type: str
  sample: 6b0f2c1d4e8a4b7f9c3d5e6f7a8b9c0d
outcome:
  description: Always V(not_sent), since nothing is sent to the service.
  returned: always
  type: str
  sample: not_sent
"""

from ..module_utils._task.module import run_module
from ..module_utils._task.specs import LEDGER_MOVE

if __name__ == "__main__":
    run_module(LEDGER_MOVE)
