# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Runs one task in many processes at once: `python crowd.py LOCATION URL COUNT NAME`. One line of JSON per process."""

from __future__ import annotations

import json
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
__import__("conftest")  # makes the collection importable
from ledger.crasher import ended, fork

location, url, count, name = sys.argv[1:]
for child, reading in [fork(location, url, name) for _number in range(int(count))]:
    print(json.dumps(ended(child, reading)), flush=True)
