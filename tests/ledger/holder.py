# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Holds a key of a ledger until it is killed: `python holder.py LOCATION NAME`. Prints `held`, and the time."""

from __future__ import annotations

import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
__import__("conftest")  # makes the collection importable
from ansible_collections.infrastructure.services.plugins.plugin_utils._ledger.entries import Key
from ansible_collections.infrastructure.services.plugins.plugin_utils._ledger.location import open_ledger

with open_ledger(sys.argv[1]).hold(Key("https://s", "compute_virtual_machine", sys.argv[2])):
    print("held", time.monotonic(), sep="\n", flush=True)
    time.sleep(60)
