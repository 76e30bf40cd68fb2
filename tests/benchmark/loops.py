"""Measure the collection against ansible-core's own uri and debug: each pair in turn, inside one
run, by medians.

python tests/benchmark/loops.py [--only WORD]
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
from importlib.machinery import PathFinder
from pathlib import Path
from typing import NamedTuple

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
from support.ledgers import create as create_ledger

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
    side: str  # ">=": theirs to ours; "<=": ours to theirs
    limit: float
    hosts: int = 1
    rounds: int = 3
    is_mitogen: bool = False  # whether theirs runs under mitogen


NAME, HOST = "vm-{{ item }}", "vm-{{ inventory_hostname }}"
NEW_NAME = f"{NAME} {{{{ now() }}}}"  # in no ledger yet
ELSEWHERE = {"vars": {"ansible_connection": "process"}}  # keeps a task out of the worker
LEDGER = {"environment": {"INFRASTRUCTURE_SERVICES_LEDGER": "{{ playbook_dir }}/loops.db"}}
PAIRS = (
    Pair("loop of 50, uri : ours", create(NAME, **over(50)), uri(NAME, **over(50)), ">=", 50),
    Pair(
        "loop of 50, uri under mitogen : ours",
        create(NEW_NAME, **over(50)),
        uri(NEW_NAME, **over(50)),
        ">=",
        3,
        is_mitogen=True,
    ),
    Pair(
        "loop of 50, uri under mitogen : ours, ledger",
        create(NEW_NAME, **LEDGER, **over(50)),
        uri(NEW_NAME, **over(50)),
        ">=",
        2,
        is_mitogen=True,
    ),
    Pair(
        "loop of 1000, ours : debug",
        create(NAME, **over(1000)),
        debug(NAME, **over(1000)),
        "<=",
        2.0,
    ),
    Pair("100 hosts, forks 10, uri : ours", create(HOST), uri(HOST), ">=", 10, hosts=100),
    Pair(
        "module path, loop of 10, ours : uri",
        create(NAME, **ELSEWHERE, **over(10)),
        uri(NAME, **ELSEWHERE, **over(10)),
        "<=",
        1.1,
    ),
)


class Server:
    """The service of the benchmark, in a separate process.

    `work`: seconds per answer; `tls`: the file of a key and its certificates.
    """

    def __init__(self, work: float = 0, *tls: Path) -> None:
        self.arguments = (work, *tls)

    def __enter__(self) -> Server:
        line = [sys.executable, str(HERE / "server.py"), *map(str, self.arguments)]
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
    """The environment that tells the tasks where the service is, without a ledger."""
    return {
        "INFRASTRUCTURE_SERVICES_BASE_URL": server.url,
        "INFRASTRUCTURE_SERVICES_ACCESS_TOKEN": "benchmark",
        "INFRASTRUCTURE_SERVICES_LEDGER": "none",
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


def mitogen() -> dict[str, str]:
    """Return the environment of a play under mitogen, in this environment or in .build/mitogen;
    empty if it is not installed.
    """
    places = [*sys.path, str(HERE.parents[1] / ".build/mitogen")]
    found = PathFinder.find_spec("ansible_mitogen", places)
    if not found:
        return {}
    plugins = f"{found.submodule_search_locations[0]}/plugins/strategy"
    return {"ANSIBLE_STRATEGY_PLUGINS": plugins, "ANSIBLE_STRATEGY": "mitogen_linear"}


def compare_with_mitogen(pair: Pair, server: Server, directory: Path) -> tuple[list[float], ...]:
    """Return the seconds as `compare` does; each side has processes of its own, because mitogen
    changes how all tasks of a process run.
    """
    seconds: tuple[list[float], ...] = ([], [])
    for dummy in range(pair.rounds):
        for side, task, strategy in zip(seconds, (pair.ours, pair.theirs), ({}, mitogen())):
            lines = play([task, task], pair.hosts, directory, **access(server), **strategy)
            side.append(lines[1]["seconds"])  # the first one warms up
    return seconds


def compare(pair: Pair, server: Server, directory: Path) -> tuple[list[float], ...]:
    """Return the seconds of ours and of theirs, per round; one additional round warms up."""
    both = {"name": "ours", **pair.ours}, {"name": "theirs", **pair.theirs}
    tasks = [task for dummy in range(pair.rounds + 1) for task in both]
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
        INFRASTRUCTURE_SERVICES_LEDGER="none",
    )
    return server.tokens()


def word(doc: str | None) -> str:
    """Return the word of the option --only, which is in the name of all that is measured."""
    parser = argparse.ArgumentParser(
        description=doc, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", default="", help="measure only work whose name contains this")
    return parser.parse_args().only


def holds(what: str, figure: float, side: str, limit: float, *seconds: float) -> bool:
    """Print a figure, the seconds that it comes from, and whether its bar holds; return that."""
    held = figure >= limit if side == ">=" else figure <= limit
    measured = "".join(f"{each:10.3f}" for each in seconds)
    print(f"{what:50}{measured:20}{figure:9.2f}{side:>4} {limit:g}", end="", flush=True)
    print("" if held else "  NOT HELD", flush=True)
    return held


def main() -> None:
    """Print a line for each pair; exit with 1 when a bar does not hold."""
    only, held = word(__doc__), []
    with Server() as server, tempfile.TemporaryDirectory() as scratch:
        create_ledger(f"{scratch}/loops.db", server.url)
        for pair in PAIRS:
            if only in pair.work and pair.is_mitogen and not mitogen():
                print(f"{pair.work}: not measured, because mitogen is not in .build/mitogen")
            elif only in pair.work:
                measure = compare_with_mitogen if pair.is_mitogen else compare
                ours, theirs = map(statistics.median, measure(pair, server, Path(scratch)))
                figure = theirs / ours if pair.side == ">=" else ours / theirs
                held.append(holds(pair.work, figure, pair.side, pair.limit, ours, theirs))
        work = "token requests, 100 hosts, forks 10"
        if only in work:
            held.append(holds(work, count_tokens(server, Path(scratch)), "<=", 1))
    sys.exit(not all(held))


if __name__ == "__main__":
    main()
