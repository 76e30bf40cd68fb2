# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The emulator's playbook: one emulator is started as a user would, used, and stopped."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
import requests
from support.emulating import Service
from support.others import OTHER, needs_root
from support.running import Ansible, Run

EMULATOR = "infrastructure.services.emulator"
TOKEN = 'it\'s "$HOME"'


class Background(NamedTuple):
    """An emulator that the playbook left running."""

    ansible: Ansible
    settings: dict  # the variables of the playbook
    run: Run
    url: str

    def playbook(self, **more: str) -> Run:
        """Run the playbook again, with some variables changed."""
        return self.ansible.playbook(EMULATOR, "-e", json.dumps({**self.settings, **more}))


@pytest.fixture(scope="module")
def background(collections, tmp_path_factory) -> Iterator[Background]:
    """The emulator in a directory that does not exist; at the end it must stop and remove its
    files.
    """
    directory = tmp_path_factory.mktemp("background")
    where = directory / "not there/yet"
    settings = {
        "emulator_port": 0,
        "emulator_background": True,
        "emulator_delay": 0.25,
        "emulator_settings": {"put": "replace", "token": TOKEN},
        "emulator_directory": str(where),
    }
    ansible = Ansible(directory, collections, "http://127.0.0.1:9", "local")
    run = ansible.playbook(EMULATOR, "-e", json.dumps(settings)).ok()
    started = Background(ansible, settings, run, (where / "url").read_text().strip())
    ansible.base_url = started.url
    try:
        yield started
    finally:
        started.playbook(emulator_state="absent").ok()
    with pytest.raises(requests.ConnectionError):
        requests.get(started.url, timeout=5)
    assert not (where / "url").exists()


def test_the_emulator_stays_in_the_background_and_has_the_settings(background):
    said = background.run.result("Show how to use the emulator")["msg"]
    assert f"export INFRASTRUCTURE_SERVICES_BASE_URL={background.url}" in said
    assert f"Its page, for a browser: {background.url}" in said
    shown = requests.get(f"{background.url}/_emulator/settings", timeout=5).json()
    assert {**shown, "put": "replace", "token": TOKEN, "delay": {"any": 0.25}} == shown


def test_a_directory_keeps_one_emulator(background):
    run = background.playbook()
    assert run.rc != 0
    where = background.settings["emulator_directory"]
    stop = (
        "ansible-playbook infrastructure.services.emulator -e emulator_state=absent"
        f" -e 'emulator_directory=\"{where}\"'"
    )
    assert run.result("Require that the emulator is listening")["msg"] == (
        f"An emulator is still running in {where}, at {background.url}. Use that one, or stop it: {stop}"
    )
    assert f"To stop it: {stop}" in background.run.result("Show how to use the emulator")["msg"]


@pytest.mark.matrix
def test_a_port_in_use_leads_to_a_free_one(background, tmp_path):
    port = background.url.rpartition(":")[2]
    run = background.playbook(emulator_port=port, emulator_directory=str(tmp_path / "other"))
    assert run.rc != 0
    said = run.result("Require that the emulator is listening")["msg"]
    assert f"on port {port}: the emulator cannot start: " in said
    assert "Address already in use" in said
    assert "-e emulator_port=0 takes a free port." in said


def test_the_modules_work_with_what_it_prints(background):
    service = Service(background.url)
    service.settings(token=None, delay={})
    background.ansible.adhoc("infrastructure.services.compute_virtual_machine", "name=web01").ok()
    role = json.dumps({"id": "role-1", "attributes": {"login": True}})
    background.ansible.adhoc("infrastructure.services.cassandra_application_role", role).ok()
    assert [request["status"] for request in service.conversation()] == [201, 200]
    service.settings(token=TOKEN, delay={"any": 0.25})


@pytest.mark.matrix
def test_the_printed_command_stops_it_and_leaves_nothing_behind(ansible_once):
    run = ansible_once.playbook(
        EMULATOR, "-e", '{"emulator_port": 0, "emulator_background": true}'
    ).ok()
    (line,) = [
        line
        for line in run.result("Show how to use the emulator")["msg"]
        if line.startswith("To stop it: ")
    ]
    command, *arguments = shlex.split(line.removeprefix("To stop it: "))
    directory = Path(line.rpartition("emulator_directory=")[2])
    url = (directory / "url").read_text().strip()
    ansible_once.command(command, *arguments).ok()
    assert not directory.exists()
    with pytest.raises(requests.ConnectionError):
        requests.get(url, timeout=5)


@pytest.mark.matrix
def test_an_emulator_that_does_not_start_says_why(ansible_once, service):
    port = service.url.rpartition(":")[2]
    run = ansible_once.playbook(EMULATOR, "-e", f"emulator_port={port}")
    assert run.rc != 0
    message = run.result("Require that the emulator is listening")["msg"]
    assert message.startswith(
        f"The emulator did not start on port {port}: the emulator cannot start: [Errno"
    )
    assert "in use" in message


