"""The screens that people decide from, as text at 80 columns: the plan, the end, what is in doubt.

On stdout with Ansible's own callback; on stderr with one that prints a document on stdout.
"""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from many.conftest import Run
from support.ledgers import create

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
FLEET = """
- hosts: localhost
  connection: local
  gather_facts: false
  roles: [infrastructure.services.fleet]
"""
IN_DOUBT = "- ansible.builtin.import_playbook: infrastructure.services.in_doubt\n"
SAME = {"team": "web", "operating_system": "Debian 13"}
RUN = {
    "fleet_virtual_machines": [
        {"name": "old", "attributes": {**SAME, "cpu": 4}},
        {"name": "drift", "attributes": {**SAME, "cpu": 4}},
        {"name": "gone", "attributes": {**SAME, "cpu": 4}},
        {"name": "lost", "attributes": {**SAME, "cpu": 4}},
        {"name": "wrong", "attributes": {**SAME, "cpu": 4}},
    ],
    "fleet_application_roles": [{"id": "role-1", "description": "one", "tenant": "a"}],
    "fleet_max_unknown": 0,
}
PLAN = {
    "fleet_virtual_machines": [
        {"name": "old", "attributes": {**SAME, "cpu": 4}},
        {"name": "drift", "attributes": {**SAME, "cpu": 8}},
        {"name": "lost", "attributes": {**SAME, "cpu": 4}},
        {"name": "new1", "attributes": {**SAME, "cpu": 4, "ip": "192.0.2.11", "vm_ram": 16}},
        {"name": "new2", "attributes": {**SAME, "cpu": 4, "ip": "192.0.2.12", "vm_ram": 32}},
    ],
    "fleet_application_roles": [{"id": "role-1", "description": "two"}],
}


END = """\
virtual machines: 3 created, 1 in doubt, 1 rejected, 0 s
  ? lost
      POST http://127.0.0.1:PORT/api/v1/services/compute/virtual_machines:
      status 504: a gateway timed out waiting for the service. It is unknown
      whether the virtual machine was created. Look for it on the service: sent
      again, it may exist twice. The ledger does not send it again until it is
      settled. Look again later: it may still appear.
  x wrong
      POST http://127.0.0.1:PORT/api/v1/services/compute/virtual_machines:
      status 422: the service rejected the values of the request; check their
      names and types. No virtual machine was created.
  To settle it: ansible-playbook infrastructure.services.in_doubt -e ledger=HERE/fleet.db
application roles: 1 updated, 0 s
"""
DOUBT = """\
HERE/fleet.db: 1 unknown
NAME  STATE    SINCE (UTC)       ADDRESS  TEAM  ID
compute_virtual_machine
lost  unknown  2026-01-01 00:00           web
Look for each machine on the service, and look again later: it may still appear.
If it is there, record it with its id and address in place of ID and ADDRESS. If
it is not, remove its entry, and the next run creates it:
ansible localhost -m infrastructure.services.ledger_entry -a \
'{"ledger": "HERE/fleet.db", "resource": "compute_virtual_machine", "name": "lost", \
"changed_at": "2026-01-01 00:00", "asset": {"id": "ID", "attributes": {"ip": "ADDRESS"}}}'
ansible localhost -m infrastructure.services.ledger_entry -a \
'{"ledger": "HERE/fleet.db", "resource": "compute_virtual_machine", "name": "lost", \
"changed_at": "2026-01-01 00:00", "state": "absent"}'
"""
PLANNED = """\
virtual machines: 2 to create, 1 differs, 1 in doubt, 1 unchanged
  each:    team web, operating_system Debian 13, cpu 4
  ? lost   in doubt since 2026-01-01 00:00: sent, no answer
  ! drift  attributes.cpu 4 -> 8: the service cannot update it
  + new1   ip 192.0.2.11, vm_ram 16
  + new2   ip 192.0.2.12, vm_ram 32
  . 1 recorded and not in this list: gone. The run leaves them alone. To remove
      one, delete it on the service, then forget its entry.
  To settle it: ansible-playbook infrastructure.services.in_doubt -e ledger=HERE/fleet.db
application roles: 1 to update
  ~ role-1  description one -> two. These fields are known and not sent:
      service, platform, region, tenant. A service that replaces drops them;
      send: complete keeps them.
"""
# In this order: each screen is about what the ones before it have left behind.
SCREENS = ((FLEET, (), RUN, END), (IN_DOUBT, (), {}, DOUBT), (FLEET, ("--check",), PLAN, PLANNED))


def settled(text: str, directory: Path) -> str:
    """Replace what differs from run to run."""
    text = text.replace(str(directory), "HERE")
    text = re.sub(r"127\.0\.0\.1:\d+", "127.0.0.1:PORT", text)
    text = re.sub(r"\d{4}-\d\d-\d\d[ T]\d\d:\d\d(:\d\dZ)?", "2026-01-01 00:00", text)
    return re.sub(r", \d+ s$", ", 0 s", text, flags=re.MULTILINE)


@pytest.mark.parametrize(
    "callback", ["default", pytest.param("one_document", marks=pytest.mark.matrix)]
)
def test_the_screens_are_on_the_stream_that_people_read_and_fit_a_terminal(
    start, service, tmp_path, callback
):
    (tmp_path / "callbacks").mkdir()
    (tmp_path / "callbacks" / "one_document.py").write_text(DOCUMENT, encoding="utf-8")
    environment = {
        "ANSIBLE_CALLBACK_PLUGINS": str(tmp_path / "callbacks"),
        "ANSIBLE_STDOUT_CALLBACK": callback,
        "COLUMNS": "80",
        "INFRASTRUCTURE_SERVICES_LEDGER": create(str(tmp_path / "fleet.db"), service.url),
    }
    service.statuses = {"lost": 504, "wrong": 422}
    for play, arguments, variables, screen in SCREENS:
        run = start(1, play=play, arguments=arguments, environment=environment, **variables)
        run.end()
        printed, errors = (settled(text, tmp_path) for text in both_streams(run))
        read, other = (printed, errors) if callback == "default" else (errors, printed)
        # Between the lists, Ansible itself says that a task failed and which one begins.
        for part in re.split("^(?=application roles)", screen, flags=re.MULTILINE):
            assert part in read
            assert part.splitlines()[0] not in other
        if callback != "default":
            json.loads(printed)
        lines = screen.splitlines()
        assert all(len(line) <= 80 or "ansible" in line for line in lines)  # commands are pasted


def both_streams(run: Run) -> tuple[str, str]:
    return run.printed, run.errors_file.read_text(encoding="utf-8")
