"""A creation is sent once over ssh, however often the connection is lost and may be made again;
options in the keyword `environment` arrive, and no command line has them.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import NamedTuple

import pytest
from support.running import TARGET_PYTHON, Ansible
from support.wire import answer, running

VM, ROLE = (
    "infrastructure.services.compute_virtual_machine",
    "infrastructure.services.cassandra_application_role",
)
# Runs a command on this machine. Other commands than the module find the connection lost each first
# time, and the module's own loses it at the end; `mux` is what ssh says when it goes on without a
# master connection. That of `job` loses it at its start, as a job of async does when the target
# goes down; that of `tidy` when its files are removed.
SSH = f"""#!/bin/sh
echo "$@" >> "{{log}}"
for command; do :; done
case "{{name}} $command" in
steady*) exec /bin/sh -c "$command" ;;
tidy*rm*-f*-r*) ;;
tidy*) exec /bin/sh -c "$command" ;;
*{TARGET_PYTHON}*)
    test "{{name}}" = job || /bin/sh -c "$command"
    test "{{name}}" != mux || echo "mux_client_hello_exchange: write packet: Broken pipe" >&2
    ;;
*)
    if rmdir "{{mark}}" 2> /dev/null; then exec /bin/sh -c "$command"; fi
    mkdir "{{mark}}"
    ;;
