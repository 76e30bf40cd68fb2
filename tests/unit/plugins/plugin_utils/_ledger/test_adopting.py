# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How an edit of one entry is refused, and one that only adds; tests/ledger has all others."""

from __future__ import annotations

import pytest
from ansible_collections.infrastructure.services.plugins.module_utils._errors import InvalidInput
from ansible_collections.infrastructure.services.plugins.module_utils._secrets import Secrets
from ansible_collections.infrastructure.services.plugins.plugin_utils._ledger.adopting import (
    Item,
    edit_of,
)
from ansible_collections.infrastructure.services.plugins.plugin_utils._ledger.entries import (
    DONE,
    INTENT,
    UNKNOWN,
    Entry,
    Key,
)

KEY = Key("https://s.example", "compute_virtual_machine", "web01")
RECORDED = Entry(DONE, {"name": "web01"}, {"id": "i-1", "name": "web01"})
DOUBT = Entry(INTENT, {"name": "web01"}, {})


@pytest.mark.parametrize(
    ("entry", "state", "asset", "said"),
    [
        (None, "present", None, "asset: must be the envelope of the asset, with attributes"),
        (None, "present", {"id": "i", "attributes": 4}, "asset: must be the envelope of the asset"),
        (None, "present", {"id": "i", "a": float("nan")}, "asset: contains a value that JSON"),
        (None, "present", {"id": "i", "name": "b"}, "asset: its name is 'b', but the entry is for"),
        (None, "present", {"name": "web01"}, "asset: its id is missing. A machine is recorded as"),
        (None, "present", {"id": " i"}, "asset: its id is ' i': give what the service shows"),
        (None, "present", {"id": "absent"}, "asset: its id is 'absent', which is a state"),
        (None, "present", {"id": "TBD"}, "asset: its id is 'TBD', which is no id"),
        (None, INTENT, None, "state: is intent, but there is no entry"),
        (DOUBT, "unknown", None, "state: is unknown, but the entry is intent"),
        (DOUBT, "absent", {"id": "i"}, "asset: its id is 'i', and the state is absent, but the"),
        (RECORDED, "present", {"id": "i-2"}, "asset: its id is 'i-2', but 'i-1' is recorded"),
    ],
)
def test_a_refused_edit_says_which_option_is_wrong(entry, state, asset, said):
    with pytest.raises(InvalidInput) as refused:
        edit_of(Item(0, {}, KEY, state, asset, None), entry, Secrets())
    assert refused.value.msg.startswith(said)


@pytest.mark.parametrize(
    ("entry", "state", "kind", "after"),
    [
        (RECORDED, "unknown", "unchanged", RECORDED),
        (RECORDED, "present", "unchanged", RECORDED),
        (DOUBT, "present", "unchanged", DOUBT),
        (None, "unknown", "recorded_in_doubt", Entry(UNKNOWN, {"name": "sent"}, {})),
    ],
)
def test_an_edit_that_only_adds_leaves_an_entry_as_it_is_and_keeps_a_doubt(
    entry, state, kind, after
):
    item = Item(0, {"sent": {"name": "sent"}}, KEY, state, {"id": "i-2"}, None, only_adds=True)
    edit = edit_of(item, entry, Secrets())
    assert (edit.key, edit.before, edit.after, edit.kind) == (KEY, entry, after, kind)


@pytest.mark.parametrize("asset", [None, {"id": "n/a"}, {"id": "i", "attributes": 4}])
def test_an_asset_that_a_report_should_not_have_is_recorded_in_doubt(asset):
    item = Item(0, {"sent": {"name": "sent"}}, KEY, "present", asset, None, only_adds=True)
    edit = edit_of(item, None, Secrets())
    assert edit.after == Entry("accepted", {"name": "sent"}, {})
    assert edit.reason.startswith("recorded as in doubt, since ")
