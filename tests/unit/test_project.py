"""What must agree between the files of the repository, and what none of them may contain."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from ansible_collections.infrastructure.services.plugins.doc_fragments.connection import (
    ModuleDocFragment,
)
from ansible_collections.infrastructure.services.plugins.module_utils._http.transport import (
    REQUIRED,
)
from support import NOT_EMULATED

ROOT = Path(__file__).resolve().parents[2]
MODULES = sorted(path.stem for path in (ROOT / "plugins/modules").glob("[a-z]*.py"))
OWN_FILE = re.compile(
    r"https://(?:github\.com/ansible-collections/infrastructure\.services/(?:blob|tree)"
    r"|raw\.githubusercontent\.com/ansible-collections/infrastructure\.services)/main/(.+)"
)
README = (ROOT / "README.md").read_text(encoding="utf-8")
# Assembled from parts, so that this file does not match itself.
FORBIDDEN = {
    "a path of somebody's machine": re.compile(
        "/" + r"(?:root|work|home/\w+)/|\.py" + r"env/(?:versions|shims)"
    ),
    "the host of a package registry": re.compile(
        "py" + r"pi\.org|pythonhosted\." + r"org|registry\.npm" + "js"
    ),
}


def load(path: str):
    """Read a YAML file of the repository."""
    return yaml.safe_load((ROOT / path).read_text(encoding="utf-8"))


def text_files() -> dict[str, str]:
    """The content of each tracked or untracked, unignored text file, by its name."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        check=True,
        stdout=subprocess.PIPE,
        text=True,
    ).stdout.split("\0")
    paths = [ROOT / name for name in listed if name]
    return {
        str(path.relative_to(ROOT)): path.read_text(encoding="utf-8")
        for path in paths
        if path.is_file() and path.suffix not in {".png", ".svg", ".ico"}
    }


@pytest.mark.parametrize("module", MODULES)
def test_a_module_is_everywhere_it_belongs(module):
    assert module in load("meta/runtime.yml")["action_groups"]["all"]
    assert f"`infrastructure.services.{module}`" in README
    scenario = ROOT / "extensions/molecule" / module
    assert module in NOT_EMULATED or {"molecule.yml", "converge.yml", "verify.yml"} <= {
        path.name for path in scenario.glob("*")
    }


def test_the_action_group_names_modules_only():
    assert load("meta/runtime.yml")["action_groups"]["all"] == MODULES


def test_readme_links_to_files_from_any_site():
    """Galaxy shows the page without the files beside it."""
    links = re.findall(r"\]\(([^)#]+)", README)
    assert [link for link in links if not link.startswith("https://")] == []
    files = [found[1] for link in links if (found := OWN_FILE.match(link))]
    assert len(files) > 10
    assert [file for file in files if not (ROOT / file).exists()] == []


@pytest.mark.parametrize("what", FORBIDDEN)
def test_no_file_holds(what):
    assert [name for name, text in text_files().items() if FORBIDDEN[what].search(text)] == []


def test_the_declared_requirements_match_what_the_code_checks():
    lines = (ROOT / "requirements.txt").read_text(encoding="utf-8").splitlines()
    assert [line for line in lines if not line.startswith("#")] == [REQUIRED]
    assert load("meta/execution-environment.yml")["dependencies"]["python"] == "requirements.txt"
    assert repr(REQUIRED) in (ROOT / "docs/docsite/rst/home.rst").read_text(encoding="utf-8")
    (needed,) = [
        line
        for line in yaml.safe_load(ModuleDocFragment.DOCUMENTATION)["requirements"]
        if "requests" in line
    ]
    assert " ".join(re.split("([<>=]+)", REQUIRED)) in needed
    assert "requests.readthedocs.io/) 2.31 or later |" in README
    assert "<" not in REQUIRED  # Automation Hub allows no upper bound


def test_an_old_python_is_named_wherever_our_code_is_imported_first():
    """Only the collection sees the old version: what Ansible and the standard library import has
    been imported.
    """
    entries = [
        path.relative_to(ROOT).with_suffix("").as_posix().replace("/", ".")
        for part in ("modules", "action", "inventory")
        for path in (ROOT / "plugins" / part).glob("*.py")
    ]
    script = (
        "import sys, importlib, ansible.module_utils.basic, ansible.plugins.action, ansible.plugins.inventory\n"
        "sys.version_info = (3, 8, 18)\n"
        "for entry in sys.argv[1:]:\n"
        "    for name in [name for name in sys.modules if name.startswith('ansible_collections.')]:\n"
        "        del sys.modules[name]\n"
        "    try:\n"
        "        importlib.import_module(f'ansible_collections.infrastructure.services.{entry}')\n"
        "    except ImportError as error:\n"
        "        print(error)\n"
    )
    path = os.pathsep.join(filter(None, sys.path))
    done = subprocess.run(
        [sys.executable, "-c", script, *entries],
        env={**os.environ, "PYTHONPATH": path},
        check=True,
        stdout=subprocess.PIPE,
        text=True,
        timeout=60,
    )
    told = (
        "infrastructure.services needs Python 3.9 or later, here and where a module runs; this is Python 3.8"
        f" ({sys.executable}). Set ansible_python_interpreter, or install ansible-core with a later Python"
    )
    assert len(entries) > 10
    assert done.stdout.splitlines() == [told] * len(entries)
