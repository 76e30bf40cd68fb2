# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The result of a task on a target, by what the target answers."""

from __future__ import annotations

from contextlib import nullcontext
from types import SimpleNamespace

import pytest
from ansible.errors import AnsibleConnectionFailure, AnsibleError
from ansible_collections.infrastructure.services.plugins.module_utils._task.specs import (
    VIRTUAL_MACHINE,
)
from ansible_collections.infrastructure.services.plugins.plugin_utils._run.target import Target

GIVEN = {"base_url": "https://s", "name": "web01", "access_token": "token-of-the-tests"}
ACCEPTED = {"outcome": "accepted", "changed": True, "status": 201}
LOST = AnsibleConnectionFailure("lost")
NOT_THERE = "add delegate_to: localhost."


class Action:
    """An action whose shell and module end as a test says."""

    spec = VIRTUAL_MACHINE
    signals = SimpleNamespace(raised=nullcontext)

    def __init__(self, returned: dict | Exception, started: bool = True, **keywords: bool) -> None:
        usual = {"is_local": False, "is_async": False, "check_mode": False}
        self.keywords = SimpleNamespace(**{**usual, **keywords})
        self.module_was_started = started
        self.controller_environment = self.task_environment = {}
        self.shell, self._returned = {"rc": 0}, returned

    def options_given(self) -> dict:
        return GIVEN

    def keep_from_shell(self, prefix: str) -> None:
        assert prefix == "INFRASTRUCTURE_SERVICES_"

    def run_shell(self) -> dict:
        return self.shell

    def run_module(self, arguments: dict) -> dict:
        assert arguments == GIVEN
        if isinstance(self._returned, Exception):
            raise self._returned
        return self._returned


@pytest.mark.parametrize(
    ("action", "outcome", "said"),
    [
        (Action({"failed": True, "rc": 1, "msg": "Killed"}), "unknown", "no result (Killed). "),
        (Action({"failed": True, "rc": 126}), "not_sent", "no result (it said nothing). "),
        (Action({"failed": True, "rc": 127}), "not_sent", "no result (it said nothing). "),
        (Action({"failed": True, "rc": 1}, check_mode=True), "not_sent", "no result"),
        (Action({"ansible_job_id": "1", "failed": True}), "unknown", "no result"),
        (Action(LOST), "unknown", "to POST https://s/api/v1/services/compute/virtual_machines"),
        (Action(LOST, started=False), "not_sent", NOT_THERE),
        (Action(AnsibleError("no sudo"), started=False), "not_sent", "no result (no sudo). "),
    ],
)
def test_a_module_without_a_result_has_the_known_effect(action, outcome, said):
    result = Target(action, GIVEN).run()
    assert (result.changed, result.outcome) == (False, outcome)
    assert result.failed is not result.more.get("unreachable", False)
    assert result.msg.text.startswith("virtual machine web01: the module ")
    assert said in result.msg.text
    assert (NOT_THERE in result.msg.text) is (said == NOT_THERE)
    assert ("POST" in result.msg.text) is (outcome == "unknown")


@pytest.mark.parametrize("is_async", [False, True])
def test_a_lost_connection_makes_the_host_unreachable(is_async):
    """Ansible would poll a job that is not known to have failed."""
    returned = Target(Action(LOST, is_async=is_async), GIVEN).run().as_ansible()
    assert (returned["unreachable"], returned.get("failed", False)) == (True, is_async)


def test_the_result_of_the_module_is_returned_unchanged():
    assert Target(Action(ACCEPTED), GIVEN).run().as_ansible().items() >= ACCEPTED.items()


def test_a_job_that_was_started_has_an_outcome_and_has_not_failed():
    returned = Target(Action({"ansible_job_id": "1", "started": 1}), GIVEN).run().as_ansible()
    assert returned == {
        "ansible_job_id": "1",
        "started": 1,
        "outcome": "unknown",
        "changed": False,
    }


def test_without_a_shell_the_module_is_not_run():
    action = Action(ACCEPTED)
    action.shell = {"rc": 1, "stdout": "no login \n", "stderr": "denied"}
    returned = Target(action, GIVEN).run().as_ansible()
    assert returned == {
        "rc": 1,
        "outcome": "not_sent",
        "changed": False,
        "failed": True,
        "msg": "No shell can be run on the target as the user of the task: denied no login",
    }
