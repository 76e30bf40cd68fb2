"""Build the release that the last commit states, in .build/release: `make release VERSION=1.2.3
KEY=...`.

The collection and its bill of materials (CycloneDX) are the same bytes wherever and whenever they
are built. KEY names the gpg key that signs them; without it the build can only be compared with a
signed one. Nothing is tagged, pushed or published.
"""

from __future__ import annotations

import gzip
import hashlib
import json
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
import uuid
from datetime import datetime, timezone
from pathlib import Path

import yaml
from cyclonedx.contrib.license.factories import LicenseFactory
from cyclonedx.model import HashAlgorithm, HashType, Property
from cyclonedx.model.bom import Bom
from cyclonedx.model.component import Component, ComponentType
from cyclonedx.output.json import JsonV1Dot6
from packageurl import PackageURL
from packaging.requirements import Requirement

OUTPUT = Path(".build/release")
MANIFESTS = ("FILES.json", "MANIFEST.json")


def run(*line: object, **how: object) -> str:
    """Run a command and return what it prints."""
    words = [str(word) for word in line]
    return subprocess.run(words, check=True, stdout=subprocess.PIPE, text=True, **how).stdout


def check(version: str) -> None:
    """Exit with the reason why the checkout is not the release `version`."""
    if f"\nversion: {version}\n" not in Path("galaxy.yml").read_text(encoding="utf-8"):
        sys.exit(f"not a release: galaxy.yml does not say {version or 'VERSION=...'}")
    if dirty := run("git", "status", "--porcelain"):
        sys.exit(f"not a release: the tree is not clean:\n{dirty}")
    if any(Path("changelogs/fragments").glob("*.y*ml")):
        sys.exit("not a release: run antsibull-changelog release first")


def build(scratch: Path, moment: int) -> Path:
    """Build the collection of the last commit with files sorted, of nobody, dated `moment` (seconds
    since 1970): `ansible-galaxy` takes them in the order of directories and dates them now.
    """
    source, members = scratch / "source", scratch / "members"
    source.mkdir()
    run("git", "archive", "--output", scratch / "source.tar", "HEAD")
    run("tar", "--extract", "--directory", source, "--file", scratch / "source.tar")
    galaxy = Path(sys.executable).with_name("ansible-galaxy")
    run(galaxy, "collection", "build", "--output-path", scratch, source)
    (built,) = scratch.glob("*.tar.gz")
    members.mkdir()
    run("tar", "--extract", "--directory", members, "--file", built)
    files, manifest = (json.loads((members / name).read_bytes()) for name in MANIFESTS)
    files["files"].sort(key=lambda entry: entry["name"])
    listed = json.dumps(files, indent=1).encode()
    manifest["file_manifest_file"]["chksum_sha256"] = hashlib.sha256(listed).hexdigest()
    (members / "FILES.json").write_bytes(listed)
    (members / "MANIFEST.json").write_text(json.dumps(manifest, indent=1), encoding="utf-8")

    def of_nobody(member: tarfile.TarInfo) -> tarfile.TarInfo:
        is_run = member.isdir() or member.mode & 0o100
        return member.replace(
            mtime=moment,
            mode=0o755 if is_run else 0o644,
            uid=0,
            gid=0,
            uname="",
            gname="",
            deep=False,
        )

    with (
        gzip.GzipFile(OUTPUT / built.name, "wb", mtime=moment) as packed,
        tarfile.open(fileobj=packed, mode="w") as tar,
    ):
        for name in sorted(os.listdir(members)):
            tar.add(members / name, name, filter=of_nobody)
    return OUTPUT / built.name


def write_bill(artifact: Path, moment: int) -> Path:
    """Write the bill of materials: the artifact, and what it needs to run, in ranges of versions."""
    galaxy, runtime = (
        yaml.safe_load(Path(name).read_text(encoding="utf-8"))
        for name in ("galaxy.yml", "meta/runtime.yml")
    )
    lines = Path("requirements.txt").read_text(encoding="utf-8").splitlines()
    needs = [Requirement(line) for line in lines if line and not line.startswith("#")]
    needs.append(Requirement(f"ansible-core{runtime['requires_ansible']}"))
    digest = hashlib.sha256(artifact.read_bytes()).hexdigest()
    bom = Bom(serial_number=uuid.uuid5(uuid.NAMESPACE_URL, f"sha256:{digest}"))
    bom.metadata.timestamp = datetime.fromtimestamp(moment, timezone.utc)
    bom.metadata.component = Component(
        type=ComponentType.LIBRARY,
        group=galaxy["namespace"],
        name=galaxy["name"],
        version=galaxy["version"],
        licenses=[LicenseFactory().make_from_string(galaxy["license"][0])],
        hashes=[HashType(alg=HashAlgorithm.SHA_256, content=digest)],
        bom_ref=artifact.name,
    )
    needed = [
        Component(
            type=ComponentType.LIBRARY,
            name=need.name,
            bom_ref=need.name,
            purl=PackageURL("pypi", name=need.name),
            properties=[Property(name="range", value=str(need.specifier))],
        )
        for need in needs
    ]
    bom.components.update(needed)
    bom.register_dependency(bom.metadata.component, needed)
    bill = OUTPUT / artifact.name.replace(".tar.gz", ".cdx.json")
    bill.write_text(JsonV1Dot6(bom).output_as_string(indent=2) + "\n", encoding="utf-8")
    return bill


def main(version: str, key: str = "") -> None:
    """Check, build, sign, and say what is left to the person who releases."""
    check(version)
    shutil.rmtree(OUTPUT, ignore_errors=True)
    OUTPUT.mkdir(parents=True)
    sign = ("gpg", "--batch", "--armor", "--local-user", key, "--detach-sign")
    moment = int(run("git", "log", "-1", "--format=%ct"))
    with tempfile.TemporaryDirectory() as scratch:
        artifact = build(Path(scratch), moment)
        names = [artifact.name, write_bill(artifact, moment).name]
        if key:
            run(*sign, "--output", OUTPUT / "MANIFEST.json.asc", f"{scratch}/members/MANIFEST.json")
            names.append("MANIFEST.json.asc")
    (OUTPUT / "SHA256SUMS").write_text(run("sha256sum", *names, cwd=OUTPUT), encoding="utf-8")
    if not key:
        print(f"{OUTPUT}: compare SHA256SUMS with a signed build, or name a key with KEY=...")
        return
    run(*sign, OUTPUT / "SHA256SUMS")
    print(
        f"{OUTPUT}: left to you: git tag -s {version}, git push origin {version}, ansible-galaxy"
        " collection publish the .tar.gz, and the other files beside the tag"
    )


if __name__ == "__main__":
    main(*sys.argv[1:3])
