# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Make the artifact of a collection reproducible: the same files give the same bytes.

`ansible-galaxy collection build` takes files in directory order and records the build time.
"""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import tarfile

MANIFEST, FILES = "MANIFEST.json", "FILES.json"


def normalised(artifact: bytes, moment: int) -> bytes:
    """Return the artifact with its members sorted, without owners, and dated `moment` (seconds
    since 1970).
    """
    with tarfile.open(fileobj=io.BytesIO(artifact)) as tar:
        members = {member.name: (member, _content(tar, member)) for member in tar.getmembers()}
    for name, content in _sorted_manifests(members[MANIFEST][1], members[FILES][1]).items():
        members[name] = (members[name][0], content)
    names = [MANIFEST, FILES, *sorted(members.keys() - {MANIFEST, FILES})]
    plain = io.BytesIO()
    with tarfile.open(fileobj=plain, mode="w", format=tarfile.PAX_FORMAT) as tar:
        for name in names:
            member, content = members[name]
            tar.addfile(_impersonal(member, len(content), moment), io.BytesIO(content))
    return gzip.compress(plain.getvalue(), mtime=moment)


def _content(tar: tarfile.TarFile, member: tarfile.TarInfo) -> bytes:
    file = tar.extractfile(member) if member.isfile() else None
    return file.read() if file else b""


def _sorted_manifests(manifest: bytes, files: bytes) -> dict[str, bytes]:
    """Return both manifests; the one that lists files is sorted, and the other one has its new
    checksum.
    """
    listing, described = json.loads(files), json.loads(manifest)
    listing["files"].sort(key=lambda entry: entry["name"])
    sorted_files = _dumped(listing)
    described["file_manifest_file"]["chksum_sha256"] = hashlib.sha256(sorted_files).hexdigest()
    return {FILES: sorted_files, MANIFEST: _dumped(described)}


def _dumped(document: dict) -> bytes:
    return json.dumps(document, indent=1).encode()


def _impersonal(member: tarfile.TarInfo, size: int, moment: int) -> tarfile.TarInfo:
    """Return the archive's metadata for a member: of the builder's machine only the executable bit
    is kept.
    """
    plain = tarfile.TarInfo(member.name)
    plain.type, plain.linkname, plain.mtime = member.type, member.linkname, moment
    plain.size = size if member.isfile() else 0
    plain.mode = 0o755 if member.isdir() or member.mode & 0o100 else 0o644
    return plain
