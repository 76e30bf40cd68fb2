"""Where a task runs and what that costs, measured by its processes, imports, connections and token
requests.
"""

from __future__ import annotations

import json

import pytest
from support.running import TARGET_PYTHON, Ansible

VM = "infrastructure.services.compute_virtual_machine"
ITEMS = 50
LOOP = f"""
- name: Create
  {VM}:
    name: "web{{{{ item }}}}"
    attributes: {{cpu: 4}}
  loop: "{{{{ range({ITEMS}) | list }}}}"
"""


def executable(path, *lines: str) -> str:
    """Write a shell script."""
    path.write_text("\n".join(["#!/bin/sh", *lines]), encoding="utf-8")
    path.chmod(0o755)
    return str(path)


def test_a_later_item_of_a_loop_opens_a_connection_and_starts_and_imports_nothing(
    ansible_once, service, tmp_path
):
    audit = tmp_path / "audit"
    run = ansible_once.tasks(
        LOOP, ANSIBLE_CALLBACKS_ENABLED="recorder,auditor", AUDITOR_FILE=str(audit)
    ).ok()
    assert len(run.items("Create")) == len(service.conversation()) == ITEMS
    lines = audit.read_text(encoding="utf-8").splitlines()
    assert lines[0] == "imported True", "the parent does not import what the workers need"
    assert lines.count("item") == ITEMS
    places = [place for place, line in enumerate(lines) if line == "item"]
    # After the last item the worker may be exiting, when Python itself imports modules.
    assert set(lines[places[1] : places[-1]]) == {"item", "socket.connect"}, (
        "a later item does more than send its request"
    )
    assert [line for line in lines if line.startswith("socket.")] == ["socket.connect"] * ITEMS
    # Before the first item Ansible itself may start a process: ansible-core 2.21 asks ldconfig
    # where libcrypt is.
    assert not [line for line in lines[places[0] :] if line.startswith(("os.", "subprocess."))]


# name of the case: (keywords of the task, the hosts whose Python is started)
PLACES = {
    "plain": ({}, []),
    "become": ({"become": True}, ["become"]),
    "become-ledger": ({"become": True}, ["become-ledger"]),
    "async": ({"async": 60, "poll": 1}, ["async"]),
    "environment": ({"environment": {"SOME": "thing"}}, []),
    "connection": ({"vars": {"ansible_connection": "process"}}, ["connection"]),
    "delegated-here": ({"delegate_to": "here"}, []),
    "delegated-away": ({"delegate_to": "away"}, ["away"]),
}


@pytest.fixture(scope="module")
def placed(collections, running_service, tmp_path_factory):
    """Each task of PLACES on a host of its own: the results, the names sent, and the hosts whose
    Python was started.

    The service and the token are in the environment of the controller, which sudo does not hand on.
    """
    directory = tmp_path_factory.mktemp("where")
    become = executable(
        directory / "sudo",
        'while [ "$1" != /bin/sh ]; do shift; done',
        'exec env -i PATH="$PATH" HOME="$HOME" "$@"',
    )
    hosts = {}
    for host in (*PLACES, "here", "away"):
        lines = f"touch {directory}/{host}.started", f'exec {TARGET_PYTHON} "$@"'
        hosts[host] = {
            "ansible_connection": "process" if host == "away" else "local",
            "ansible_become_exe": become,
            "ansible_python_interpreter": executable(directory / f"{host}.python3", *lines),
        }
    (directory / "hosts.json").write_text(json.dumps({"all": {"hosts": hosts}}), encoding="utf-8")
    plays = [
        {
            "hosts": place,
            "gather_facts": False,
            "tasks": [
                {
                    "name": "Create",
                    VM: {
                        "name": place,
                        "attributes": {"cpu": 4},
                        "access_token": None,
                        **({"ledger": "{{ playbook_dir }}/ledger.db"} if "ledger" in place else {}),
                    },
                    **keywords,
                }
            ],
        }
        for place, (keywords, _started) in PLACES.items()
    ]
    running_service.reset()
    run = (
        Ansible(directory, collections, running_service.url, "local")
        .playbook(
            f"{json.dumps(plays)}\n",
            "-i",
            str(directory / "hosts.json"),
            ANSIBLE_BECOME_ALLOW_SAME_USER="true",
        )
        .ok()
    )
    return (
        run,
        [body["name"] for body in running_service.bodies()],
        {path.stem for path in directory.glob("*.started")},
    )


@pytest.mark.parametrize("place", PLACES)
def test_what_is_unsafe_in_the_worker_runs_as_a_module_with_the_same_result(placed, place):
    run, sent, started = placed
    result = run.on(place).result("Create")
    assert (result["outcome"], result["changed"], result["status"]) == ("accepted", True, 201)
    assert result["request_attempts"] == 1
    assert result["asset"] == result["ansible_facts"]["compute_virtual_machine"]
    assert result["request"]["body"] == {"name": place, "attributes": {"cpu": 4}}
    assert sent.count(place) == 1
    keywords, expected = PLACES[place]
    assert started & {place, keywords.get("delegate_to", place)} == set(expected)


IDENTITY = {
    "INFRASTRUCTURE_SERVICES_ACCESS_TOKEN": None,
    "INFRASTRUCTURE_SERVICES_CLIENT_ID": "emulator",
    "INFRASTRUCTURE_SERVICES_CLIENT_SECRET": "emulator",
}


@pytest.mark.parametrize("hosts", [30, pytest.param(100, marks=pytest.mark.stress)])
def test_all_hosts_share_one_token_and_check_mode_requests_none(
    ansible_once, service, tmp_path, hosts
):
    inventory = tmp_path / "hosts.ini"
    inventory.write_text(f"[all]\nweb[001:{hosts:03}] ansible_connection=local\n", encoding="utf-8")
    text = f"""
- hosts: web001,web002
  gather_facts: false
  check_mode: true
  tasks:
    - {VM}: {{name: planned, client_id: of-another-client}}
- hosts: all
  gather_facts: false
  tasks:
    - {VM}:
        name: "{{{{ inventory_hostname }}}}"
"""
    environment = {**IDENTITY, "INFRASTRUCTURE_SERVICES_AUTH_URL": f"{service.url}/oauth/token"}
    ansible_once.playbook(text, "-i", str(inventory), "--forks", "10", **environment).ok()
    paths = [request["path"] for request in service.conversation()]
    assert (paths.count("/oauth/token"), len(paths)) == (1, hosts + 1)
