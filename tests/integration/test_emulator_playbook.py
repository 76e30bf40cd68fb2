"""The emulator's playbook: one emulator is started as a user would, used, and stopped."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import NamedTuple

import pytest
import requests
from support.running import Ansible, Run

TOKEN = 'it\'s "$HOME"'
NOBODY = 65534  # on most systems


class Background(NamedTuple):
    """An emulator that the playbook left running."""

    ansible: Ansible
    settings: dict  # the variables of the playbook
    run: Run
    url: str

    def playbook(self, **more: str) -> Run:
        """Run the playbook again, with some variables changed."""
        return self.ansible.ours("emulator", {**self.settings, **more})


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
    run = ansible.ours("emulator", settings).ok()
    started = Background(ansible, settings, run, (where / "url").read_text().strip())
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
@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"emulator_delay": "fast"}, "emulator_delay: 'fast' is not a number of seconds."),
        ({"emulator_port": 80800}, "emulator_port: '80800' is not a number from 0 to 65535."),
        ({"emulator_settings": "put"}, "emulator_settings is not a dict: pass it as JSON"),
        (
            {"emulator_state": "abesnt"},
            "emulator_state is abesnt, but can only be present or absent. Nothing was changed.",
        ),
    ],
)
def test_a_value_that_cannot_be_used_is_refused(ansible, given, said):
    where = {"emulator_directory": str(ansible.directory)}
    background = {"emulator_port": 0, "emulator_background": True, **where}
    run = ansible.ours("emulator", {**background, **given})
    assert run.rc == 2
    (failed,) = [line["result"]["msg"] for line in run.results if line["result"]["failed"]]
    assert said in failed
    assert not (ansible.directory / "url").exists()
    assert run.output.count("[ERROR]") <= 1
    assert "is undefined" not in run.output


@pytest.mark.matrix
@pytest.mark.parametrize("playbook", ["emulator", "demo"])
def test_without_its_folder_the_emulator_names_it(ansible, tmp_path, playbook):
    """As when `extensions` was removed from an installed collection."""
    given = {"emulator_extensions": str(tmp_path / "gone"), "emulator_background": True}
    run = ansible.ours(playbook, given)
    assert run.rc != 0
    said = " ".join(run.output.split())
    assert (
        f"There is no folder {tmp_path}/gone/emulator, which has the emulator: the folder extensions "
        in said
    )
    assert "Install the collection again, or pass -e emulator_extensions=PATH" in said


@pytest.mark.matrix
@pytest.mark.skipif(os.geteuid() != 0, reason="root is needed to be two users")
@pytest.mark.parametrize(("mode", "owner"), [(0o1777, 0), (0o755, NOBODY)])
def test_a_directory_to_which_others_may_write_is_refused(ansible, tmp_path, mode, owner):
    where = tmp_path / "where"
    where.mkdir()
    where.chmod(mode)
    os.chown(where, owner, owner)
    run = ansible.ours("emulator", {"emulator_port": 0, "emulator_directory": str(where)})
    assert run.rc != 0
    assert run.result("Require that the emulator is listening")["msg"] == (
        f"Other users may write to emulator_directory, {where}. Give a directory to which only you may write."
    )
    assert list(where.iterdir()) == []
