# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Code, documents and changelog state one release, and the changelog names everything that it
brings.
"""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest
import yaml
from ansible_collections.infrastructure.services.plugins.module_utils._version import VERSION
from tools import release

ROOT = Path(__file__).resolve().parents[2]
ADDED = re.compile(r"^\s*version_added: *['\"]?([^\s'\"]+)", re.MULTILINE)
NEW = re.compile(
    r"(?:(?:new|added|since|from) in|as of|up to) (?:version |release |v)?(\d+\.\d+\.\d+)",
    re.IGNORECASE,
)
ARTIFACT = re.compile(r"infrastructure-services-([0-9.]+)\.")
MADE_BY_A_RELEASE = {"changelogs/changelog.yaml", "CHANGELOG.md"}


def texts(*suffixes: str) -> dict[str, str]:
    """The content of each tracked file with one of these suffixes, by its name."""
    names = subprocess.run(
        ["git", "ls-files"], cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True
    ).stdout.split()
    return {
        name: (ROOT / name).read_text(encoding="utf-8")
        for name in names
        if name.endswith(suffixes) and not name.startswith("tests/") and (ROOT / name).exists()
    }


def releases() -> dict[str, dict]:
    return yaml.safe_load((ROOT / "changelogs/changelog.yaml").read_text(encoding="utf-8"))[
        "releases"
    ]


@pytest.mark.parametrize("name", release.STATED)
def test_each_place_states_the_version(name):
    assert release.states(ROOT, name, VERSION)


def test_the_documentation_of_each_plugin_and_role_names_a_release():
    added = {name: ADDED.findall(text) for name, text in texts(".py", ".yml").items()}
    documented = {
        name
        for name in added
        if re.fullmatch(
            r"plugins/(modules|inventory)/[a-z]\w*\.py|roles/\w+/meta/argument_specs\.yml", name
        )
    }
    assert len(documented) > 8
    assert {name for name in documented if not added[name]} == set()
    assert {name: found for name, found in added.items() if set(found) - releases().keys()} == {}


def test_no_page_speaks_of_another_release():
    pages = texts(".md", ".rst").items()
    named = {
        name: {*NEW.findall(text), *ARTIFACT.findall(text)}
        for name, text in pages
        if name not in MADE_BY_A_RELEASE
    }
    assert set().union(*named.values()) == {VERSION}, named


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
