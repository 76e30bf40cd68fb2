# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A release is built only from a commit that qualifies, and has the same bytes each time."""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import os
import subprocess
import tarfile
from pathlib import Path

import pytest
from ansible_collections.infrastructure.services.plugins.module_utils._version import VERSION
from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator
from ecosystem.conftest import git
from support.running import BIN
from tools import release, release_artifact


@pytest.fixture(scope="module")
def released(checkout, tmp_path_factory) -> list[Path]:
    """Artifact, bill of materials, provenance and checksums."""
    return release.build(checkout, tmp_path_factory.mktemp("released"))


def test_the_checkout_is_a_release(checkout):
    assert [
        problem
        for problem in release.problems(checkout, VERSION)
        if "fragments are not" not in problem
    ] == []


CHANGES = {
    "the tree is not clean: notes.txt": ("notes.txt", "", ""),
    "7-mend.yml": ("changelogs/fragments/7-mend.yml", "", "bugfixes: [It works.]\n"),
    f"galaxy.yml does not say {VERSION}": ("galaxy.yml", f"version: {VERSION}", "version: 99.0.0"),
    f"plugins/doc_fragments/connection.py does not say {VERSION}": (
        "plugins/doc_fragments/connection.py",
        f"services/{VERSION}",
        "services/99.0.0",
    ),
    f"_version.py does not say {VERSION}": ("plugins/module_utils/_version.py", VERSION, "99.0.0"),
    f"changelog.yaml does not say {VERSION}": (
        "changelogs/changelog.yaml",
        f"  {VERSION}:",
        "  99.0.0:",
    ),
}


@pytest.mark.parametrize("problem", CHANGES)
def test_a_checkout_that_is_not_a_release_is_refused(checkout, problem):
    name, old, new = CHANGES[problem]
    path = checkout / name
    text = path.read_text(encoding="utf-8") if path.exists() else ""
    path.parent.mkdir(exist_ok=True)
    path.write_text(text.replace(old, new) if old else new, encoding="utf-8")
    try:
        assert problem in "\n".join(release.problems(checkout, VERSION))
    finally:
        git(checkout, "checkout", "--quiet", ".")
        git(checkout, "clean", "--quiet", "--force", "-d")


@pytest.mark.parametrize("version", ["", "1", "v1.0.0", "1.0", "01.0.0"])
def test_a_version_is_semantic(checkout, version):
    (problem,) = release.problems(checkout, version)
    assert "MAJOR.MINOR.PATCH" in problem


def test_the_same_commit_gives_the_same_bytes(checkout, released, tmp_path):
    twin = tmp_path / "elsewhere"
    git(tmp_path, "clone", "--quiet", str(checkout), str(twin))
    again = release.build(twin, tmp_path)
    assert [path.read_bytes() for path in again] == [path.read_bytes() for path in released]


def test_order_time_and_owner_of_a_build_leave_no_trace(released):
    built, other = released[0].read_bytes(), io.BytesIO()
    with (
        tarfile.open(fileobj=io.BytesIO(built)) as tar,
        tarfile.open(fileobj=other, mode="w") as shuffled,
    ):
        for member in reversed(tar.getmembers()):
            content = tar.extractfile(member).read() if member.isfile() else b""
            if member.name == "FILES.json":
                listing = json.loads(content)
                content = json.dumps({**listing, "files": listing["files"][::-1]}).encode()
                member.size = len(content)
            member.mtime, member.uid, member.uname, member.mode = 7, 1000, "me", member.mode | 0o22
            shuffled.addfile(member, io.BytesIO(content))
    moment = int.from_bytes(built[4:8], "little")  # RFC 1952 section 2.3.1
    assert release_artifact.normalised(gzip.compress(other.getvalue()), moment) == built


def test_the_artifact_installs(released, tmp_path):
    subprocess.run(
        [
            str(BIN / "ansible-galaxy"),
            "collection",
            "install",
            "--no-deps",
            "--offline",
            "--collections-path",
            str(tmp_path),
            str(released[0]),
        ],
        check=True,
        env={**os.environ, "ANSIBLE_HOME": str(tmp_path)},
    )
    installed = tmp_path / "ansible_collections/infrastructure/services"
    assert (
        json.loads((installed / "MANIFEST.json").read_text())["collection_info"]["version"]
        == VERSION
    )
    assert (installed / "plugins/modules/compute_virtual_machine.py").exists()


def test_the_bill_of_materials_is_valid_and_names_the_dependencies(released):
    text = released[1].read_text(encoding="utf-8")
    assert JsonStrictValidator(SchemaVersion.V1_6).validate_str(text) is None
    needed = {
        component["name"]: component["properties"][0]["value"]
        for component in json.loads(text)["components"]
    }
    assert needed == {"ansible-core": ">=2.16.0", "requests": ">=2.31", "urllib3": "<3"}


def test_the_provenance_names_the_commit_and_what_was_built_from_it(checkout, released):
    statement = json.loads(released[2].read_text(encoding="utf-8"))
    built, run = (statement["predicate"][part] for part in ("buildDefinition", "runDetails"))
    named = {
        file["name"]: file["digest"]["sha256"]
        for file in (*statement["subject"], *run["byproducts"])
    }
    commit = subprocess.run(
        ["git", "rev-parse", "HEAD"], cwd=checkout, check=True, stdout=subprocess.PIPE, text=True
    )
    assert named == {
        path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in released[:2]
    }
    assert built["externalParameters"] == {"version": VERSION}
    assert built["resolvedDependencies"][0]["digest"] == {"gitCommit": commit.stdout.strip()}
    assert (statement["_type"], statement["predicateType"]) == (
        "https://in-toto.io/Statement/v1",
        "https://slsa.dev/provenance/v1",
    )


def test_the_checksums_are_those_of_the_files(released):
    subprocess.run(
        ["sha256sum", "--check", "--strict", released[-1].name], cwd=released[0].parent, check=True
    )
