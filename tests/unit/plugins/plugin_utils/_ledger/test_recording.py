# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How a list finds its assets in a ledger, and what a task that left one in doubt says; tests/ledger
has what becomes of them.
"""

from __future__ import annotations

from contextlib import closing

import pytest
from ansible_collections.infrastructure.services.plugins.module_utils._errors import Message
from ansible_collections.infrastructure.services.plugins.module_utils._result import Result
from ansible_collections.infrastructure.services.plugins.module_utils._secrets import Secrets
from ansible_collections.infrastructure.services.plugins.module_utils._task.task import prepare
from ansible_collections.infrastructure.services.plugins.plugin_utils._ledger.entries import (
    DONE,
    INTENT,
    UNKNOWN,
    Entry,
)
from ansible_collections.infrastructure.services.plugins.plugin_utils._ledger.location import (
    open_ledger,
)
from ansible_collections.infrastructure.services.plugins.plugin_utils._ledger.recording import (
    ListRecording,
    Recording,
    key_of,
)
from ledger.entries import put
from support import CREATE, LEAST, RESOURCES, validated
from support.locks import hold

OPTIONS = {**LEAST[CREATE], "base_url": "https://s.example", "access_token": "token"}


@pytest.mark.parametrize(
    ("state", "is_looked_at_later"), [(DONE, False), (UNKNOWN, False), (INTENT, True)]
)
def test_only_an_asset_that_another_task_works_on_is_looked_at_later(
    tmp_path, state, is_looked_at_later
):
    """Until then its entry counts as none; any other entry decides, whoever holds its lock."""
    location = str(tmp_path / "ledger.db")
    task = prepare(RESOURCES[CREATE], validated(CREATE, OPTIONS))
    entry = Entry(state, task.wanted.body, {"id": "i-1", **task.wanted.body})
    with closing(open_ledger(location)) as other, closing(open_ledger(location)) as ledger:
        put(other, key_of(task), entry)
        with hold(other, key_of(task)):
            (planned,) = ListRecording(ledger, Secrets(), "run").look_up([task])
    assert (planned.entry is None) is is_looked_at_later


@pytest.mark.parametrize(
    ("state", "force", "said"),
    [
        (UNKNOWN, False, "it is lost. The ledger does not send it again until it is settled."),
        ("accepted", False, "it is lost. Look up its id on the service and record it."),
        (DONE, False, "it is lost."),
        (UNKNOWN, True, "it is lost."),
    ],
)
def test_a_creation_in_doubt_ends_with_the_command_that_lists_it(tmp_path, state, force, said):
    location = str(tmp_path / "ledger.db")
    task = prepare(RESOURCES[CREATE], validated(CREATE, {**OPTIONS, "force": force}))
    with closing(open_ledger(location)) as ledger:
        recording = Recording(ledger, Secrets(), "run")
        message = recording.with_next_step(Result(msg=Message("it is lost.")), task, state).msg
    command = f"ansible-playbook infrastructure.services.in_doubt -e ledger={location}"
    assert (message.text, message.command) == (said, "" if said == "it is lost." else command)
