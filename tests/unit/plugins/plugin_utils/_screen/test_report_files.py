"""The files of a report in directories that others may write to: their modes, and the links of
other users.
"""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

import pytest
from ansible_collections.infrastructure.services.plugins.module_utils._errors import InvalidInput
from ansible_collections.infrastructure.services.plugins.module_utils._result import Result
from ansible_collections.infrastructure.services.plugins.plugin_utils._screen.report import Report
from support.others import OTHER, directory_for_all, needs_root, repeated_by_another

ROW = Result(resource="compute_virtual_machine", item="a", word="unchanged")


def write(path: Path, is_plan: bool = False, run: str = "run-1") -> None:
    assert (
        Report(str(path), None, run, "https://s.example", is_plan).add_list([ROW], [], "", None)
        == ""
    )


def modes(directory: Path) -> dict[str, int]:
    return {file.name: file.stat().st_mode & 0o7777 for file in directory.iterdir()}


@pytest.mark.parametrize("umask", [0o000, 0o022, 0o077])
def test_new_files_are_for_their_owner_whatever_the_umask(tmp_path, umask):
    before = os.umask(umask)
    try:
        write(tmp_path / "fleet.json")
        write(tmp_path / "fleet.json", is_plan=True)
    finally:
        os.umask(before)
    assert set(modes(tmp_path).values()) == {0o600}
    assert len(modes(tmp_path)) == 6


@needs_root
@pytest.mark.parametrize("mode", [0o777, 0o1777])
def test_a_user_who_swaps_files_and_directories_meanwhile_has_no_other_file_written(mode, tmp_path):
    victim = tmp_path / "fleet.html"
    victim.write_text("")
    with directory_for_all(mode) as shared:
        (shared / "d").mkdir()
        os.chmod(shared / "d", mode)
        os.chown(shared / "d", OTHER, OTHER)

        def swap() -> None:
            for name in os.listdir(shared / "d"):
                if name.startswith("fleet"):
                    os.unlink(shared / "d" / name)
                    os.symlink(victim, shared / "d" / name)

        with repeated_by_another(swap):
            for number in range(100):
                with suppress(InvalidInput, AssertionError):
                    write(shared / "d/fleet.json", run=f"run-{number}")
    assert victim.read_text() == ""


@needs_root
def test_a_file_that_others_could_read_is_for_its_owner_again(tmp_path):
    write(tmp_path / "fleet.json")
    (tmp_path / "fleet.json").chmod(0o666)
    os.chown(tmp_path / "fleet.json", OTHER, OTHER)
    write(tmp_path / "fleet.json")
    assert modes(tmp_path)["fleet.json"] == 0o600
