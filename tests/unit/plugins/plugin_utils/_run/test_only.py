# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The items of the role that `fleet_only` names; the others are left out, and a line says so."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from ansible_collections.infrastructure.services.plugins.module_utils._errors import InvalidInput
from ansible_collections.infrastructure.services.plugins.plugin_utils._run.only import Only

MACHINES = [{"name": "web01"}, {"name": "web02"}, {"name": "db01"}, "web03", {"cpu": 4}]
LISTS = {"fleet_virtual_machines": MACHINES, "fleet_application_roles": [{"id": "role-1"}]}


def only(*globs: str) -> Only:
    spec = SimpleNamespace(key="name", names={"virtual_machines": "fleet_virtual_machines"})
    action = SimpleNamespace(
        spec=spec, list_variable=lambda *_names: list(globs), variable=LISTS.get
    )
    return Only(action)


def test_all_items_are_selected_without_it():
    everything = only()
    assert everything.selected(MACHINES) == MACHINES
    assert (everything.lines(), everything.without_left_out(["web01"])) == ([], ["web01"])


def test_what_matches_is_selected_and_so_is_an_invalid_item():
    some = only("web*", "role-1")
    assert some.selected(MACHINES) == [*MACHINES[:2], *MACHINES[3:]]
    assert some.left_out == ["db01"]
    assert some.lines() == ["1 more of the list are left out (fleet_only: web*, role-1)"]
    assert some.without_left_out(["db01", "old"]) == ["old"]
    assert some.without_left_out(None) is None


def test_a_name_in_neither_list_is_refused():
    with pytest.raises(InvalidInput, match=r"^fleet_only: db02 is in neither list$"):
        only("web01", "db02")
