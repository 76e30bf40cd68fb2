"""A release is built only from a commit that qualifies, has the same bytes each time, and the
commands of the guide "Versions and upgrades" accept it exactly as it was signed.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from ansible_collections.infrastructure.services.plugins.module_utils._version import VERSION
from antsibull_fileutils.copier import GitCopier
from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator
from docs.guides import ROOT, read
from support.running import BIN

pytestmark = [
    pytest.mark.matrix,
    pytest.mark.skipif(
        not all(map(shutil.which, ("gpg", "gpgv"))),
        reason="pip cannot bring GnuPG: apt install gnupg gpgv",
    ),
]
NAME = f"infrastructure-services-{VERSION}"
ARTIFACT, BOM, SUMS = f"{NAME}.tar.gz", f"{NAME}.cdx.json", "SHA256SUMS"
KEY, STRANGER = "releaser@example.com", "stranger@example.com"
*_UPGRADE, MAKE_KEYRING, VERIFY, INSTALL, VERIFY_INSTALLED = (
    step.text for step in read(ROOT / "docs/docsite/rst/versions.rst").steps
)
COLLECTION = "collections/ansible_collections/infrastructure/services"
MODULE = f"{COLLECTION}/plugins/modules/compute_virtual_machine.py"


@pytest.fixture(scope="module", autouse=True)
def keys() -> Iterator[None]:
    """GnuPG with two keys; below /tmp, since the path of the agent's socket has to be short."""
    with (
        pytest.MonkeyPatch.context() as patch,
        tempfile.TemporaryDirectory(prefix="gpg-", dir="/tmp") as directory,
    ):
        patch.setenv("GNUPGHOME", directory)
        for name in (KEY, STRANGER):
            gpg("--passphrase", "", "--quick-generate-key", name, "ed25519", "sign", "never")
        yield
        subprocess.run(["gpgconf", "--kill", "all"], check=True)


def git(directory: Path, *arguments: str) -> None:
    who = {"user.name": "Releaser", "user.email": "releaser@example.com", "commit.gpgsign": "false"}
    given = [word for name, value in who.items() for word in ("-c", f"{name}={value}")]
    dated = dict.fromkeys(("GIT_AUTHOR_DATE", "GIT_COMMITTER_DATE"), "2026-01-02T03:04:05Z")
    line = ["git", *given, *arguments]
    subprocess.run(line, cwd=directory, check=True, env={**os.environ, **dated})


@pytest.fixture(scope="module")
def checkout(tmp_path_factory) -> Path:
    """The tracked and untracked, unignored files, committed in a repository of their own, without
    the fragments of the changelog, which a release removes.
    """
    directory = tmp_path_factory.mktemp("release") / "checkout"
    GitCopier().copy(ROOT, directory)
    for fragment in (directory / "changelogs/fragments").glob("*.yml"):
        fragment.unlink()
    git(directory, "init", "--quiet")
    git(directory, "add", "--all")
    git(directory, "commit", "--quiet", "--message", "A release")
    return directory


def gpg(*arguments: str) -> bytes:
    line = ["gpg", "--batch", "--yes", "--quiet", "--armor", *arguments]
    return subprocess.run(line, check=True, stdout=subprocess.PIPE).stdout


def make(checkout: Path, *arguments: str) -> subprocess.CompletedProcess:
    line = [sys.executable, str(ROOT / "tests/tools/release.py"), *arguments]
    return subprocess.run(line, cwd=checkout, capture_output=True, text=True, check=False)


def run(command: str, directory: Path) -> int:
    """Run a command of the guide and return its status."""
    environment = {
        **os.environ,
        "PATH": f"{BIN}{os.pathsep}{os.environ['PATH']}",
        "ANSIBLE_HOME": str(directory),
        "ANSIBLE_COLLECTIONS_PATH": str(directory / "collections"),
    }
    line = ["bash", "-c", command]
    return subprocess.run(line, cwd=directory, env=environment, check=False).returncode


