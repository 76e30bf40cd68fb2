"""Ansible's commands in an environment of their own, and their results.

Environment variables select what is tested, so that the same tests run on every ansible-core:

- TEST_ANSIBLE_BIN: directory of `ansible-playbook` and the other commands (default: that of the running Python);
- TEST_COLLECTIONS: a collections path with the artifact installed (default: built and installed for the tests);
- TEST_TARGET_PYTHON: the Python that runs modules (default: the running Python).
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

import yaml

from .checkout import CHECKOUT
from .reports import hold_all

BIN = Path(os.environ.get("TEST_ANSIBLE_BIN") or Path(sys.executable).parent)
TARGET_PYTHON = os.environ.get("TEST_TARGET_PYTHON") or sys.executable
TOKEN = "integration-token"
PLUGINS = CHECKOUT / "tests/support/plugins"


@dataclass
class Run:
    """The result of one run of an Ansible command."""

    rc: int
    output: str
    results: list[dict] = field(default_factory=list)

    def result(self, task: str) -> dict:
        """The result of the only task with that name; a loop counts as one."""
        (found,) = [
            line["result"]
            for line in self.results
            if line["task"] == task and line["kind"] != "item"
        ]
        return found

    def items(self, task: str) -> list[dict]:
        """The results of the items of a loop."""
        return [
            line["result"]
            for line in self.results
            if line["task"] == task and line["kind"] == "item"
        ]

    def on(self, host: str) -> Run:
        """The same run, with the results of one host."""
        return Run(self.rc, self.output, [line for line in self.results if line["host"] == host])

    def ok(self) -> Run:
        """Assert success."""
        assert self.rc == 0, self.output
        assert "Traceback" not in self.output
        return self


class Interrupted(NamedTuple):
    """A running ansible-playbook that the test interrupts."""

    process: subprocess.Popen
    recorded: Path
    printed: Path

    def end(self, within: float) -> Run:
        """Wait for it to exit, for at most `within` seconds."""
        self.process.wait(within)
        lines = self.recorded.read_text().splitlines()
        return Run(
            self.process.returncode,
            self.printed.read_text("utf-8"),
            [json.loads(line) for line in lines],
        )


@dataclass
class Ansible:
    """Ansible's commands in an environment of their own."""

    directory: Path
    collections: Path
    base_url: str
    connection: str
    inventory: dict | None = None  # None: localhost only

    def environment(self, **more: str | None) -> dict[str, str]:
        """The environment of a command; None removes a variable."""
        kept = {
            name: value
            for name, value in os.environ.items()
            if name in {"PATH", "HOME", "TMPDIR", "LANG"} or name.startswith("COVERAGE_")
        }
        ours = {
            # Where a job is written and looked for: ansible-core takes the one from HOME, the other
            # from the account.
            "ANSIBLE_ASYNC_DIR": str(self.directory / "async"),
            "ANSIBLE_BECOME_PLUGINS": str(PLUGINS / "become"),
            "ANSIBLE_CALLBACKS_ENABLED": "recorder",
            "ANSIBLE_CALLBACK_PLUGINS": str(PLUGINS / "callback"),
            "ANSIBLE_COLLECTIONS_PATH": str(self.collections),
            "ANSIBLE_CONNECTION_PLUGINS": str(PLUGINS / "connection"),
            "ANSIBLE_CONFIG": str(self.directory / "ansible.cfg"),
            "ANSIBLE_HOME": str(self.directory / "home"),
            "ANSIBLE_INVENTORY": str(self.directory / "inventory.yml"),
            "ANSIBLE_LOAD_CALLBACK_PLUGINS": "true",
            "ANSIBLE_LOCALHOST_WARNING": "false",
            "ANSIBLE_NOCOLOR": "true",
            "ANSIBLE_RETRY_FILES_ENABLED": "false",
            "INFRASTRUCTURE_SERVICES_ACCESS_TOKEN": TOKEN,
            "INFRASTRUCTURE_SERVICES_BASE_URL": self.base_url,
            "INFRASTRUCTURE_SERVICES_LEDGER": "none",
            "LC_ALL": "C.UTF-8",
            "PYTHONDONTWRITEBYTECODE": "1",
            "RECORDER_FILE": str(self.directory / "results.jsonl"),
        }
        return {name: value for name, value in (kept | ours | more).items() if value is not None}

    def prepare(self) -> Path:
        """Write configuration and inventory, and return the path of the recorded results."""
        (self.directory / "ansible.cfg").touch()
        host = {"ansible_connection": self.connection, "ansible_python_interpreter": TARGET_PYTHON}
        hosts = self.inventory or {"all": {"hosts": {"localhost": {}}}}
        hosts["all"]["vars"] = host
        (self.directory / "inventory.yml").write_text(yaml.safe_dump(hosts))
        recorded = self.directory / "results.jsonl"
        recorded.write_text("")
        return recorded

    def command(self, name: str, *arguments: str, **environment: str | None) -> Run:
        """Run one of Ansible's commands; keyword arguments are environment variables."""
        recorded = self.prepare()
        done = subprocess.run(
            [str(BIN / name), *arguments],
            cwd=self.directory,
            env=self.environment(**environment),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            encoding="utf-8",
            timeout=600,
            check=False,
        )
        hold_all(self.directory)
        return Run(
            done.returncode,
            done.stdout,
            [json.loads(line) for line in recorded.read_text().splitlines()],
        )

    @contextmanager
    def interrupted(
        self, text: str, *options: str, **environment: str | None
    ) -> Iterator[Interrupted]:
        """Start a playbook in a process group of its own, which is killed at the end."""
        recorded, printed = self.prepare(), self.directory / "output.txt"
        (self.directory / "playbook.yml").write_text(text, encoding="utf-8")
        line = [str(BIN / "ansible-playbook"), "playbook.yml", *options]
        with (
            printed.open("wb") as output,
            subprocess.Popen(
                line,
                cwd=self.directory,
                env=self.environment(**environment),
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            ) as process,
        ):
            try:
                yield Interrupted(process, recorded, printed)
            finally:
                with suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)

    def adhoc(self, module: str, arguments: str, *options: str, **environment: str | None) -> Run:
        """Run `ansible localhost -m MODULE -a ARGUMENTS`."""
        return self.command(
            "ansible", "localhost", "-m", module, "-a", arguments, *options, **environment
        )

    def playbook(self, text: str | list, *options: str, **environment: str | None) -> Run:
        """Run a playbook given as text or as plays, or named by FQCN."""
        name = text if isinstance(text, str) else f"{json.dumps(text)}\n"
        if "\n" in name:
            (self.directory / "playbook.yml").write_text(name, encoding="utf-8")
            name = str(self.directory / "playbook.yml")
        return self.command("ansible-playbook", name, *options, **environment)

    def tasks(self, text: str | list, *options: str, **environment: str | None) -> Run:
        """Run tasks, given as text or data, in a play on localhost."""
        play = {"hosts": "localhost", "gather_facts": False}
        if not isinstance(text, str):
            return self.playbook([{**play, "tasks": text}], *options, **environment)
        head = yaml.safe_dump([play]) + "  tasks:\n"
        lines = text.strip("\n").splitlines()
        indented = "".join(f"    {line}\n" for line in lines)
        return self.playbook(head + indented, *options, **environment)

    def ours(self, name: str, given: dict, *options: str, **environment: str | None) -> Run:
        """Run a playbook of the collection with the given variables."""
        playbook, variables = f"infrastructure.services.{name}", json.dumps(given)
        return self.playbook(playbook, "-e", variables, *options, **environment)


def build_artifact(source: Path, directory: Path) -> Path:
    """Build the collection in `source` as `ansible-galaxy` does, and return the artifact."""
    command = [BIN / "ansible-galaxy", "collection", "build", "--output-path", directory, source]
    home = {"ANSIBLE_HOME": str(directory / "home")}
    subprocess.run(command, check=True, env={**os.environ, **home})
    (artifact,) = directory.glob("*.tar.gz")
    return artifact


def build_and_install(directory: Path) -> Path:
    """Build the artifact, install it, and return the collections path."""
    home = {**os.environ, "ANSIBLE_HOME": str(directory / "home")}
    artifact = build_artifact(CHECKOUT, directory)
    subprocess.run(
        [
            str(BIN / "ansible-galaxy"),
            "collection",
            "install",
            "--no-deps",
            "--offline",
            "--collections-path",
            str(directory / "collections"),
            str(artifact),
        ],
        env=home,
        check=True,
    )
    return directory / "collections"
