"""The next step that a message proposes depends on whether there is a ledger, and where it is."""

from __future__ import annotations

import shlex

import pytest
from ledger.tasks import list_task, task
from support.wire import Last, running

SETTLE = (
    "The ledger does not send it again until it is settled. Look again later: it may still"
    " appear. For the commands, run: "
)
IN_DOUBT = "ansible-playbook infrastructure.services.in_doubt"
VARIABLE = "INFRASTRUCTURE_SERVICES_LEDGER="


@pytest.mark.parametrize(
    ("kind", "command"),
    [
        ("ledger.db", "{command} -e ledger={location}"),
        ("ledger of us.db", "{variable}{quoted} {command}"),
        ("postgresql", "{variable}{quoted} {command}"),
        ("with a password", "{command}"),  # which no command line has
    ],
)
@pytest.mark.parametrize("how", ["a task", "a list"])
def test_after_a_lost_answer_the_message_has_the_command_that_finds_the_ledger(
    tmp_path, request, kind, command, how
):
    location = str(tmp_path / kind)
    if not kind.endswith(".db"):
        location = request.getfixturevalue("postgres")
        location += "&password=secret-of-us" if "password" in kind else ""
    words = {"variable": VARIABLE, "command": IN_DOUBT, "quoted": shlex.quote(location)}
    expected = command.format(**words, location=location)
    with running(lambda _sent: Last()) as service:
        run = {"base_url": service.url, "retries": 0}
        for number in range(2):
            if how == "a task":
                result = task(location, **run)
            else:
                (result,) = list_task(location, ["web01"], **run)["results"]
            assert result["outcome"] == "unknown"
            assert result["msg"].endswith(f"{SETTLE}{expected}"), number
        assert len(service.sent) == 1
