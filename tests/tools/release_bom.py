# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The bill of materials of a release, in CycloneDX: the artifact, and what it needs to run."""

from __future__ import annotations

import hashlib
import uuid
from collections.abc import Iterable
from datetime import datetime, timezone
from pathlib import Path

from cyclonedx.contrib.license.factories import LicenseFactory
from cyclonedx.model import (
    ExternalReference,
    ExternalReferenceType,
    HashAlgorithm,
    HashType,
    Property,
    XsUri,
)
from cyclonedx.model.bom import Bom
from cyclonedx.model.component import Component, ComponentType
from cyclonedx.output.json import JsonV1Dot6
from packageurl import PackageURL
from packaging.requirements import Requirement


def bill(galaxy: dict, artifact: Path, needs: Iterable[str], moment: int) -> str:
    """Return the bill as JSON; the same artifact always gives the same bill.

    `galaxy`: the contents of galaxy.yml; `needs`: lines of a requirements file; `moment`: seconds
    since 1970.
    """
    digest = hashlib.sha256(artifact.read_bytes()).hexdigest()
    bom = Bom(serial_number=uuid.uuid5(uuid.NAMESPACE_URL, f"sha256:{digest}"))
    bom.metadata.timestamp = datetime.fromtimestamp(moment, timezone.utc)
    bom.metadata.component = Component(
        type=ComponentType.LIBRARY,
        group=galaxy["namespace"],
        name=galaxy["name"],
        version=galaxy["version"],
        description=galaxy["description"],
        licenses=[LicenseFactory().make_from_string(galaxy["license"][0])],
        hashes=[HashType(alg=HashAlgorithm.SHA_256, content=digest)],
        bom_ref=artifact.name,
        external_references=[
            ExternalReference(type=ExternalReferenceType.VCS, url=XsUri(galaxy["repository"]))
        ],
    )
    components = [_needed(Requirement(line)) for line in needs if line and not line.startswith("#")]
    for component in components:
        bom.components.add(component)
    bom.register_dependency(bom.metadata.component, components)
    return JsonV1Dot6(bom).output_as_string(indent=2) + "\n"


def _needed(requirement: Requirement) -> Component:
    """Return the component that a requirement names, with a version range, since users choose the
    version.
    """
    return Component(
        type=ComponentType.LIBRARY,
        name=requirement.name,
        bom_ref=requirement.name,
        purl=PackageURL("pypi", name=requirement.name),
        properties=[Property(name="range", value=str(requirement.specifier))],
    )