@pytest.mark.matrix
@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"emulator_delay": "fast"}, "emulator_delay: 'fast' is not a number of seconds."),
        pytest.param(
            {"emulator_delay": -1}, "delay cannot be {'any': -1.0}.", marks=pytest.mark.matrix
        ),
        pytest.param(
            {"emulator_port": "web"},
            "emulator_port: 'web' is not a number from 0 to 65535.",
            marks=pytest.mark.matrix,
        ),
        pytest.param(
            {"emulator_port": 80800},
            "emulator_port: '80800' is not a number from 0 to 65535.",
            marks=pytest.mark.matrix,
        ),
        (
            {"emulator_settings": "put"},
            "emulator_settings is not a dict: pass it as JSON, such as -e '{",
        ),
        (
            {"emulator_state": "abesnt"},
            "emulator_state is abesnt, but can only be present or absent. Nothing was changed.",
        ),
        (
            {"emulator_state": "absent"},
            "emulator_directory is missing: pass -e emulator_directory=PATH, as the playbook",
        ),
    ],
)
def test_a_value_that_cannot_be_used_is_refused(ansible_once, given, said):
    directory = (
        {}
        if given.get("emulator_state") == "absent"
        else {"emulator_directory": str(ansible_once.directory)}
    )
    background = {"emulator_port": 0, "emulator_background": True, **directory}
    run = ansible_once.playbook(EMULATOR, "-e", json.dumps({**background, **given}))
    assert run.rc == 2
    (failed,) = [line["result"]["msg"] for line in run.results if line["result"]["failed"]]
    assert said in failed
    assert not (ansible_once.directory / "url").exists()
    assert run.output.count("[ERROR]") <= 1
    assert "is undefined" not in run.output


@pytest.mark.matrix
def test_a_playbook_can_start_it_use_it_and_stop_it(ansible_once):
    start = {"emulator_port": 0, "emulator_background": True, "emulator_directory": "here/emulator"}
    look = {
        "hosts": "localhost",
        "gather_facts": False,
        "tasks": [
            {
                "name": "Look",
                "ansible.builtin.slurp": {
                    "src": str(ansible_once.directory / "here/emulator/process")
                },
            }
        ],
    }
    stop = {"emulator_state": "absent", "emulator_directory": "here/emulator"}
    run = ansible_once.playbook(
        json.dumps(
            [
                {"import_playbook": EMULATOR, "vars": start},
                look,
                {"import_playbook": EMULATOR, "vars": stop},
            ]
        )
        + "\n"
    ).ok()
    assert f"emulator_directory={ansible_once.directory}/here/emulator" in run.output
    assert [*(ansible_once.directory / "here/emulator").iterdir()] == []


@pytest.mark.matrix
def test_the_emulator_says_which_packages_are_missing(ansible_once, tmp_path):
    subprocess.run(
        [sys.executable, "-m", "venv", "--without-pip", str(tmp_path / "bare")], check=True
    )
    run = ansible_once.playbook(EMULATOR, "-e", f"emulator_python={tmp_path}/bare/bin/python")
    assert run.rc != 0
    assert f"{tmp_path}/bare/bin/python -m pip install h11 jsonschema PyYAML" in run.output.replace(
        "\n", " "
    )
    assert "Traceback" not in run.output


PLANTED = "import pathlib\npathlib.Path(__file__).with_name('it-ran').touch()\n"


@pytest.mark.matrix
def test_no_module_in_the_directory_of_the_emulator_is_run(ansible_once, tmp_path):
    """Neither there nor where the user is: both are on the path of `python -m` if it is run there."""
    where = tmp_path / "where"
    where.mkdir(0o700)
    for directory in (where, ansible_once.directory):
        for name in ("h11", "yaml", "json", "emulator"):
            (directory / f"{name}.py").write_text(PLANTED)
    given = json.dumps(
        {"emulator_port": 0, "emulator_background": True, "emulator_directory": str(where)}
    )
    try:
        ansible_once.playbook(EMULATOR, "-e", given).ok()
    finally:
        ansible_once.playbook(EMULATOR, "-e", given, "-e", "emulator_state=absent").ok()
    assert not [
        directory
        for directory in (where, ansible_once.directory)
        if (directory / "it-ran").exists()
    ]
    assert {file.name for file in where.iterdir() if file.name != "__pycache__"} == {
        "h11.py",
        "yaml.py",
        "json.py",
        "emulator.py",
    }


@pytest.mark.matrix
@pytest.mark.parametrize(
    "of",
    [
        "anybody may write",
        pytest.param("another group may write", marks=pytest.mark.matrix),
        "another user",
    ],
)
def test_a_directory_to_which_others_may_write_is_refused(ansible_once, tmp_path, of):
    if os.geteuid() and of != "anybody may write":
        pytest.skip("root is needed to make a directory of others")
    where = tmp_path / "where"
    where.mkdir()
    where.chmod(
        {"anybody may write": 0o1777, "another group may write": 0o770, "another user": 0o755}[of]
    )
    if of == "another group may write":
        os.chown(where, -1, OTHER)
    elif of == "another user":
        os.chown(where, OTHER, OTHER)
    run = ansible_once.playbook(EMULATOR, "-e", f"emulator_port=0 emulator_directory={where}")
    assert run.rc != 0
    assert run.result("Require that the emulator is listening")["msg"] == (
        f"Other users may write to emulator_directory, {where}. Give a directory to which only you may write."
    )
    assert list(where.iterdir()) == []


@pytest.mark.matrix
@needs_root
def test_stopping_ends_no_process_that_another_user_has_named(ansible_once, tmp_path):
    with subprocess.Popen(["sleep", "600"]) as victim:
        try:
            process = tmp_path / "process"
            process.write_text(f"{victim.pid}\n")
            os.chown(process, OTHER, OTHER)
            ansible_once.playbook(
                EMULATOR, "-e", f"emulator_state=absent emulator_directory={tmp_path}"
            ).ok()
            assert victim.poll() is None
        finally:
            victim.kill()


@pytest.mark.matrix
def test_a_new_directory_is_for_its_owner_only(background):
    where = Path(background.settings["emulator_directory"])
    assert where.stat().st_mode & 0o777 == 0o700
