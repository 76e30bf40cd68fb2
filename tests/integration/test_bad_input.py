# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Every bad input fails before anything is sent, names the option, returns `not_sent` and shows no
traceback.
"""

from __future__ import annotations

import pytest
import yaml

VM = "infrastructure.services.compute_virtual_machine"
ROLE = "infrastructure.services.cassandra_application_role"

# name of the case: (module, its options, what the message names)
CASES = {
    "empty name": (VM, {"name": ""}, "name"),
    "no name": (VM, {}, "name: is missing: set it. Nothing was sent."),
    "empty id": (ROLE, {"id": "", "name": "x"}, "id"),
    "id of one dot": (ROLE, {"id": ".", "name": "x"}, "id"),
    "id of two dots": (ROLE, {"id": "..", "name": "x"}, "id"),
    "word for a number": (VM, {"name": "x", "attributes": {"cpu": "four"}}, "cpu"),
    "text for an object": (VM, {"name": "x", "attributes": {"subnet": "10.0.0.0"}}, "subnet"),
    "object for a list": (VM, {"name": "x", "attributes": {"volumes": {"name": "x"}}}, "volumes"),
    "word for a number in a list": (
        VM,
        {"name": "x", "attributes": {"volumes": [{"size_gb": "big"}]}},
        "size_gb",
    ),
    "word for a boolean": (ROLE, {"id": "x", "attributes": {"login": "perhaps"}}, "login"),
    "unknown attribute": (VM, {"name": "x", "attributes": {"cpus": 4}}, "cpus"),
    "typed attribute among the extra": (
        VM,
        {"name": "x", "extra_attributes": {"cpu": 4}},
        "extra_attributes",
    ),
    "a date that is not one": (
        VM,
        {"name": "x", "attributes": {"creation_date": "tomorrow"}},
        "creation_date",
    ),
    "a day that does not exist": (
        VM,
        {"name": "x", "attributes": {"last_reboot_date": "2026-02-30T00:00:00Z"}},
        "last_reboot_date",
    ),
    "a role's date that is not one": (
        ROLE,
        {"id": "x", "attributes": {"password_last_rotated_at": "never"}},
        "password_last_rotated_at",
    ),
    "base_url without scheme": (VM, {"name": "x", "base_url": "127.0.0.1:8080"}, "base_url"),
    "base_url with a query": (VM, {"name": "x", "base_url": "http://127.0.0.1/?a=b"}, "base_url"),
    "base_url with a fragment": (VM, {"name": "x", "base_url": "http://127.0.0.1/#a"}, "base_url"),
    "base_url with spaces": (VM, {"name": "x", "base_url": "http://127.0.0.1/a b"}, "base_url"),
    "base_url with user info": (VM, {"name": "x", "base_url": "http://u:p@127.0.0.1/"}, "base_url"),
    "plain http to another host": (
        VM,
        {"name": "x", "base_url": "http://service.example"},
        "allow_http",
    ),
    "token with a newline": (VM, {"name": "x", "access_token": "a\nb"}, "access_token"),
    "body beside attributes": (
        ROLE,
        {"id": "x", "body": {"a": 1}, "attributes": {"login": True}},
        "body",
    ),
    "nothing to update": (ROLE, {"id": "x"}, "attributes"),
    "timeout of nothing": (VM, {"name": "x", "timeout": 0}, "timeout"),
    "a text for a list of dicts": (
        VM,
        {"name": "x", "attributes": {"volumes": "data"}},
        "attributes.volumes: must be a list such as [{name: data, size_gb: 200}]",
    ),
    "attributes beside the attributes": (
        VM,
        {"name": "x", "cpu": 4, "vm_ram": 8},
        "cpu and vm_ram belong under attributes; indent them. Nothing was sent.",
    ),
    "a header for a token": (
        VM,
        {"name": "x", "access_token": "Bearer abc"},
        'leave out "Bearer ". Nothing was',
    ),
    "a word in the environment": (
        VM,
        {"name": "x"},
        '"soon" is not a number of seconds. Nothing was sent.',
    ),
    "nothing in the environment": (VM, {"name": "x"}, "must be greater than 0"),
    "no token": (VM, {"name": "x"}, "access_token"),
    "no base_url": (VM, {"name": "x"}, "base_url"),
}
# An empty variable counts as unset.
ENVIRONMENTS = {
    "no token": {"INFRASTRUCTURE_SERVICES_ACCESS_TOKEN": ""},
    "no base_url": {"INFRASTRUCTURE_SERVICES_BASE_URL": ""},
    "a word in the environment": {"INFRASTRUCTURE_SERVICES_TIMEOUT": "soon"},
    "nothing in the environment": {"INFRASTRUCTURE_SERVICES_TIMEOUT": "0"},
}


@pytest.fixture(scope="module")
def refused(tmp_path_factory, collections, running_service, ansible_in):
    """All cases in one run, with the conversation recorded after it."""
    running_service.reset()
    tasks = [
        {
            "name": name,
            case[0]: case[1],
            "environment": ENVIRONMENTS.get(name, {}),
            "ignore_errors": True,
        }
        for name, case in CASES.items()
    ]
    run = ansible_in(tmp_path_factory.mktemp("bad")).playbook(
        yaml.safe_dump(
            [{"hosts": "localhost", "gather_facts": False, "tasks": tasks}], sort_keys=False
        )
    )
    return run, running_service.conversation()


@pytest.mark.parametrize("case", CASES)
def test_bad_input_is_refused_naming_the_option(refused, case):
    result = refused[0].result(case)
    assert result["failed"] is True
    assert CASES[case][2] in result["msg"]
    assert result["msg"].count("Nothing was sent.") == 1
    assert result["outcome"] == "not_sent"
    assert not result.get("changed")
    assert "Traceback" not in str(result)


def test_no_bad_input_was_sent(refused):
    run, conversation = refused
    assert conversation == []
    assert "Traceback" not in run.output
