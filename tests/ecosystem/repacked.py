# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Repacks an artifact with changed members, as an attacker would who wants the change to go
unnoticed.
"""

from __future__ import annotations

import hashlib
import io
import json
import tarfile
from collections.abc import Callable

MANIFEST, FILES = "MANIFEST.json", "FILES.json"


def repacked(artifact: bytes, change: Callable[[dict[str, bytes]], None]) -> bytes:
    """Return the artifact with changed members (content by name), and both manifests consistent
    with them.
    """
    with tarfile.open(fileobj=io.BytesIO(artifact)) as tar:
        members = {
            member.name: tar.extractfile(member).read()
            for member in tar.getmembers()
            if member.isfile()
        }
    change(members)
    members[FILES] = _listing(members)
    described = json.loads(members[MANIFEST])
    described["file_manifest_file"]["chksum_sha256"] = hashlib.sha256(members[FILES]).hexdigest()
    members[MANIFEST] = json.dumps(described).encode()
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as tar:
        for name, content in members.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(content)
            tar.addfile(entry, io.BytesIO(content))
    return packed.getvalue()


def set_version(members: dict[str, bytes], version: str) -> None:
    """Make the artifact claim another version."""
    described = json.loads(members[MANIFEST])
    described["collection_info"]["version"] = version
    members[MANIFEST] = json.dumps(described).encode()


def _listing(members: dict[str, bytes]) -> bytes:
    """Return FILES.json for these members, with directories unchanged."""
    listing = json.loads(members[FILES])
    entries = [entry for entry in listing["files"] if entry["ftype"] == "dir"]
    entries += [
        {
            "name": name,
            "ftype": "file",
            "chksum_type": "sha256",
            "format": 1,
            "chksum_sha256": hashlib.sha256(content).hexdigest(),
        }
        for name, content in members.items()
        if name not in (MANIFEST, FILES)
    ]
    return json.dumps({**listing, "files": entries}).encode()
