"""The commands that the documents name, run in this process by the real actions."""

from __future__ import annotations

import os
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime, timedelta, timezone
from importlib import import_module
from pathlib import Path
from typing import Any, Iterator

import pytest
from ansible import constants
from ansible.parsing.dataloader import DataLoader
from ansible.playbook.block import Block
from ansible.playbook.play import Play
from ansible.playbook.play_context import PlayContext
from ansible.playbook.task import Task
from ansible.plugins import loader as plugin_loaders
from ansible.plugins.loader import connection_loader
from ansible.template import Templar
from ansible.utils.display import Display
from ansible_collections.infrastructure.services.plugins.plugin_utils._ledger import (
    entries,
    location,
)
from ansible_collections.infrastructure.services.plugins.plugin_utils._run import workers
from ansible_collections.infrastructure.services.plugins.plugin_utils._screen import report

ACTIONS = "ansible_collections.infrastructure.services.plugins.action."


@dataclass
class Ended:
    """A command that has ended: its result, and the lines that it displayed."""

    result: dict[str, Any]
    lines: list[str]

    @property
    def said(self) -> str:
        """Everything that a person could read."""
        messages = [*self.lines, *self.result.get("warnings", []), str(self.result.get("msg", ""))]
        return "\n".join(messages)


@dataclass
class Terminal:
    """Somebody at a terminal: a directory, and the URL of the service."""

    directory: Path
    base_url: str
    lines: list[str] = field(default_factory=list)
    seconds: int = 0  # each command begins a minute after the one before

    @contextmanager
    def in_a_run_of_its_own(self) -> Iterator[None]:
        """Forget what one run of Ansible keeps for its tasks, and read what actions display."""
        self.seconds += 60
        moment = datetime(2026, 1, 1, tzinfo=timezone.utc) + timedelta(seconds=self.seconds)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(
                Display, "display", lambda _, text, **_how: self.lines.extend(text.splitlines())
            )
            for module in entries, report:
                patch.setattr(module, "current_time", lambda: f"{moment:%Y-%m-%dT%H:%M:%SZ}")
            patch.setattr(constants, "DEFAULT_LOCAL_TMP", f"ansible-local-{self.seconds}")
            patch.setattr(constants, "ANSIBLE_HOME", str(self.directory / "home"))
            patch.chdir(self.directory)
            try:
                yield
            finally:
                for ledger in location._ledgers.values():
                    ledger.close()
                location._ledgers.clear()
                os.close(workers.run_memory()._file)
                workers.run_memory.cache_clear()

    def run(
        self,
        module: str,
        options: dict[str, Any],
        check_mode: bool = False,
        variables: dict[str, Any] | None = None,
        no_log: bool = False,
    ) -> Ended:
        """Run a task of a playbook of its own; an unexpected error is raised."""
        loader = DataLoader()
        loader.set_basedir(str(self.directory))
        task = Task(block=Block(play=Play()))
        task.action, task.args = f"infrastructure.services.{module}", options
        task.check_mode, task.diff, task.no_log = check_mode, False, no_log
        context = PlayContext()
        begin = len(self.lines)
        with self.in_a_run_of_its_own():
            plugin = import_module(ACTIONS + module).ActionModule(
                task=task,
                connection=connection_loader.get("local", context),
                play_context=context,
                loader=loader,
                templar=Templar(loader=loader, variables=variables or {}),
                shared_loader_obj=plugin_loaders,
            )
            result = plugin.run(task_vars=variables or {})
            plugin.cleanup(force=True)
        return Ended(result, self.lines[begin:])

    def send_list(
        self,
        names: list[str],
        ledger: str,
        cpu: int = 4,
        check_mode: bool = False,
        no_log: bool = False,
        **more: Any,
    ) -> Ended:
        """Run the list of a fleet of machines with this number of processors."""
        options = {
            "base_url": self.base_url,
            "access_token": "a-token-of-this-test",
            "virtual_machines": [{"name": name, "attributes": {"cpu": cpu}} for name in names],
            "ledger": ledger,
            "retries": 0,
            "max_unknown": 0,
            **more,
        }
        return self.run("compute_virtual_machines", options, check_mode, no_log=no_log)

    def send_one(self, name: str, ledger: str, **more: Any) -> Ended:
        """Create one machine, as in a playbook of a single task."""
        options = {
            "base_url": self.base_url,
            "access_token": "a-token-of-this-test",
            "name": name,
            "attributes": {"cpu": 4},
            "ledger": ledger,
            "retries": 0,
            **more,
        }
        return self.run("compute_virtual_machine", options)

    def create_ledger(self, ledger: str, **more: Any) -> Ended:
        """Run the playbook create_ledger."""
        return self.run("ledger_create", {"ledger": ledger, "base_url": self.base_url, **more})

    def list_in_doubt(self, ledger: str, file: str) -> Ended:
        """Run the playbook in_doubt with a file."""
        options = {"ledger": ledger, "states": ["in_doubt"], "file": file, "table": True}
        return self.run("ledger_info", options)

    def settle(self, ledger: str, file: str) -> Ended:
        """Run the playbook settle."""
        return self.run("ledger_entry", {"ledger": ledger, "base_url": self.base_url, "file": file})

    def edit(self, ledger: str, name: str, **edit: Any) -> Ended:
        """Adopt, settle, correct or forget one machine."""
        options = {
            "ledger": ledger,
            "base_url": self.base_url,
            "resource": "compute_virtual_machine",
            "name": name,
            **edit,
        }
        return self.run("ledger_entry", options)

    def move(self, ledger: str, to: str, check_mode: bool = False) -> Ended:
        """Run the playbook move_ledger."""
        return self.run("ledger_move", {"ledger": ledger, "to": to}, check_mode)

    def change_url(self, ledger: str, url: str) -> Ended:
        """Give a ledger the new URL of its service."""
        return self.run("ledger_move", {"ledger": ledger, "to_base_url": url})

    def recorded(self, ledger: str) -> Ended:
        """Read a whole ledger."""
        return self.run("ledger_info", {"ledger": ledger})
