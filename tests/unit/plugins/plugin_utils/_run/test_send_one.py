# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Where a task runs."""

from __future__ import annotations

from importlib import import_module
from itertools import product
from types import SimpleNamespace

import pytest
from ansible_collections.infrastructure.services.plugins.plugin_utils._run import send_one
from support.checkout import CHECKOUT

ACTIONS = "ansible_collections.infrastructure.services.plugins.action"
NAMES = sorted(path.stem for path in (CHECKOUT / "plugins/action").glob("[a-z]*.py"))
CREATING = {"compute_virtual_machine", "compute_virtual_machines"}
CONNECTIONS = ["local", "ssh", "community.docker.docker", "process", "LOCAL", ""]


@pytest.mark.parametrize(
    "conditions", [*product(CONNECTIONS, (0, 30), (False, True), (None, "the library"))], ids=str
)
def test_only_tasks_that_would_run_next_to_the_worker_run_inside_it(conditions, monkeypatch):
    connection, seconds, becomes, library = conditions
    monkeypatch.setattr(send_one, "find_spec", lambda name: library)
    task = SimpleNamespace(
        async_val=seconds,
        check_mode=False,
        diff=False,
        no_log=False,
        until=[],
        retries=None,
        timeout=0,
    )
    leads_to = SimpleNamespace(transport=connection, become=becomes)
    action = send_one.SendingAction(task, leads_to, *[None] * 4)
    assert action.runs_here is (conditions == ("local", 0, False, "the library"))


@pytest.mark.parametrize("name", NAMES)
def test_only_machines_are_created(name):
    """What creates is refused with async and until together."""
    action = import_module(f"{ACTIONS}.{name}").ActionModule(*[None] * 6)
    assert action.creates is (name in CREATING)
