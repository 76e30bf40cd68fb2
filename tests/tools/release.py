# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Check that the checkout is the release it claims to be, and build it: `make release VERSION=1.2.3
KEY=...`.

The artifact, in .build/release, holds what is committed, and is byte-for-byte the same wherever and
whenever it is built. With it come a bill of materials (CycloneDX), provenance (SLSA) and the
checksums of all files. KEY names the gpg key that signs them; without it the build can only be
compared with a signed one. Nothing is tagged, pushed or published.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import yaml
from tools import release_artifact, release_bom, release_provenance, release_signature

# Where the version is stated; each pattern has to match once.
STATED = {
    "galaxy.yml": r"^version: {version}$",
    "plugins/module_utils/_version.py": r'^VERSION = "{version}"$',
    "plugins/doc_fragments/connection.py": r"^    default: infrastructure\.services/{version}$",
    "README.md": r"infrastructure-services-{version}\.tar\.gz",
    "changelogs/changelog.yaml": r"^  {version}:$",
    "CHANGELOG.md": r'^<a id="v{anchor}"></a>$',
    "docs/ci/github.yml": r"infrastructure\.services:=={version}$",
    "docs/ci/gitlab-ci.yml": r"infrastructure\.services:=={version}$",
}
GALAXY = str(Path(sys.executable).parent / "ansible-galaxy")
SEMANTIC = re.compile(r"(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)(-[0-9A-Za-z.-]+)?")


def problems(root: Path, version: str) -> Iterator[str]:
    """Yield each reason why the checkout is not the release `version`."""
    if not SEMANTIC.fullmatch(version):
        yield f"{version or 'no version'}: say make release VERSION=MAJOR.MINOR.PATCH (semver.org)"
        return
    if dirty := _git(root, "status", "--porcelain").splitlines():
        yield f"the tree is not clean: {', '.join(line[3:] for line in dirty)}"
    if fragments := sorted(path.name for path in (root / "changelogs/fragments").glob("*.y*ml")):
        yield (
            "fragments are not part of a release yet, run antsibull-changelog release"
            f" and tests/tools/changelog: {', '.join(fragments)}"
        )
    yield from (
        f"{name} does not say {version}" for name in STATED if not states(root, name, version)
    )


def states(root: Path, name: str, version: str) -> bool:
    """Return whether the file `name`, one of STATED, states the version."""
    stated = STATED[name].format(
        version=re.escape(version), anchor=re.escape(version.replace(".", "-"))
    )
    return bool(re.search(stated, (root / name).read_text(encoding="utf-8"), re.MULTILINE))


def build(root: Path, output: Path, key: str = "") -> list[Path]:
    """Build the release from the last commit, sign it if there is a key, and return the paths."""
    moment = int(_git(root, "log", "-1", "--format=%ct"))
    with tempfile.TemporaryDirectory() as scratch:
        source = Path(scratch, "source")
        source.mkdir()
        archive = subprocess.run(
            ["git", "archive", "HEAD"], cwd=root, check=True, stdout=subprocess.PIPE
        ).stdout
        subprocess.run(["tar", "--extract", "--directory", str(source)], input=archive, check=True)
        subprocess.run(
            [GALAXY, "collection", "build", "--output-path", scratch, str(source)],
            check=True,
            stdout=subprocess.DEVNULL,
        )
        (unsorted,) = Path(scratch).glob("*.tar.gz")
        artifact = output / unsorted.name
        artifact.write_bytes(release_artifact.normalised(unsorted.read_bytes(), moment))
        galaxy = yaml.safe_load((source / "galaxy.yml").read_text(encoding="utf-8"))
        needs = (source / "requirements.txt").read_text(encoding="utf-8")
        core = yaml.safe_load((source / "meta/runtime.yml").read_text(encoding="utf-8"))[
            "requires_ansible"
        ]
    bom = output / f"{artifact.name.removesuffix('.tar.gz')}.cdx.json"
    bom.write_text(
        release_bom.bill(galaxy, artifact, [*needs.splitlines(), f"ansible-core{core}"], moment),
        encoding="utf-8",
    )
    commit = _git(root, "rev-parse", "HEAD").strip()
    provenance = output / f"{artifact.name.removesuffix('.tar.gz')}.provenance.json"
    provenance.write_text(
        release_provenance.statement(galaxy, artifact, bom, commit), encoding="utf-8"
    )
    signatures = [release_signature.sign_manifest(artifact, key, moment)] if key else []
    built = [artifact, bom, provenance, *signatures]
    return [*built, *release_signature.write_sums(built, key, moment)]


def _git(root: Path, *arguments: str) -> str:
    return subprocess.run(
        ["git", *arguments], cwd=root, check=True, stdout=subprocess.PIPE, text=True
    ).stdout


def main(version: str, key: str = "") -> int:
    """Check, build, and print what is left to the person who releases."""
    root = Path.cwd()
    if found := list(problems(root, version)):
        print("\n".join(f"not a release: {problem}" for problem in found), file=sys.stderr)
        return 1
    output = root / ".build/release"
    output.mkdir(parents=True, exist_ok=True)
    for old in output.glob("*"):
        old.unlink()
    for path in build(root, output, key):
        print(path.relative_to(root))
    if key:
        print(
            f"Left to you: git tag -s {version}, git push origin {version}, "
            f"ansible-galaxy collection publish .build/release/*.tar.gz, and the other files beside the tag"
        )
    else:
        print(
            "Not signed: compare SHA256SUMS with a signed build, or name a key with KEY=... to make one"
        )
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:3]))
