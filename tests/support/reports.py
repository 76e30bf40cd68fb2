"""Holds the reports that tests have the program write against docs/report.schema.json."""

from __future__ import annotations

import json
from pathlib import Path

from jsonschema import Draft202012Validator

from .checkout import CHECKOUT

_SCHEMA = Draft202012Validator(
    json.loads((CHECKOUT / "docs/report.schema.json").read_text(encoding="utf-8"))
)
_HEAD = '{\n "format": "infrastructure.services report",\n'


def hold(text: str) -> None:
    """Assert that a text is as the schema says if it is a report."""
    if text.startswith(_HEAD):
        _SCHEMA.validate(json.loads(text))


def hold_all(directory: Path) -> None:
    """Do so for the files of a directory."""
    for file in directory.glob("*.json"):
        if file.is_file():
            hold(file.read_text(encoding="utf-8"))
