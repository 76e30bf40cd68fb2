"""The fields of the credential types in docs/awx are options, and what they inject is what the
modules read.
"""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml
from ansible_collections.infrastructure.services.plugins.module_utils._task import specs
from ansible_collections.infrastructure.services.plugins.module_utils._task.options import (
    variables_of,
)
from jinja2 import StrictUndefined
from jinja2.sandbox import ImmutableSandboxedEnvironment

OPTIONS = specs.VIRTUAL_MACHINE.documented()["argument_spec"]
TYPES = ["token", "client_credentials"]


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
        option = OPTIONS[field["id"]]
        assert field.get("secret", False) == option.get("no_log", False), field["id"]
        assert field.get("choices") == option.get("choices"), field["id"]
        assert field.get("default") == option.get("default"), field["id"]
    assert inputs["required"] == [field["id"] for field in inputs["fields"]]


@pytest.mark.parametrize("name", TYPES)
def test_what_is_injected_is_what_the_options_read(name):
    fields = [field["id"] for field in load(name)["inputs"]["fields"]]
    read = {variables_of(field)[0]: field for field in fields}
    assert injected(name, {field: field for field in fields}) == read
