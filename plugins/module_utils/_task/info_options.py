# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The options of `ledger_info`; plugin_utils/_ledger/listing.py does the work, on the controller."""

from __future__ import annotations

from .._fields import DATE_TIME
from .entry_options import KEYS
from .options import ARGUMENT_SPEC as _SHARED

IN_DOUBT = "in_doubt"  # every state but done

OPTIONS = dict(
    ledger=dict(_SHARED["ledger"], required=True),
    base_url=dict(type="str"),
    resource=dict(type="str", choices=list(KEYS)),
    names=dict(type="list", elements="str"),
    states=dict(type="list", elements="str", choices=["intent", "done", "accepted", "unknown", IN_DOUBT]),
    changed_since=dict(type=DATE_TIME),
    run=dict(type="str"),
    history=dict(type="bool", default=False),
)
CONSTRAINTS: dict = {}