@pytest.fixture(scope="module")
def released(checkout, tmp_path_factory) -> Path:
    """A release that somebody has verified and installed as the guide says."""
    done = make(checkout, VERSION, KEY)
    assert done.returncode == 0, done.stderr
    directory = tmp_path_factory.mktemp("released") / "release"
    shutil.copytree(checkout / ".build/release", directory)
    (directory / "maintainers.asc").write_bytes(gpg("--export", KEY))
    for command in (MAKE_KEYRING, VERIFY, INSTALL, VERIFY_INSTALLED):
        assert run(command, directory) == 0, command
    return directory


def test_the_same_commit_gives_the_same_bytes_and_a_valid_bill_of_materials(
    checkout, released, tmp_path
):
    twin = tmp_path / "elsewhere"
    git(tmp_path, "clone", "--quiet", str(checkout), str(twin))
    assert make(twin, VERSION).returncode == 0
    for name in (ARTIFACT, BOM):
        assert (twin / ".build/release" / name).read_bytes() == (released / name).read_bytes()
    text = (released / BOM).read_text(encoding="utf-8")
    assert JsonStrictValidator(SchemaVersion.V1_6).validate_str(text) is None
    components = json.loads(text)["components"]
    needed = {each["name"]: each["properties"][0]["value"] for each in components}
    assert needed == {"ansible-core": ">=2.16.0", "requests": ">=2.31"}


@pytest.mark.parametrize(
    ("version", "name", "said"),
    [
        (VERSION, "notes.txt", "the tree is not clean"),
        (VERSION, "changelogs/fragments/7-mend.yml", "run antsibull-changelog release"),
        ("99.0.0", "", "galaxy.yml does not say 99.0.0"),
        ("", "", "galaxy.yml does not say VERSION=..."),
    ],
)
def test_a_checkout_that_is_not_a_release_is_refused(checkout, tmp_path, version, name, said):
    twin = tmp_path / "twin"
    git(tmp_path, "clone", "--quiet", str(checkout), str(twin))
    if name:
        (twin / name).parent.mkdir(exist_ok=True)
        (twin / name).write_text("bugfixes: [It works.]\n", encoding="utf-8")
    if "fragments" in name:
        git(twin, "add", "--all")
        git(twin, "commit", "--quiet", "--message", "Mend")
    done = make(twin, version)
    assert done.returncode == 1
    assert said in done.stderr


def changed(name: str) -> Callable[[Path], None]:
    """Change the last byte of a file."""

    def tamper(release: Path) -> None:
        content = (release / name).read_bytes()
        (release / name).write_bytes(content[:-1] + bytes([content[-1] ^ 1]))

    return tamper


def sign_as_stranger(name: str) -> Callable[[Path], object]:
    """Replace the signature of a file."""
    return lambda release: gpg("--local-user", STRANGER, "--detach-sign", str(release / name))


def manifest_by_stranger(release: Path) -> None:
    sign_as_stranger(f"{COLLECTION}/MANIFEST.json")(release)
    shutil.copy(release / COLLECTION / "MANIFEST.json.asc", release)


TAMPERED = {
    "the artifact": (VERIFY, changed(ARTIFACT)),
    "the checksums, signed by a stranger": (VERIFY, sign_as_stranger(SUMS)),
    "an installed module": (VERIFY_INSTALLED, changed(MODULE)),
    "an installed file more": (
        VERIFY_INSTALLED,
        lambda release: (release / MODULE).with_name("more.py").touch(),
    ),
    "the manifest, signed by a stranger": (VERIFY_INSTALLED, manifest_by_stranger),
}


@pytest.mark.parametrize("what", TAMPERED)
def test_tampering_is_detected(released, tmp_path, what):
    command, tamper = TAMPERED[what]
    copy = shutil.copytree(released, tmp_path / "copy")
    tamper(copy)
    assert run(command, copy) != 0
