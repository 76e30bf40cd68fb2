"""An operation is added by the steps of CONTRIBUTING.md: operation.patch takes them in a copy."""

from __future__ import annotations

import os
import re
import subprocess
import sys

import pytest
from antsibull_fileutils.copier import GitCopier
from support.checkout import CHECKOUT

PATCH = CHECKOUT / "tests/contract/operation.patch"
MOST_FILES = 12
# What fails if a step is missing, and what runs the new module.
TESTS = (
    "tests/contract/test_layers.py",
    "tests/contract/test_one_release.py",
    "tests/contract/test_openapi_document.py",
    "tests/contract/test_specs.py",
    "tests/integration/test_deletion.py",
    "tests/unit/test_project.py",
)


@pytest.mark.matrix
def test_the_patch_adds_an_operation_that_works(tmp_path):
    tree = tmp_path / "ansible_collections/infrastructure/services"
    tree.parent.mkdir(parents=True)
    GitCopier().copy(CHECKOUT, tree)
    subprocess.run(["git", "init", "--quiet", tree], check=True)
    subprocess.run(["git", "apply", PATCH], cwd=tree, check=True)
    changed = re.findall("^diff --git ", PATCH.read_text(encoding="utf-8"), re.MULTILINE)
    assert len(changed) <= MOST_FILES
    kept = {name: it for name, it in os.environ.items() if not name.startswith("PYTEST_")}
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", *TESTS],
        cwd=tree,
        env={**kept, "TEST_COLLECTIONS": str(tmp_path)},
        stdout=subprocess.PIPE,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout
    assert "passed" in done.stdout
