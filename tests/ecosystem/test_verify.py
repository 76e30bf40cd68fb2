# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The commands of the guide "Verify a release" accept a release exactly as signed, and nothing
else.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from ansible_collections.infrastructure.services.plugins.module_utils._version import VERSION
from docs.guides import ROOT, read
from ecosystem import repacked
from support.running import BIN
from tools import release as release_tool
from tools import release_signature

pytestmark = pytest.mark.skipif(
    not all(map(shutil.which, ("gpg", "gpgv"))),
    reason="pip cannot bring GnuPG: apt install gnupg gpgv",
)
NAME = f"infrastructure-services-{VERSION}"
ARTIFACT, BOM, PROVENANCE = f"{NAME}.tar.gz", f"{NAME}.cdx.json", f"{NAME}.provenance.json"
MANIFEST_SIGNATURE, SUMS, SIGNATURE = "MANIFEST.json.asc", "SHA256SUMS", "SHA256SUMS.asc"
KEY, STRANGER = "releaser@example.com", "stranger@example.com"
FILES = {ARTIFACT, BOM, PROVENANCE, MANIFEST_SIGNATURE, SUMS, SIGNATURE}
MAKE_KEYRING, VERIFY, INSTALL, VERIFY_INSTALLED = (
    step.text for step in read(ROOT / "docs/docsite/rst/verify_a_release.rst").steps
)


@pytest.fixture(scope="module")
def home() -> Iterator[Path]:
    """A directory for GnuPG with two keys; below /tmp, since the path of the agent's socket has to
    be short.
    """
    with (
        pytest.MonkeyPatch.context() as patch,
        tempfile.TemporaryDirectory(prefix="gpg-", dir="/tmp") as directory,
    ):
        patch.setenv("GNUPGHOME", directory)
        for name in (KEY, STRANGER):
            gpg("--passphrase", "", "--quick-generate-key", name, "ed25519", "sign", "never")
        yield Path(directory)
        subprocess.run(["gpgconf", "--kill", "all"], check=True)


def gpg(*arguments: str) -> bytes:
    return subprocess.run(
        ["gpg", "--batch", "--quiet", *arguments], check=True, stdout=subprocess.PIPE
    ).stdout


def run(command: str, directory: Path) -> int:
    """Run a command of the guide and return its status."""
    environment = {
        **os.environ,
        "PATH": f"{BIN}{os.pathsep}{os.environ['PATH']}",
        "ANSIBLE_HOME": str(directory),
        "ANSIBLE_COLLECTIONS_PATH": str(directory / "collections"),
        "LC_ALL": "C.UTF-8",
    }
    return subprocess.run(
        ["bash", "-c", command],
        cwd=directory,
        env=environment,
        check=False,
        stdin=subprocess.DEVNULL,
    ).returncode


@pytest.fixture(scope="module")
def signed(checkout, home, tmp_path_factory) -> Path:
    """A release, and the keyring that the guide creates."""
    output = tmp_path_factory.mktemp("signed")
    assert {path.name for path in release_tool.build(checkout, output, KEY)} == FILES
    (output / "maintainers.asc").write_bytes(gpg("--armor", "--export", KEY))
    assert run(MAKE_KEYRING, output) == 0
    return output


@pytest.fixture
def release(signed, tmp_path) -> Path:
    """A copy of the release, to tamper with."""
    return shutil.copytree(signed, tmp_path / "release")


def flipped(name: str, where: float) -> Callable[[Path], None]:
    """Flip one bit of a file, at this fraction of its length."""

    def tamper(release: Path) -> None:
        content = bytearray((release / name).read_bytes())
        content[int(len(content) * where)] ^= 1
        (release / name).write_bytes(content)

    return tamper


def appended(name: str, more: bytes) -> Callable[[Path], None]:
    """Append to a file."""
    return lambda release: (release / name).write_bytes((release / name).read_bytes() + more)


def replaced(name: str, old: str, new: str) -> Callable[[Path], None]:
    """Replace a text in a file."""

    def tamper(release: Path) -> None:
        text = (release / name).read_text()
        assert old in text
        (release / name).write_text(text.replace(old, new, 1))

    return tamper


def packed(change: Callable[[dict[str, bytes]], None]) -> Callable[[Path], None]:
    """Repack the artifact with changed members and consistent manifests."""

    def tamper(release: Path) -> None:
        (release / ARTIFACT).write_bytes(
            repacked.repacked((release / ARTIFACT).read_bytes(), change)
        )

    return tamper


def both(*tampers: Callable[[Path], None]) -> Callable[[Path], None]:
    def tamper(release: Path) -> None:
        for one in tampers:
            one(release)

    return tamper


def with_sums_to_match(release: Path) -> None:
    """Recreate the checksums, but keep their signature."""
    release_signature.write_sums(
        [release / name for name in (ARTIFACT, BOM, PROVENANCE, MANIFEST_SIGNATURE)]
    )


