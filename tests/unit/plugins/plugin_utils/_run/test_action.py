# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What an action does around its task: before the first fork, and with the result of an attempt."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from ansible_collections.infrastructure.services.plugins.module_utils._errors import (
    InvalidInput,
    Message,
)
from ansible_collections.infrastructure.services.plugins.module_utils._result import Result
from ansible_collections.infrastructure.services.plugins.module_utils._task.specs import (
    APPLICATION_ROLE,
    VIRTUAL_MACHINE,
)
from ansible_collections.infrastructure.services.plugins.plugin_utils._run import action
from story.commands import Terminal

PREPARED = ["parent", "prepare_display", "run_memory"]


@pytest.fixture
def prepared(monkeypatch) -> list[str]:
    """What was called of what prepares a process."""
    called: list[str] = []
    for name in PREPARED:
        monkeypatch.setattr(action, name, lambda name=name: called.append(name))
    return called


def plugin(spec, connection: object = None) -> action.Action:
    return type("ActionModule", (action.Action,), {"spec": spec})(None, connection, *[None] * 4)


def test_a_plugin_prepares_the_process_that_loads_it(prepared):
    type("WithoutModule", (action.Action,), {})
    assert prepared == []
    plugin(VIRTUAL_MACHINE)
    assert prepared == PREPARED


@pytest.mark.parametrize("outcome", ["accepted", "unknown", "rejected", "not_sent"])
@pytest.mark.parametrize("spec", [VIRTUAL_MACHINE, APPLICATION_ROLE], ids=["POST", "PUT"])
def test_until_does_not_repeat_a_creation_that_may_have_happened(
    prepared, monkeypatch, spec, outcome
):
    attempts = action.Attempts()
    monkeypatch.setattr(action, "_ATTEMPTS", attempts)
    result = Result(outcome=outcome, failed=True, msg=Message("it failed."))
    assert plugin(spec).remember(result) == result
    is_kept = spec is VIRTUAL_MACHINE and outcome in ("accepted", "unknown")
    assert attempts.outcome == (outcome if is_kept else "not_sent")
    again = attempts.creation()
    assert (again is not None) is is_kept
    if again:
        assert again.msg.text.endswith("The earlier attempt: it failed.")


def test_an_attempt_is_changed_if_an_earlier_one_of_the_same_task_was():
    attempts, task = action.Attempts(), object()
    attempts.forget_others(task)
    changes = [attempts.end(Result(changed=changed)).changed for changed in (False, True, False)]
    assert changes == [False, True, True]
    attempts.forget_others(object())
    assert not attempts.end(Result()).changed


def test_a_variable_that_is_no_list_is_refused(prepared, monkeypatch):
    own = plugin(VIRTUAL_MACHINE)
    monkeypatch.setattr(own, "variable", {"several": ["a", 1], "none": None, "wrong": 0.5j}.get)
    assert own.list_variable("several", "here") == ["a", "1"]
    assert own.list_variable("none", "here") == []
    with pytest.raises(InvalidInput, match=r"^here"):
        own.list_variable("wrong", "here")


@pytest.mark.parametrize(
    ("is_async", "is_native", "removed"),
    [(False, False, ["/tmp/module"]), (True, False, []), (True, True, ["/tmp/module"])],
)
def test_the_temporary_directory_is_removed_unless_a_job_still_needs_it(
    prepared, monkeypatch, is_async, is_native, removed
):
    shell = SimpleNamespace(tmpdir="/tmp/module")
    connection = SimpleNamespace(_shell=shell, has_native_async=is_native)
    own = plugin(APPLICATION_ROLE, connection)
    found: list[str] = []
    own.task_vars, own.keywords = {}, SimpleNamespace(is_async=is_async)
    monkeypatch.setattr(own, "_execute_module", lambda **_arguments: {"rc": 0})
    monkeypatch.setattr(own, "_remove_tmp_path", found.append)
    assert own.run_module({}) == {"rc": 0}
    assert found == removed


def test_a_task_that_runs_here_returns_its_options(tmp_path, monkeypatch):
    # Since ansible-core 2.21 a setting decides.
    monkeypatch.setattr(action, "wants_invocation", lambda _variables: True)
    result = Terminal(tmp_path, "http://127.0.0.1:9").recorded("fleet.db").result
    assert result["invocation"]["module_args"]["ledger"] == "fleet.db"


def test_a_path_that_is_no_text_stays_as_it_is_for_the_validation(prepared, monkeypatch):
    own = plugin(VIRTUAL_MACHINE)
    monkeypatch.setattr(own, "absolute_path", lambda _option, path: f"/here/{path}")
    given = {"ca_path": ["a"], "client_cert": "b", "client_key": "", "name": "c"}
    assert own.with_absolute_paths(given) == {**given, "client_cert": "/here/b"}
