# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

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
from ansible_collections.infrastructure.services.plugins.module_utils._task.specs import (
    VIRTUAL_MACHINES,
)
from ansible_collections.infrastructure.services.plugins.plugin_utils._screen.assets import (
    assets_of,
)
from ansible_collections.infrastructure.services.plugins.plugin_utils._screen.report import (
    AboutList,
    Report,
)
from support.others import (
    OTHER,
    directory_for_all,
    link_of_another,
    needs_root,
    repeated_by_another,
)

MACHINE, SERVICE = VIRTUAL_MACHINES.resource.operation, "https://infrastructure.example.com"
DONE = Result(item="a", outcome="accepted", changed=True, status=201, asset={"id": "1"})
RESULT = Result(results=(DONE,))
PLAN = Result(results=(Result(item="a", plan="keep"),))


def write(path: Path, is_plan: bool = False) -> None:
    report = Report(str(path), "", "run-1", SERVICE, is_plan)
    assert add(report, PLAN if is_plan else RESULT) == ""


def add(report: Report, result: Result) -> str:
    return report.add_list(MACHINE, assets_of(MACHINE, result), AboutList())


def refusal(path: Path) -> str:
    with pytest.raises(InvalidInput) as refused:
        Report(str(path), "", "run-1", SERVICE, is_plan=True)
    return refused.value.msg


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
    assert len(modes(tmp_path)) == 7
    (tmp_path / "fleet.html").chmod(0o640)
    write(tmp_path / "fleet.json")
    assert modes(tmp_path)["fleet.html"] == 0o640


@pytest.mark.parametrize(
    ("link", "target", "given"),
    [
        ("link.json", "real/fleet.json", "link.json"),
        ("link", "real", "link/fleet.json"),
        ("real/fleet.plan.html", "../elsewhere.html", "real/fleet.json"),
    ],
)
def test_a_path_through_the_link_of_another_user_is_refused(
    tmp_path, link, target, given, monkeypatch
):
    (tmp_path / "real").mkdir()
    theirs = link_of_another(tmp_path / link, target, monkeypatch)
    before = sorted(tmp_path.rglob("*"))
    if given == "link.json":
        theirs.rename(tmp_path / "link.plan.json")
        theirs = tmp_path / "link.plan.json"
        before = sorted(tmp_path.rglob("*"))
    assert f"leads through {theirs}, a symbolic link of the user " in refusal(tmp_path / given)
    assert sorted(tmp_path.rglob("*")) == before


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
                if name.endswith(".new"):
                    os.unlink(shared / "d" / name)
                    os.symlink(victim, shared / "d" / name)

        with repeated_by_another(swap):
            for number in range(100):
                with suppress(InvalidInput):
                    report = str(shared / "d/fleet.json")
                    add(Report(report, "", f"run-{number}", SERVICE, is_plan=False), RESULT)
    assert victim.read_text() == ""


@needs_root
def test_a_directory_that_becomes_a_link_meanwhile_is_not_written_to(tmp_path):
    (tmp_path / "d").mkdir()
    (tmp_path / "victims").mkdir()
    report = Report(str(tmp_path / "d/fleet.json"), "", "run-1", SERVICE, is_plan=False)
    (tmp_path / "d").rmdir()
    (tmp_path / "d").symlink_to("victims")
    os.lchown(tmp_path / "d", OTHER, OTHER)
    assert "a symbolic link of the user" in add(report, RESULT)
    assert list((tmp_path / "victims").iterdir()) == []


@needs_root
def test_the_mode_that_another_user_gave_a_file_is_not_kept(tmp_path):
    write(tmp_path / "fleet.json")
    (tmp_path / "fleet.json").chmod(0o666)
    os.chown(tmp_path / "fleet.json", OTHER, OTHER)
    write(tmp_path / "fleet.json")
    assert modes(tmp_path)["fleet.json"] == 0o600
