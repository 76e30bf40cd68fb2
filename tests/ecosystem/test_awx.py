# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The fields of the credential types in docs/awx are options, and what they inject is what the
modules read.
"""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml
from ansible_collections.infrastructure.services.plugins.module_utils._task.options import (
    ARGUMENT_SPEC,
)
from jinja2 import StrictUndefined
from jinja2.sandbox import ImmutableSandboxedEnvironment

TYPES = ["token", "client_credentials"]
SECRET = "the client's own"


def load(name: str) -> dict:
    path = Path(__file__).resolve().parents[2] / f"docs/awx/{name}.yml"
    return yaml.safe_load(path.read_text(encoding="utf-8"))


def injected(name: str, values: dict[str, str]) -> dict[str, str]:
    """The environment of a job, rendered as AWX does."""
    engine = ImmutableSandboxedEnvironment(undefined=StrictUndefined)
    return {
        variable: engine.from_string(template).render(values)
        for variable, template in load(name)["injectors"]["env"].items()
    }


@pytest.mark.parametrize("name", TYPES)
def test_a_field_is_an_option_and_equally_secret(name):
    inputs = load(name)["inputs"]
    for field in inputs["fields"]:
        option = ARGUMENT_SPEC[field["id"]]
        assert field.get("secret", False) == option.get("no_log", False), field["id"]
        assert field.get("choices") == option.get("choices"), field["id"]
        assert field.get("default") == option.get("default"), field["id"]
    assert inputs["required"] == [field["id"] for field in inputs["fields"]]


@pytest.mark.parametrize("name", TYPES)
def test_what_is_injected_is_what_the_options_read(name):
    fields = [field["id"] for field in load(name)["inputs"]["fields"]]
    read = {ARGUMENT_SPEC[field]["fallback"][1][0]: field for field in fields}
    assert injected(name, {field: field for field in fields}) == read


@pytest.mark.parametrize(
    ("name", "values", "conversation"),
    [
        ("token", {"access_token": "of-the-user"}, ["create_virtual_machine"]),
        (
            "client_credentials",
            {"client_id": "me", "client_secret": SECRET, "client_authentication": "post"},
            ["token", "create_virtual_machine"],
        ),
    ],
)
def test_a_job_with_the_credential_reaches_the_service(
    ansible_once, service, name, values, conversation
):
    service.settings(client_secret=SECRET)
    values |= {"base_url": service.url, "auth_url": f"{service.url}/oauth/token"}
    environment = {"INFRASTRUCTURE_SERVICES_ACCESS_TOKEN": None, **injected(name, values)}
    ansible_once.adhoc(
        "infrastructure.services.compute_virtual_machine", "name=web01", **environment
    ).ok()
    assert [request["operation"] for request in service.conversation()] == conversation
