"""What `ansible-galaxy collection build` packs: the files that users need, and nothing else that
lies in a clone.
"""

from __future__ import annotations

import subprocess
import tarfile

import pytest
from antsibull_fileutils.copier import GitCopier
from support.checkout import CHECKOUT
from support.running import build_artifact

# Tracked, and only for contributors.
LEFT_OUT = (
    *(".ci/", ".config/", ".github/", ".gitignore", "AGENTS.md", "Makefile", "antsibull-nox.toml"),
    *("galaxy.yml", "noxfile.py", "pyproject.toml", "tests/"),
)
# What may lie in a clone and is nobody else's.
PRIVATE = (
    *(".env", ".envrc", "id_rsa", "id_ed25519.pub", "fleet.db", "fleet.db.lock"),
    *("fleet.db-journal", "fleet.csv", "fleet.plan.json", "fleet.yml", "fleet.json"),
    *("credentials.txt", "notes.md", "client.pem", "client.key", "hosts", "ansible.cfg"),
    *("vault_password", ".vault", "group_vars/all.yml", "host_vars/x.yml"),
    *("inventory/hosts.yml", "docs/.env", "docs/.secret.yml", "plugins/id_rsa"),
    *("plugins/modules/token", "playbooks/fleet.db", "playbooks/.env.yml"),
    *("roles/fleet/vault_password", "roles/fleet/.vault.yml", "extensions/emulator/url"),
    *("extensions/emulator/log", "extensions/emulator/x.pem", "meta/hosts.yml"),
    *("changelogs/.plugin-cache.yaml", "changelogs/x.db", "LICENSES/key.pem"),
    *("plugins/modules/__pycache__/x.cpython-311.pyc", ".venv/lib/x.py", ".build/x.md"),
    *(".git/config", "infrastructure-services-1.0.0.tar.gz"),
)


def tracked() -> set[str]:
    listed = subprocess.run(
        ["git", "ls-files"], cwd=CHECKOUT, check=True, stdout=subprocess.PIPE, text=True
    ).stdout
    return {
        name
        for name in listed.splitlines()
        if not name.startswith(LEFT_OUT) and (CHECKOUT / name).exists()
    }


@pytest.fixture(scope="module")
def packed(tmp_path_factory) -> set[str]:
    """Return the files of an artifact that was built in a clone in which people have worked."""
    directory = tmp_path_factory.mktemp("packed")
    clone = directory / "clone"
    GitCopier().copy(CHECKOUT, clone)
    for name in PRIVATE:
        path = clone / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("private", encoding="utf-8")
    with tarfile.open(build_artifact(clone, directory)) as tar:
        members = tar.getmembers()
    assert not [member.name for member in members if member.issym() or member.islnk()]
    return {member.name for member in members if member.isfile()} - {"MANIFEST.json", "FILES.json"}


def test_nothing_private_is_packed(packed):
    assert [name for name in PRIVATE if name in packed] == []


def test_what_users_need_is_packed_and_nothing_else(packed):
    assert (sorted(tracked() - packed), sorted(packed - tracked())) == ([], [])


def test_both_texts_of_the_license_are_the_same():
    assert not (CHECKOUT / "LICENSES/GPL-3.0-or-later.txt").is_symlink()
    assert (CHECKOUT / "LICENSES/GPL-3.0-or-later.txt").read_bytes() == (
        CHECKOUT / "LICENSE"
    ).read_bytes()
