"""However a list ends: nothing more is started, requests in flight get a grace period, and each
item is reported.

The grace period is 10 s and its end is awaited here only where a process ends with it; what becomes
of an item that outlasts it is tested in virtual time
(tests/unit/plugins/module_utils/_task/test_loop.py).
"""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pytest
from many.conftest import PLAY, REPORTING, report_in
from support.ledgers import create, states
from support.running import BIN
from support.waiting import children, gone, until

COUNT = 600


# How each end is caused: which process gets which signal.
ENDS = {
    "Ctrl-C": (lambda run: os.killpg(run.process.pid, signal.SIGINT)),
    "SIGINT to the parent": (lambda run: run.process.send_signal(signal.SIGINT)),
    "SIGTERM to the parent": (lambda run: run.process.send_signal(signal.SIGTERM)),
    "SIGTERM to all": (lambda run: os.killpg(run.process.pid, signal.SIGTERM)),
    "SIGHUP to all": (lambda run: os.killpg(run.process.pid, signal.SIGHUP)),
    "SIGKILL to the parent": (lambda run: run.process.kill()),
}


LASTING = "SIGKILL to the parent"  # after this, an answer outlasts the grace period
# What the parent does is up to core.
OF_CORE = (
    "SIGINT to the parent",
    "SIGTERM to the parent",
    "SIGHUP to all",
    "SIGKILL to the parent",
)


def wait_for_idleness(service) -> None:
    """Wait until nothing is begun any more, and only the answer that is held is missing."""
    last = [0, time.monotonic()]

    def is_idle() -> bool:
        if (begun := sum(service.created.values())) != last[0] or service.at_once != 1:
            last[:] = begun, time.monotonic()
        return time.monotonic() - last[1] > 1

    until(is_idle, 60)


@pytest.mark.parametrize(
    "end", [pytest.param(end, marks=[pytest.mark.matrix] if end in OF_CORE else []) for end in ENDS]
)
def test_an_interrupted_list_loses_nothing_that_was_sent(start, service, tmp_path, end):
    """All that was in flight is recorded, but for an answer that takes longer than the grace
    period.
    """
    ledger = create(str(tmp_path / "l.db"), service.url)
    service.seconds, service.held = 0.3, {"vm2"}
    reports = end != "Ctrl-C"
    run = start(
        COUNT,
        REPORTING,
        environment={"INFRASTRUCTURE_SERVICES_LEDGER": ledger},
        report=str(tmp_path / "fleet.json") if reports else "",
    )
    until(lambda: sum(service.created.values()) >= 40)
    workers = children(run.process.pid)
    ENDS[end](run)
    wait_for_idleness(service)
    begun = sum(service.created.values())
    if end != LASTING:
        service.release("vm2")
    run.end()
    until(lambda: gone(workers), 60)
    in_doubt = {"vm2"} if end == LASTING else set()
    assert sum(service.created.values()) == begun < COUNT
    assert set(service.created.values()) == {1}
    recorded = states(ledger)
    assert {name for name, state in recorded.items() if state != "done"} == in_doubt
    assert recorded.keys() == service.created.keys()
    if reports:
        one = report_in(tmp_path)
        (why,) = one["warnings"]
        assert "signal SIG" in why or "the run of Ansible that the task belongs to has ended" in why
        page = (tmp_path / "fleet.html").read_text(encoding="utf-8")
        assert f'<p class="warning">{why}</p>' in page
        assert re.search(r"</small>.* \d+ not started", page)
        rows = one["results"]
        assert {row["item"] for row in rows if row["outcome"] == "unknown"} == in_doubt
        assert Counter(row["outcome"] for row in rows) == +Counter(
            accepted=begun - len(in_doubt), unknown=len(in_doubt), not_sent=COUNT - begun
        )


