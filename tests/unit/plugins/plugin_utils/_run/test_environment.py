# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A task's environment is in effect for the duration of the task."""

from __future__ import annotations

import os

import pytest
from ansible_collections.infrastructure.services.plugins.module_utils._errors import InvalidInput
from ansible_collections.infrastructure.services.plugins.plugin_utils._run.worker import (
    environment,
)


def test_the_environment_is_exactly_as_requested_and_then_restored(monkeypatch):
    monkeypatch.setenv("KEPT", "before")
    before = dict(os.environ)
    with environment({"KEPT": "within", "NEW": "x"}):
        assert dict(os.environ) == {"KEPT": "within", "NEW": "x"}
    assert dict(os.environ) == before


def test_it_is_restored_after_an_error():
    before = dict(os.environ)
    with pytest.raises(ZeroDivisionError), environment({**before, "NEW": "x"}):
        raise ZeroDivisionError
    assert dict(os.environ) == before


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("BAD", "a\0b"),
        ("BAD\0", "x"),
        ("A=B", "x"),
        ("", "x"),
        ("BAD", "\ud800"),
    ],
)
def test_a_variable_that_cannot_be_set_is_named_and_leaves_nothing_set(name, value):
    before = dict(os.environ)
    with pytest.raises(InvalidInput) as error, environment({**before, "NEW": "x", name: value}):
        raise AssertionError("the context was entered")
    assert dict(os.environ) == before
    assert error.value.msg.startswith(f"environment: the variable {name!r} cannot be set")
    assert error.value.outcome == "not_sent"
