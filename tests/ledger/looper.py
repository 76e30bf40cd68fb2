# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Creates machines one after another, as a loop does: `python looper.py LOCATION URL COUNT`. One line of JSON each."""

from __future__ import annotations

import json
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
__import__("conftest")  # makes the collection importable
from ansible_collections.infrastructure.services.plugins.plugin_utils._ledger.entries import LedgerError
from ansible_collections.infrastructure.services.plugins.plugin_utils._ledger.location import open_ledger
from ledger.tasks import task

location, url, count = sys.argv[1:]
try:
    ledger = open_ledger(location)
except LedgerError:
    ledger = location  # each task reports why
for number in range(int(count)):
    print(json.dumps(task(ledger, base_url=url, name=f"web{number}", retries=0)), flush=True)
