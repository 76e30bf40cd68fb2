"""Progress is shown while a list is running, and does not disturb a callback that prints a single
document.
"""

from __future__ import annotations

import json
import re

import pytest

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


def test_the_plan_and_the_end_are_on_stdout(start):
    """So that `--check | tee plan.txt` has the plan, and a log of CI all in order."""
    plan = start(2, arguments=("--check",))
    plan.end()
    counts = "virtual machines: 2 to create\n  each:  cpu 4\n  + vm0\n  + vm1\n"
    assert counts in plan.printed
    tasks = plan.printed.split("TASK [")
    assert tasks[1].partition(counts)[2].startswith("changed: [localhost]")
    run = start(2)
    run.end()
    assert "virtual machines: 2 created, 0 unchanged, 0 in doubt, 0 rejected, " in run.printed
    assert "virtual machines" not in plan.errors + run.errors