def test_the_keyword_timeout_is_reported_with_all_results_after_the_progress(start, service):
    service.seconds = 0.2
    run = start(COUNT, seconds=3)
    run.end()
    result = run.result
    counts = result["counts"]
    assert (result["failed"], counts["unknown"]) == (True, 0)
    assert counts["accepted"] == sum(service.created.values())
    assert counts["accepted"] + counts["not_begun"] == COUNT
    assert "(the keyword timeout expired)" in result["msg"]
    progress = rf"virtual machines: \d+ of {COUNT}, \d+ in flight, 0 in doubt, "
    assert re.search(progress, run.errors)


def test_ctrl_c_does_not_wait_for_a_token_and_its_items_count_as_never_started(
    start, service, tmp_path
):
    """No intent is recorded before there is a token; the report needs no lock of the token."""
    ledger = create(str(tmp_path / "l.db"), service.url)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        environment = {
            "INFRASTRUCTURE_SERVICES_ACCESS_TOKEN": None,
            "INFRASTRUCTURE_SERVICES_AUTH_URL": f"http://127.0.0.1:{silent.getsockname()[1]}",
            "INFRASTRUCTURE_SERVICES_CLIENT_ID": "me",
            "INFRASTRUCTURE_SERVICES_CLIENT_SECRET": "secret-of-the-tests",
            "INFRASTRUCTURE_SERVICES_LEDGER": ledger,
        }
        run = start(30, REPORTING, environment=environment, report=str(tmp_path / "fleet.json"))
        asked, _address = silent.accept()
        workers = children(run.process.pid)
        with asked:
            ENDS["Ctrl-C"](run)
            run.end(30)
            until(lambda: gone(workers), 30)
    rows = report_in(tmp_path)["results"]
    assert [(row["outcome"], row["skipped"]) for row in rows] == [("not_sent", True)] * 30
    assert (states(ledger), dict(service.created)) == ({}, {})


ON_A_TARGET = """if True:
    import sys
    sys.path.insert(0, sys.argv[1])
    import conftest
    from ansible_collections.infrastructure.services.plugins.module_utils._task.specs import VIRTUAL_MACHINES
    from support.front import run_plural
    options = dict(base_url=sys.argv[2], access_token="token-of-the-tests", ledger="none", concurrency=4,
                   virtual_machines=[{"name": f"vm{number}"} for number in range(200)])
    print(run_plural(VIRTUAL_MACHINES, options)["msg"], file=sys.stderr)"""


def test_on_a_target_nothing_more_is_begun_once_nobody_reads_the_result(service):
    """As when the connection to it is lost."""
    service.seconds = 0.2
    line = [sys.executable, "-c", ON_A_TARGET, Path(__file__).parents[1], service.url]
    with subprocess.Popen(
        line, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        until(lambda: len(service.created) >= 4)
        process.stdout.close()
        assert "nothing reads the result any more" in process.stderr.read()
    assert len(service.created) < 150


def test_a_list_whose_output_nobody_reads_any_more_ends(ansible, service, tmp_path):
    """As with `| head`, at which Ansible itself fails: all machines are made and recorded."""
    service.seconds = 0.05
    ledger = create(str(tmp_path / "l.db"), service.url)
    (tmp_path / "play.yml").write_text(PLAY, encoding="utf-8")
    machines = {"machines": [{"name": f"vm{number}"} for number in range(200)]}
    (tmp_path / "more.json").write_text(json.dumps(machines), encoding="utf-8")
    pipe = f"timeout -s KILL 60 {BIN}/ansible-playbook play.yml -e @more.json | head -n 2"
    environment = {"INFRASTRUCTURE_SERVICES_LEDGER": ledger}
    done = ansible.command(
        "/bin/bash", "-c", f"{pipe}; test ${{PIPESTATUS[0]}} -ne 137", **environment
    )
    assert done.rc == 0, done.output
    names = [machine["name"] for machine in machines["machines"]]
    assert states(ledger) == dict.fromkeys(names, "done")
    assert dict(service.created) == dict.fromkeys(names, 1)
