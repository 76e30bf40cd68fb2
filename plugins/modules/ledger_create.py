#!/usr/bin/python
# -*- coding: utf-8 -*-

# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The documentation of the module; its action plugin does the work, on the controller."""

DOCUMENTATION = r"""
---
module: ledger_create
short_description: Create an empty ledger for one service
description:
  - Creates an empty ledger, as an SQLite file for its owner alone, or as a schema with its tables in PostgreSQL.
    Nothing else creates one, so a lost file or a misspelled path is an error, and nothing is created again.
  - Do this once, by hand, with the playbook C(infrastructure.services.create_ledger), not in a playbook that runs
    again.
  - If the ledger of this service is there already, nothing changes. Anything else that is there is refused.
version_added: 1.0.0
author:
  - The infrastructure.services contributors (@infrastructure-services)
extends_documentation_fragment:
  - infrastructure.services.connection.ledger
options:
  base_url:
    description:
      - The base URL of the service, to which the ledger belongs from then on.
      - If not given, E(INFRASTRUCTURE_SERVICES_BASE_URL) is used.
    type: str
    required: true
  replaces:
    description:
      - The id of the ledger that this controller has used here, if that one is lost for good. The reports of its runs
        then count for the new one. The message that refuses the place names the id.
    type: str
attributes:
  check_mode:
    description: Can run in C(check_mode) and says whether a ledger would be created.
    support: full
  diff_mode:
    description: Has no diff, because no entry changes.
    support: none
notes:
  - In PostgreSQL, the user must be allowed to create a schema in the database, or to create tables in the schema.
seealso:
  - module: infrastructure.services.ledger_move
  - name: Back up and restore a ledger
    link: https://github.com/ansible-collections/infrastructure.services/blob/main/docs/docsite/rst/backup.rst
    description: Backups, restores and moves.
"""

EXAMPLES = r"""
- name: Create the ledger, once
  infrastructure.services.ledger_create:
    ledger: "{{ playbook_dir }}/fleet.db"
    base_url: https://infrastructure.example.com
"""

RETURN = r"""
ledger:
  description: Where the ledger is, without a password.
  returned: on success
  type: str
  sample: /srv/fleet/fleet.db
ledger_id:
  description: The id of the ledger, which moves keep; null in check mode if it would be created.
  returned: on success
  type: str
  sample: 6b0f2c1d4e8a4b7f9c3d5e6f7a8b9c0d
base_url:
  description: The URL of its service, in its canonical form.
  returned: on success
  type: str
  sample: https://infrastructure.example.com
outcome:
  description: Always V(not_sent), since nothing is sent to the service.
  returned: always
  type: str
  sample: not_sent
"""

from ..module_utils._task.module import run_module
from ..module_utils._task.specs import LEDGER_CREATE

if __name__ == "__main__":
    run_module(LEDGER_CREATE)
