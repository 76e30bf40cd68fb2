"""Whenever a list is killed, no machine is created twice, none is lost, and only what was in flight
is in doubt.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from many.conftest import until
from many.crasher import AT_ONCE, COUNT

CRASHER = Path(__file__).with_name("crasher.py")

FEW_FILES = """if True:
    import collections, os, resource, sys
    sys.path.insert(0, sys.argv[1])
    from many.crasher import run
    limit = len(os.listdir("/dev/fd")) + 30
    resource.setrlimit(resource.RLIMIT_NOFILE, (limit, limit))
    results = run(sys.argv[2], sys.argv[3], [f"m-{number}" for number in range(100)], at_once=64)["results"]
    print(dict(collections.Counter(result["outcome"] for result in results)))"""


def insist(service, ledger: str, rounds: int, seed: str) -> None:
    service.seconds = 0.02
    line = [sys.executable, str(CRASHER), ledger, service.url, str(rounds), seed]
    done = subprocess.run(
        line, capture_output=True, text=True, timeout=120 + 10 * rounds, check=False
    )
    assert done.returncode == 0, done.stderr
    until(lambda: service.at_once == 0)
    assert set(service.created.values()) == {1}
    seen = [json.loads(line) for line in done.stdout.splitlines()]
    assert len(seen) == rounds
    in_doubt = 0
    for results in seen:
        assert len(results) == COUNT
        doubtful = [name for name, outcome, failed in results if failed]
        assert {outcome for _name, outcome, failed in results if failed} <= {"unknown"}
        assert len(doubtful) <= AT_ONCE
        in_doubt += len(doubtful)
        assert all(service.created[name] == 1 for name, _outcome, failed in results if not failed)
    assert in_doubt > 0


def test_a_list_survives_being_killed_and_run_again(service, tmp_path):
    insist(service, str(tmp_path / "l.db"), 10, "some")


@pytest.mark.stress
@pytest.mark.parametrize("seed", ["a", "b", "c", "d"])
def test_a_list_survives_being_killed_many_times(service, tmp_path, seed):
    insist(service, str(tmp_path / "l.db"), 250, seed)


def test_a_list_leaves_descriptors_for_the_ledger(service, tmp_path):
    """SQLite opens a file for each write: without one, what was created could not be recorded."""
    service.seconds = 0.02
    line = [
        sys.executable,
        "-c",
        FEW_FILES,
        str(Path(__file__).parents[1]),
        str(tmp_path / "l.db"),
        service.url,
    ]
    done = subprocess.run(line, capture_output=True, text=True, timeout=120, check=False)
    assert (done.stdout, done.stderr) == ("{'accepted': 100}\n", "")
    assert len(service.created) == 100
