"""Progress is shown while a list is running, and does not disturb a callback that prints a single
document.
"""

from __future__ import annotations

import json
import os
import re

import pytest
from many.test_ends import states

DOCUMENT = '''
import json
from ansible.plugins.callback import CallbackBase

class CallbackModule(CallbackBase):
    """Prints one JSON document at the end."""

    CALLBACK_VERSION, CALLBACK_TYPE, CALLBACK_NAME = 2.0, "stdout", "one_document"

    def __init__(self):
        super().__init__()
        self.results = []

    def v2_runner_on_ok(self, result):
        self.results.append(result._result.get("counts"))

    def v2_playbook_on_stats(self, stats):
        self._display.display(json.dumps(self.results))
'''


@pytest.mark.matrix
def test_progress_does_not_disturb_a_callback_that_prints_a_document(start, service, tmp_path):
    (tmp_path / "callbacks").mkdir()
    (tmp_path / "callbacks" / "one_document.py").write_text(DOCUMENT, encoding="utf-8")
    service.seconds = 0.5
    run = start(
        60,
        environment={
            "ANSIBLE_CALLBACK_PLUGINS": str(tmp_path / "callbacks"),
            "ANSIBLE_STDOUT_CALLBACK": "one_document",
        },
    )
    run.end()
    assert json.loads(run.printed)[0]["accepted"] == 60
    assert re.search(r"virtual machines: \d+ of 60, \d+ in flight, 0 in doubt, ", run.errors)
    assert "virtual machines: 60 created, 0 unchanged, 0 in doubt, 0 rejected, " in run.errors


@pytest.mark.parametrize("callback", ["default", pytest.param("minimal", marks=pytest.mark.matrix)])
def test_the_plan_and_the_end_are_on_stdout(start, callback):
    """So that `--check | tee plan.txt` has the plan, and a log of CI all in order."""
    environment = {"ANSIBLE_STDOUT_CALLBACK": callback}
    plan = start(2, arguments=("--check",), environment=environment)
    plan.end()
    counts = "virtual machines: 2 to create\n  each:  cpu 4\n  + vm0\n  + vm1\n"
    assert counts in plan.printed
    if callback == "default":
        tasks = plan.printed.split("TASK [")
        assert tasks[1].partition(counts)[2].startswith("changed: [localhost]")
    run = start(2, environment=environment)
    run.end()
    assert "virtual machines: 2 created, 0 unchanged, 0 in doubt, 0 rejected, " in run.printed
    assert "virtual machines" not in plan.errors + run.errors


@pytest.mark.matrix
def test_lines_have_the_colors_of_ansible_if_somebody_sees_them(start):
    """Those of stdout depend on whether it is a terminal, which ANSIBLE_FORCE_COLOR overrides."""
    line = "+ vm0 cpu 4"
    for forced, expected in (
        ("1", f"\x1b[1;34m {line}\x1b[0m"),
        ("0", f"virtual machines: 1 to create {line}"),
    ):
        run = start(
            1,
            arguments=("--check",),
            environment={"ANSIBLE_FORCE_COLOR": forced, "ANSIBLE_COLOR_OK": "bright blue"},
        )
        run.end()
        assert expected in " ".join(run.printed.split())
        assert ("\x1b" in run.printed) is (forced == "1")


@pytest.mark.matrix
def test_a_run_ends_when_nobody_reads_what_it_says_any_more(start, service, tmp_path):
    """As with `2>&1 | head -n 2`: the thread of Ansible that receives results ends with any line it
    cannot write.
    """
    service.seconds = 0.5
    reader, writer = os.pipe()
    environment = {"INFRASTRUCTURE_SERVICES_LEDGER": str(tmp_path / "l.db"), "PYTHONUNBUFFERED": ""}
    run = start(150, arguments=("-v",), environment=environment, pipe=writer)
    os.close(writer)
    with open(reader, encoding="utf-8") as read:
        for _line in range(2):
            read.readline()
    run.end()
    assert sum(service.created.values()) == 150
    assert states(str(tmp_path / "l.db")) == {f"vm{number}": "done" for number in range(150)}