def signed_by_a_stranger(release: Path) -> None:
    release_signature.sign_manifest(release / ARTIFACT, STRANGER)
    release_signature.write_sums(
        [release / name for name in (ARTIFACT, BOM, PROVENANCE, MANIFEST_SIGNATURE)], STRANGER
    )


def without_line_and_file(release: Path) -> None:
    (release / PROVENANCE).unlink()
    lines = (release / SUMS).read_text().splitlines(keepends=True)
    (release / SUMS).write_text("".join(line for line in lines if PROVENANCE not in line))


MODULE = "plugins/modules/compute_virtual_machine.py"
PLACES = {
    "a bit at the start of the artifact": flipped(ARTIFACT, 0.0),
    "a bit in the middle of the artifact": flipped(ARTIFACT, 0.5),
    "a byte behind the artifact": appended(ARTIFACT, b"\0"),
    "the artifact, cut short": lambda release: os.truncate(release / ARTIFACT, 4096),
    "a module in the artifact": packed(lambda members: members.update({MODULE: b"print()"})),
    "a file more in the artifact": packed(
        lambda members: members.update({"plugins/modules/more.py": b""})
    ),
    "a file less in the artifact": packed(lambda members: members.pop(MODULE)),
    "MANIFEST.json in the artifact": packed(lambda members: repacked.set_version(members, "9.9.9")),
    "the artifact and its checksum": both(flipped(ARTIFACT, 0.5), with_sums_to_match),
    "the artifact, signed by a stranger": both(
        packed(lambda members: members.update({MODULE: b"print()"})), signed_by_a_stranger
    ),
    "no artifact": lambda release: (release / ARTIFACT).unlink(),
    "a bit of the manifest's signature": flipped(MANIFEST_SIGNATURE, 0.5),
    "the manifest's signature, by a stranger": lambda release: release_signature.sign_manifest(
        release / ARTIFACT, STRANGER
    ),
    "a name in the bill of materials": replaced(BOM, "requests", "reqests"),
    "the checksum in the bill of materials": replaced(BOM, '"content": "', '"content": "0'),
    "an empty bill of materials": lambda release: (release / BOM).write_text(""),
    "the commit in the provenance": replaced(PROVENANCE, '"gitCommit": "', '"gitCommit": "0'),
    "the subject of the provenance": replaced(PROVENANCE, ARTIFACT, "other.tar.gz"),
    "no provenance, nor a word of it": without_line_and_file,
    "a checksum": flipped(SUMS, 0.1),
    "a line more in the checksums": appended(SUMS, b"0" * 64 + b"  more\n"),
    "no checksums": lambda release: (release / SUMS).write_text(""),
    "a bit of the checksums' signature": flipped(SIGNATURE, 0.5),
    "no signature of the checksums": lambda release: (release / SIGNATURE).unlink(),
    "another signature for that of the checksums": lambda release: shutil.copy(
        release / MANIFEST_SIGNATURE, release / SIGNATURE
    ),
}


def test_a_release_exactly_as_signed_is_accepted(release):
    assert run(VERIFY, release) == 0


def test_a_signed_release_is_built_twice_to_the_same_bytes(checkout, signed, tmp_path):
    time.sleep(1)  # the date of a signature has whole seconds
    again = release_tool.build(checkout, tmp_path, KEY)
    assert {path.name: path.read_bytes() for path in again} == {
        name: (signed / name).read_bytes() for name in FILES
    }


@pytest.mark.parametrize("place", PLACES)
def test_tampering_with_a_release_is_detected(release, place):
    before = {path.name: path.read_bytes() for path in release.iterdir()}
    PLACES[place](release)
    assert before != {path.name: path.read_bytes() for path in release.iterdir()}
    assert run(VERIFY, release) != 0


@pytest.fixture(scope="module")
def installed(signed, tmp_path_factory) -> Path:
    """The release, installed as the guide does."""
    directory = shutil.copytree(signed, tmp_path_factory.mktemp("installed") / "release")
    assert run(INSTALL, directory) == 0
    return directory


def test_the_installed_release_is_accepted(installed):
    assert run(VERIFY_INSTALLED, installed) == 0


COLLECTION = "collections/ansible_collections/infrastructure/services"
INSTALLED_PLACES = {
    "a module": flipped(f"{COLLECTION}/{MODULE}", 0.5),
    "no module": lambda release: (release / COLLECTION / MODULE).unlink(),
    "a file more": lambda release: (release / COLLECTION / "plugins/modules/more.py").touch(),
    "FILES.json": replaced(f"{COLLECTION}/FILES.json", MODULE, "plugins/modules/other.py"),
    "MANIFEST.json": replaced(f"{COLLECTION}/MANIFEST.json", VERSION, "9.9.9"),
    "a bit of the signature": flipped(MANIFEST_SIGNATURE, 0.5),
    "the signature, by a stranger": signed_by_a_stranger,
}


@pytest.mark.parametrize("place", INSTALLED_PLACES)
def test_tampering_after_installation_is_detected(installed, tmp_path, place):
    copy = shutil.copytree(installed, tmp_path / "copy")
    INSTALLED_PLACES[place](copy)
    assert run(VERIFY_INSTALLED, copy) != 0
