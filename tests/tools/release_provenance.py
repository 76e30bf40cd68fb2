# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Where a release comes from: an in-toto statement (version 1) with SLSA provenance (version 1)."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path


def statement(galaxy: dict, artifact: Path, bom: Path, commit: str) -> str:
    """Return the statement as JSON; the same artifact and commit always give the same statement.

    `galaxy`: the contents of galaxy.yml; `bom`: the bill of materials from the same build;
    `commit`: its git hash.
    """
    repository = galaxy["repository"]
    return (
        json.dumps(
            {
                "_type": "https://in-toto.io/Statement/v1",
                "subject": [_described(artifact)],
                "predicateType": "https://slsa.dev/provenance/v1",
                "predicate": {
                    "buildDefinition": {
                        "buildType": f"{repository}/blob/{commit}/Makefile#release",
                        "externalParameters": {"version": galaxy["version"]},
                        "resolvedDependencies": [
                            {"uri": f"git+{repository}@{commit}", "digest": {"gitCommit": commit}}
                        ],
                    },
                    "runDetails": {
                        "builder": {"id": f"{repository}/blob/{commit}/tests/tools/release.py"},
                        "byproducts": [_described(bom)],
                    },
                },
            },
            indent=2,
        )
        + "\n"
    )


def _described(file: Path) -> dict:
    return {"name": file.name, "digest": {"sha256": hashlib.sha256(file.read_bytes()).hexdigest()}}
