# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Signatures and checksums of a release.

`MANIFEST.json.asc` is the detached signature that ansible-galaxy verifies. `SHA256SUMS` lists every
other file, including that one, and `SHA256SUMS.asc` signs the list: one signature covers the whole
release. A signature is dated by the commit (or by the key, where that is newer), so one commit and
one key always give the same bytes.
"""

from __future__ import annotations

import hashlib
import subprocess
import tarfile
from pathlib import Path

MANIFEST, SUMS = "MANIFEST.json", "SHA256SUMS"


def sign_manifest(artifact: Path, key: str, moment: int = 0) -> Path:
    """Sign the artifact's MANIFEST.json with `key` (a gpg key name), next to the artifact; return
    the signature.

    `moment`: the date of the signature, in seconds since 1970.
    """
    with tarfile.open(artifact) as tar:
        manifest = tar.extractfile(MANIFEST).read()
    signature = artifact.parent / f"{MANIFEST}.asc"
    signature.write_bytes(_signature(manifest, key, moment))
    return signature


def write_sums(files: list[Path], key: str = "", moment: int = 0) -> list[Path]:
    """Write the checksums of the files next to them, with a signature if there is a key; return
    what was written.
    """
    sums = files[0].parent / SUMS
    sums.write_text(
        "".join(
            f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.name}\n" for path in files
        ),
        encoding="utf-8",
    )
    if not key:
        return [sums]
    signature = sums.parent / f"{SUMS}.asc"
    signature.write_bytes(_signature(sums.read_bytes(), key, moment))
    return [sums, signature]


def _signature(content: bytes, key: str, moment: int) -> bytes:
    keys = _gpg(b"", "--with-colons", "--list-keys", key).decode().splitlines()
    created = [
        int(line.split(":")[5]) for line in keys if line.startswith(("pub:", "sub:"))
    ]  # doc/DETAILS of GnuPG
    return _gpg(
        content,
        "--faked-system-time",
        f"{max(moment, *created)}!",
        "--armor",
        "--local-user",
        key,
        "--detach-sign",
        "--output",
        "-",
    )


def _gpg(content: bytes, *arguments: str) -> bytes:
    return subprocess.run(
        ["gpg", "--batch", *arguments], input=content, check=True, stdout=subprocess.PIPE
    ).stdout