esac
echo "Connection reset by peer" >&2
exit 255
"""


class Row(NamedTuple):
    """What one play asks for, and how many requests then arrive from each of its hosts."""

    hosts: tuple[str, ...]
    module: str
    options: dict
    requests: int
    keywords: dict


ROWS = [
    Row(("one", "mux"), VM, {"name": "vm{{ item }}"}, 2, {"loop": [1, 2]}),
    Row(("list",), f"{VM}s", {"virtual_machines": [{"name": "vm"}]}, 1, {}),
    Row(("update",), ROLE, {"id": "role", "name": "role"}, 2, {}),
    Row(("job",), VM, {"name": "vm"}, 0, {"async": 30, "poll": 1}),
]
TIDY = {
    "name": "Send",
    VM: {"name": "vm", "base_url": "{{ service }}/tidy"},
    "vars": {"ansible_pipelining": False},
}
PREFIX = "INFRASTRUCTURE_SERVICES_"
TOKEN = "token-of-the-environment"
# By the path of the service: the tasks whose environment has the options.
STEADY = {
    "single": (VM, {"name": "vm"}, {}),
    "loop": (VM, {"name": "vm{{ item }}"}, {"loop": [1, 2]}),
    "list-of-one": (f"{VM}s", {"virtual_machines": [{"name": "vm"}]}, {}),
    "async": (VM, {"name": "vm"}, {"async": 60, "poll": 1}),
    # A file that only the target has is named there; the task says that it cannot be read.
    "path": (VM, {"name": "vm"}, {"ignore_errors": True}),
}
REQUESTS = {host: row.requests for row in ROWS for host in row.hosts}


def executable(directory: Path, name: str) -> str:
    """Write the ssh of a host."""
    script = directory / f"{name}.ssh"
    text = SSH.format(name=name, mark=directory / f"{name}.lost", log=directory / "commands.log")
    script.write_text(text, encoding="utf-8")
    script.chmod(0o755)
    return str(script)


def steady(name: str, url: str, module: str, options: dict, keywords: dict) -> dict:
    """Return a task that has its token and its service from its environment."""
    given = {"ACCESS_TOKEN": TOKEN, "BASE_URL": f"{url}/{name}"}
    if name == "path":
        given = {"CA_PATH": "/nowhere/ca.pem", "BASE_URL": "https://127.0.0.1:9"}
    variables = {f"{PREFIX}{option}": value for option, value in given.items()}
    return {
        "name": name,
        module: options,
        "environment": {**variables, "SOME": "thing"},
        **keywords,
    }


@pytest.fixture(scope="module")
def ran(collections, tmp_path_factory):
    """Run each row; return the run, the service and the commands."""
    directory = tmp_path_factory.mktemp("ssh")
    hosts = {
        name: {"ansible_ssh_executable": executable(directory, name)}
        for name in (*REQUESTS, "tidy", "steady")
    }
    with running(lambda sent: answer(201, {"id": "id", **json.loads(sent.body)})) as service:
        where = {"base_url": f"{service.url}/{{{{ inventory_hostname }}}}"}
        lenient = {"gather_facts": False, "ignore_unreachable": True, "ignore_errors": True}
        plays = [
            {
                "hosts": ",".join(row.hosts),
                **lenient,
                "tasks": [{"name": "Send", row.module: {**row.options, **where}, **row.keywords}],
            }
            for row in ROWS
        ]
        plays.append(
            {
                "hosts": "tidy",
                "gather_facts": False,
                "vars": {"service": service.url},
                "tasks": [TIDY],
            }
        )
        tasks = [steady(name, service.url, *case) for name, case in STEADY.items()]
        plays.append({"hosts": "steady", "gather_facts": False, "tasks": tasks})
        run = Ansible(
            directory, collections, service.url, "ssh", {"all": {"hosts": hosts}}
        ).playbook(
            plays,
            "-vvvv",
            ANSIBLE_PIPELINING="true",
            ANSIBLE_SSH_RETRIES="1",
            ANSIBLE_SSH_TRANSFER_METHOD="piped",
        )
    return run, service, (directory / "commands.log").read_text(encoding="utf-8")


@pytest.mark.parametrize("name", REQUESTS)
def test_the_connection_repeats_what_prepares_the_module_and_an_update_but_no_creation(ran, name):
    assert len(ran[1].sent_by(name)) == REQUESTS[name], ran[0].output


@pytest.mark.parametrize("name", REQUESTS)
def test_a_lost_connection_leaves_the_outcome_unknown(ran, name):
    results = [line["result"] for line in ran[0].results if line["host"] == name]
    assert {
        (result["outcome"], result["unreachable"]) for result in results if "results" not in result
    } == {("unknown", True)}, results


def test_a_job_whose_start_was_lost_may_have_created_the_machine_and_is_not_polled(ran):
    result = ran[0].on("job").result("Send")
    assert (result["outcome"], result["failed"], result["unreachable"]) == (
        "unknown",
        True,
        True,
    ), result
    assert "virtual machine vm: the module gave no result" in result["msg"]
    assert "async_status" not in ran[0].output.partition("PLAY [steady]")[0]


def test_a_connection_that_is_lost_while_the_files_are_removed_takes_no_result_away(ran):
    result = ran[0].on("tidy").result("Send")
    assert (result["outcome"], result["changed"], result["failed"]) == ("accepted", True, False), (
        result
    )
    assert result["asset"]["id"] == "id"
    assert len(ran[1].sent_by("tidy")) == 1


@pytest.mark.parametrize("name", [name for name in STEADY if name != "path"])
def test_the_token_and_the_url_of_the_environment_arrive(ran, name):
    run, service, _commands = ran
    assert run.result(name).get("outcome", "accepted") == "accepted", run.result(name)
    sent = service.sent_by(name)
    assert len(sent) == (2 if name == "loop" else 1)
    assert [dict(each.headers)["Authorization"] for each in sent] == [f"Bearer {TOKEN}"] * len(sent)


def test_neither_a_command_line_nor_the_screen_has_them(ran):
    run, _service, commands = ran
    assert TOKEN not in commands + run.output
    assert PREFIX not in commands
    assert commands.count("SOME=thing") >= len(STEADY) - 1
    assert "Traceback" not in run.output


def test_a_path_of_the_environment_is_one_of_the_target(ran):
    result = ran[0].result("path")
    assert (result["outcome"], result["failed"]) == ("not_sent", True)
    assert "/nowhere/ca.pem cannot be read" in result["msg"]
