# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The variables that create_fleet takes from its first host have one value for all hosts."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from ansible_collections.infrastructure.services.plugins.module_utils._errors import InvalidInput
from ansible_collections.infrastructure.services.plugins.plugin_utils._run.one_value import (
    require_one_value,
)

NAMES = {"base_url", "fleet_defaults", "fleet_ledger"}


class Templated:
    """Replaces `$name` with the variable, and counts."""

    count = 0

    def __call__(self, value: Any, variables: Any) -> Any:
        self.count += 1
        while isinstance(value, str) and value.startswith("$"):
            value = variables.get(value[1:])
        return value


def require(template: Templated | None = None, **hosts: dict[str, Any]) -> None:
    task_vars = {
        "ansible_play_hosts_all": [*hosts],
        "hostvars": SimpleNamespace(raw_get=hosts.__getitem__),
        "of_play": "value",
        **hosts["a"],
    }
    require_one_value(task_vars, NAMES, template or Templated())


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ({}, {}),
        ({"base_url": "u"}, {"base_url": "u"}),
        ({"base_url": ""}, {}),
        ({"base_url": None}, {"base_url": ""}),
        ({"fleet_defaults": {"a": [1]}}, {"fleet_defaults": {"a": [1]}}),
        ({"base_url": "$url", "url": "u"}, {"base_url": "u"}),
        ({"base_url": "$of_play"}, {"base_url": "value"}),
        ({"virtual_machine_attributes": {"cpu": 1}}, {"virtual_machine_attributes": {}}),
    ],
)
def test_one_value_is_used(one, other):
    require(a=one, b=other, c=one)
    require(a=other, b=other, c=one)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ({"base_url": "u"}, {"base_url": "v"}),
        ({"base_url": "u"}, {}),
        ({}, {"base_url": "u"}),
        ({"base_url": "$url", "url": "u"}, {"base_url": "$url", "url": "v"}),
        ({"base_url": "$url", "url": "u"}, {"base_url": "$url"}),
        ({"base_url": "u"}, {"base_url": ["u"]}),
        (
            {"base_url": "$url", "url": "$team", "team": "u"},
            {"base_url": "$url", "url": "$team", "team": "v"},
        ),
    ],
)
def test_values_that_differ_are_refused_without_being_shown(one, other):
    with pytest.raises(InvalidInput) as refused:
        require(a=one, b=one, c=other, d=other)
    assert refused.value.msg == (
        "base_url differs between a and c. This playbook uses one value for all hosts, so run it"
        " once for each group: -e fleet=GROUP."
    )


def test_all_variables_that_differ_are_named():
    with pytest.raises(
        InvalidInput,
        match=r"^base_url differs between a and c. fleet_ledger differs between a and b. This",
    ):
        require(
            a={"base_url": "u", "fleet_ledger": "l"},
            b={"base_url": "u", "fleet_ledger": "m"},
            c={"base_url": "v", "fleet_ledger": "l"},
        )


def test_what_hosts_share_is_templated_once():
    """So that a list, or the file behind it, is not read for each of 10,000 hosts."""
    template = Templated()
    group = {"base_url": "$url", "url": "u", "fleet_defaults": {"a": "{{ url }}"}}
    hosts = {name: {**group, "url": "".join(["u", "rl"]), "name": name} for name in "abcdefg"}
    require(template, **hosts)
    assert template.count == 2
