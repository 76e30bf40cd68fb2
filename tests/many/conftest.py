"""Whole runs of ansible-playbook with a list in one task, against a service that is as slow as the
test needs.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree

import pytest
from ansible_collections.infrastructure.services.plugins.module_utils._task.specs import (
    VIRTUAL_MACHINES,
)
from many.service import Service
from support.lists import run_list
from support.reports import hold_all
from support.running import BIN, TOKEN, Ansible

PLAY = """
- hosts: localhost
  connection: local
  gather_facts: false
  tasks:
    - infrastructure.services.compute_virtual_machines:
        virtual_machines: "{{ machines }}"
        concurrency: 16
        max_unknown: 0
      timeout: "{{ seconds | default(0) }}"
      ignore_errors: true
"""
REPORTING = PLAY.replace("max_unknown: 0", 'max_unknown: 0\n        report: "{{ report }}"')


@dataclass
class Run:
    """One ansible-playbook."""

    process: subprocess.Popen
    recorded_file: Path
    output_file: Path
    errors_file: Path

    def end(self, within: float = 60.0) -> str:
        """Wait for it to exit and return what it printed."""
        self.process.wait(within)
        hold_all(self.output_file.parent)
        return self.output

    @property
    def output(self) -> str:
        """What it has printed, stdout first."""
        return self.printed + self.errors

    @property
    def printed(self) -> str:
        """What it has printed on stdout."""
        return self.output_file.read_text(encoding="utf-8")

    @property
    def errors(self) -> str:
        """What it has printed on stderr, as one line."""
        return " ".join(self.errors_file.read_text(encoding="utf-8").split())

    @property
    def result(self) -> dict:
        """The result of its last task; a loop counts as one."""
        lines = map(json.loads, self.recorded_file.read_text(encoding="utf-8").splitlines())
        return [line["result"] for line in lines if line["kind"] != "item"][-1]


@pytest.fixture
def service() -> Iterator[Service]:
    """A service that takes 50 ms."""
    with Service(0.05) as running:
        yield running


@pytest.fixture
def start(service, collections, tmp_path) -> Iterator[Callable[..., Run]]:
    """Return a function that starts a run over a list of `count` machines, in a process group of
    its own.
    """
    started, ansible = [], Ansible(tmp_path, collections, service.url, "local")
    ansible.prepare()

    def start(
        count: int,
        play: str = PLAY,
        arguments: tuple = (),
        environment: dict | None = None,
        **more,
    ) -> Run:
        number = len(started)
        (tmp_path / "play.yml").write_text(play, encoding="utf-8")
        files = [tmp_path / f"{kind}-{number}" for kind in ("recorded", "output", "errors")]
        machines = [{"name": f"vm{index}", "attributes": {"cpu": 4}} for index in range(count)]
        more = {"machines": machines, **more}
        (tmp_path / "more.json").write_text(json.dumps(more), encoding="utf-8")
        variables = {"RECORDER_FILE": str(files[0]), **(environment or {})}
        line = [str(BIN / "ansible-playbook"), "play.yml", "-e", "@more.json", *arguments]
        with files[1].open("wb") as output, files[2].open("wb") as errors:
            process = subprocess.Popen(
                line,
                cwd=tmp_path,
                env=ansible.environment(**variables),
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=errors,
                start_new_session=True,
            )
        started.append(Run(process, *files))
        return started[-1]

    yield start
    for run in started:
        with suppress(ProcessLookupError):
            os.killpg(run.process.pid, signal.SIGKILL)
        run.process.wait(10)


def report_in(directory: Path) -> dict:
    """The report in a directory; its files agree, and hold no secret."""
    files = [directory / f"fleet{suffix}" for suffix in (".json", ".xml", ".html")]
    assert not any(TOKEN in file.read_text(encoding="utf-8") for file in files)
    found = json.loads(files[0].read_text(encoding="utf-8"))
    suites = list(ElementTree.parse(files[1]).getroot())
    told = len(found["results"]) + len(found["warnings"])
    assert sum(int(suite.get("tests")) for suite in suites) == told
    return found


def run_here(location: str, url: str, names: list[str], at_once: int = 16, **how) -> dict:
    """Return the result of a list in this process; `how`: as of `run_list`, or options."""
    watch = how.pop("watch", str)
    options = {"base_url": url, "concurrency": at_once, "max_unknown": 0, **how}
    options["virtual_machines"] = [{"name": name} for name in names]
    return run_list(VIRTUAL_MACHINES, options, location=location, watch=watch)
