"""Measure the collection against ansible-core's own uri and debug: each pair in turn, inside one
run, by medians.

python tests/benchmark/loops.py [--rounds 5] [--only WORD]
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import urllib.request
from pathlib import Path
from typing import NamedTuple

HERE = Path(__file__).resolve().parent
MODULE = "infrastructure.services.compute_virtual_machine"
ATTRIBUTES = {"cpu": 4, "vm_ram": 16, "team": "platform"}


def create(name: str, **keywords) -> dict:
    """A task that creates virtual machines with our module."""
    return {MODULE: {"name": name, "attributes": ATTRIBUTES}, **keywords}


def uri(name: str, **keywords) -> dict:
    """The same request with ansible.builtin.uri."""
    call = {
        "url": "{{ lookup('env', 'INFRASTRUCTURE_SERVICES_BASE_URL') }}/api/v1/services/compute/virtual_machines",
        "method": "POST",
        "body_format": "json",
        "body": {"name": name, "attributes": ATTRIBUTES},
        "headers": {"Authorization": "Bearer benchmark"},
        "status_code": 201,
        "return_content": True,
    }
    return {"ansible.builtin.uri": call, **keywords}


def debug(name: str, **keywords) -> dict:
    """The minimum that an item of a loop can cost."""
    return {"ansible.builtin.debug": {"msg": name}, **keywords}


def over(items: int) -> dict:
    """The loop of a task."""
    return {"loop": f"{{{{ range({items}) | list }}}}"}


class Pair(NamedTuple):
    """Two tasks that do the same work, and the bar for the ratio of their durations."""

    work: str
    ours: dict
    theirs: dict
    limit: float  # for the ratio, which depends on `faster`
    faster: bool  # the ratio is theirs to ours and must be above the bar; otherwise ours to theirs and below
    hosts: int = 1
    rounds: int = 5  # maximum number of measurements

    def ratio(self, ours: float, theirs: float) -> float:
        """The figure that is compared with the bar."""
        return theirs / ours if self.faster else ours / theirs

    def holds(self, ratio: float) -> bool:
        """Whether the bar holds."""
        return ratio >= self.limit if self.faster else ratio <= self.limit


NAME, HOST = "vm-{{ item }}", "vm-{{ inventory_hostname }}"
ELSEWHERE = {"vars": {"ansible_connection": "process"}}  # keeps a task out of the worker
PAIRS = (
    Pair(
        "loop of 50, uri : ours",
        create(NAME, **over(50)),
        uri(NAME, **over(50)),
        50,
        True,
        rounds=2,
    ),
    Pair(
        "loop of 1000, ours : debug",
        create(NAME, **over(1000)),
        debug(NAME, **over(1000)),
        2.0,
        False,
    ),
    Pair("100 hosts, forks 10, uri : ours", create(HOST), uri(HOST), 10, True, hosts=100, rounds=2),
    Pair(
        "module path, loop of 10, ours : uri",
        create(NAME, **ELSEWHERE, **over(10)),
        uri(NAME, **ELSEWHERE, **over(10)),
        1.1,
        False,
    ),
)


class Server:
    """The service of the benchmark, in a separate process; `work`: seconds per answer."""

    def __init__(self, work: float = 0) -> None:
        self.work = work

    def __enter__(self) -> Server:
        line = [sys.executable, str(HERE / "server.py"), str(self.work)]
        self.process = subprocess.Popen(
            line, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        self.url = self.process.stdout.readline().strip()
        return self

    def __exit__(self, *error) -> None:
        self.process.communicate()

    def tokens(self) -> int:
        """How many tokens it has granted."""
        with urllib.request.urlopen(f"{self.url}/tokens") as answer:
            return int(answer.read())


def access(server: Server) -> dict[str, str]:
    """The environment that tells the tasks where the service is."""
    return {
        "INFRASTRUCTURE_SERVICES_BASE_URL": server.url,
        "INFRASTRUCTURE_SERVICES_ACCESS_TOKEN": "benchmark",
    }


def play(tasks: list[dict], hosts: int, directory: Path, **environment: str) -> list[dict]:
    """Run tasks on this number of hosts; return a line for each task: its name and seconds."""
    plays = [{"hosts": "all", "gather_facts": False, "tasks": tasks}]
    (directory / "playbook.json").write_text(json.dumps(plays), "utf-8")
    names = "\n".join(f"host{number}" for number in range(hosts))
    (directory / "hosts.ini").write_text(
        f"[all]\n{names}\n[all:vars]\nansible_connection=local\nansible_python_interpreter={sys.executable}\n",
        "utf-8",
    )
    lines = directory / "lines"
    lines.unlink(missing_ok=True)
    ours = {
        "ANSIBLE_CONNECTION_PLUGINS": str(HERE.parent / "support/plugins/connection"),
        "ANSIBLE_CALLBACK_PLUGINS": str(HERE / "callback"),
        "ANSIBLE_CALLBACKS_ENABLED": "stopwatch",
        "ANSIBLE_FORKS": "10",
        "STOPWATCH_FILE": str(lines),
        **environment,
    }
    done = subprocess.run(
        [
            str(Path(sys.executable).parent / "ansible-playbook"),
            "-i",
            str(directory / "hosts.ini"),
            str(directory / "playbook.json"),
        ],
        env={**os.environ, **ours},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise SystemExit(f"ansible-playbook failed:\n{done.stdout[-2000:]}{done.stderr[-2000:]}")
    return [json.loads(line) for line in lines.read_text("utf-8").splitlines()]


def compare(
    pair: Pair, rounds: int, server: Server, directory: Path
) -> tuple[list[float], list[float]]:
    """Return the seconds of ours and of theirs, per round; one additional round warms up."""
    both = {"name": "ours", **pair.ours}, {"name": "theirs", **pair.theirs}
    tasks = [task for dummy in range(rounds + 1) for task in both]
    lines = play(tasks, pair.hosts, directory, **access(server))[2:]
    return tuple(
        [line["seconds"] for line in lines if line["task"] == name] for name in ("ours", "theirs")
    )


def count_tokens(server: Server, directory: Path) -> int:
    """Return how many token requests 100 hosts make."""
    play(
        [create(HOST)],
        100,
        directory,
        INFRASTRUCTURE_SERVICES_BASE_URL=server.url,
        INFRASTRUCTURE_SERVICES_AUTH_URL=f"{server.url}/token",
        INFRASTRUCTURE_SERVICES_CLIENT_ID="benchmark",
        INFRASTRUCTURE_SERVICES_CLIENT_SECRET="benchmark",
    )
    return server.tokens()


def main() -> None:
    """Print a line for each pair; exit with 1 when a bar does not hold."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=5, help="how often each pair is measured")
    parser.add_argument("--only", default="", help="measure only work whose name contains this")
    given = parser.parse_args()
    held = []
    print(f"{'work':40}{'ours, s':>10}{'theirs, s':>11}{'ratio':>8}{'bar':>8}")
    with Server() as server, tempfile.TemporaryDirectory() as scratch:
        for pair in PAIRS:
            if given.only in pair.work:
                rounds = min(pair.rounds, given.rounds)
                ours, theirs = map(statistics.median, compare(pair, rounds, server, Path(scratch)))
                ratio = pair.ratio(ours, theirs)
                held.append(pair.holds(ratio))
                limit = f"{'>=' if pair.faster else '<='} {pair.limit:g}"
                verdict = "" if held[-1] else "  NOT HELD"
                print(
                    f"{pair.work:40}{ours:10.3f}{theirs:11.3f}{ratio:8.2f}{limit:>8}{verdict}",
                    flush=True,
                )
        if given.only in "token requests":
            tokens = count_tokens(server, Path(scratch))
            held.append(tokens == 1)
            print(f"{'token requests, 100 hosts, forks 10':40}{tokens:10}{'':19}{'1':>8}")
    sys.exit(not all(held))


if __name__ == "__main__":
    main()
