# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A role loses fields, check mode names them beforehand, and the message restores them."""

from __future__ import annotations

import json
import re

import pytest
import yaml

UPDATE = "infrastructure.services.cassandra_application_role"
ATTRIBUTES = {"login": True, "cluster_id": "eu/a", "new_field": [1]}
KNOWN = {"id": "role-1", "name": "reader", "attributes": ATTRIBUTES}
ADOPTING = {
    "infrastructure.services.ledger_entry": {
        "ledger": "roles.db",
        "resource": "cassandra_application_role",
        "id": "role-1",
        "asset": KNOWN,
    }
}
GIVEN = {"id": "role-1", "ledger": "roles.db", "attributes": {"login": False}}


def warning(run, begin: str) -> str:
    (found,) = [
        text for line in run.results for text in line["result"].get("warnings", ()) if begin in text
    ]
    return found


@pytest.mark.matrix
def test_what_a_role_loses_is_told_beforehand_and_the_message_restores_it(ansible_once, service):
    service.settings(put="replace")
    service.seed("role-1", name="reader")
    update = {UPDATE: GIVEN}
    run = ansible_once.tasks(yaml.safe_dump([ADOPTING, {**update, "check_mode": True}, update]))
    assert warning(run.ok(), "are known and not sent").endswith(
        "these fields are known and not sent: name, attributes.cluster_id, attributes.new_field."
        " A service that replaces drops them; send: complete keeps them."
    )
    said = warning(run, "were known and not sent")
    old = json.loads(re.search(r"add (\{.*\}) to the task", said)[1])
    assert old == {
        "name": "reader",
        "attributes": {"cluster_id": "eu/a"},
        "extra_attributes": {"new_field": [1]},
    }

    attributes = {**GIVEN["attributes"], **old.pop("attributes")}
    again = {**GIVEN, **old, "attributes": attributes, "send": "complete"}
    run = ansible_once.tasks(yaml.safe_dump([{UPDATE: again}, {UPDATE: again}])).ok()
    *_before, sent = service.bodies()
    assert sent["name"] == "reader"
    assert sent["attributes"] == {**ATTRIBUTES, "login": False}
    assert [line["result"]["outcome"] for line in run.results] == ["accepted", "not_sent"]
