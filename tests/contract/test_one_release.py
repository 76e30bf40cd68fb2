"""Code, documents and changelog state one release, and the changelog names everything that it
brings.
"""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml
from ansible_collections.infrastructure.services.plugins.module_utils._version import VERSION

ROOT = Path(__file__).resolve().parents[2]


def releases() -> dict[str, dict]:
    return yaml.safe_load((ROOT / "changelogs/changelog.yaml").read_text(encoding="utf-8"))[
        "releases"
    ]


# Where the version is stated, and how.
STATED = {
    "galaxy.yml": f"\nversion: {VERSION}\n",
    "README.md": f"infrastructure-services-{VERSION}.tar.gz",
    "CHANGELOG.md": f'\n<a id="v{VERSION.replace(".", "-")}"></a>\n',
    "docs/ci/github.yml": f"infrastructure.services:=={VERSION}\n",
    "docs/ci/gitlab-ci.yml": f"infrastructure.services:=={VERSION}\n",
}


@pytest.mark.parametrize("name", STATED)
def test_each_place_states_the_version(name):
    assert STATED[name] in (ROOT / name).read_text(encoding="utf-8")


KINDS = {
    "modules": ("plugins/modules/[a-z]*.py", lambda changes: changes["modules"]),
    "filters": ("plugins/filter/*.yml", lambda changes: changes["plugins"]["filter"]),
    "inventory": ("plugins/inventory/[a-z]*.py", lambda changes: changes["plugins"]["inventory"]),
    "playbooks": ("playbooks/*.yml", lambda changes: changes["objects"]["playbook"]),
    "roles": ("roles/*", lambda changes: changes["objects"]["role"]),
}


@pytest.mark.parametrize("kind", KINDS)
def test_the_changelog_names_each_of_the(kind):
    """While there are fragments, the next release has not been made, and may bring more."""
    pattern, listed = KINDS[kind]
    named = {new["name"] for changes in releases().values() for new in listed(changes)}
    present = {path.stem for path in ROOT.glob(pattern)}
    assert named <= present
    assert any((ROOT / "changelogs/fragments").glob("*.yml")) or named == present


def test_the_newest_release_of_the_changelog_is_this_one():
    assert max(releases(), key=lambda name: [*map(int, name.split("."))]) == VERSION
