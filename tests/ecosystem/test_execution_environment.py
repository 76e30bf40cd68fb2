"""ansible-builder finds what the collection needs. tests/ledger/test_fleet.py has ansible-runner run it."""

from __future__ import annotations

import subprocess
from pathlib import Path

import yaml
from support.running import BIN

DEFINITION = Path(__file__).resolve().parents[2] / "docs/awx/execution-environment.yml"


def builder(*arguments: str) -> str:
    done = subprocess.run(
        [str(BIN / "ansible-builder"), *arguments], check=True, stdout=subprocess.PIPE, text=True
    )
    return done.stdout


def test_the_definition_makes_a_build_context(tmp_path):
    builder(
        "create",
        "--file",
        str(DEFINITION),
        "--context",
        str(tmp_path),
        "--output-filename",
        "Containerfile",
    )
    wanted = yaml.safe_load((tmp_path / "_build/requirements.yml").read_text(encoding="utf-8"))
    assert wanted == {"collections": ["infrastructure.services"]}
    assert "ansible-galaxy collection install" in (tmp_path / "Containerfile").read_text(
        encoding="utf-8"
    )


def test_the_collection_declares_what_an_execution_environment_needs(collections, tmp_path):
    builder("introspect", str(collections), "--write-pip", str(tmp_path / "pip"))
    lines = (tmp_path / "pip").read_text(encoding="utf-8").splitlines()
    assert [line.split("#")[0].strip() for line in lines] == ["requests>=2.31"]
