# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The assets in memory, and the effect of the operations on them; no HTTP."""

from __future__ import annotations

import uuid
from datetime import datetime, timezone
from typing import Any, Callable, Dict, Iterable

from .openapi import Operation

ROLES = "application_roles"
Asset = Dict[str, Any]  # a JSON object with the fields of openapi.yaml


class ConflictError(Exception):
    """The name is taken, and names have to be unique."""


class UnknownError(Exception):
    """There is no asset with this id."""


class Store:
    """The assets of each collection by id; an asset is never changed in place."""

    def __init__(
        self, envelope: tuple[str, ...], clock: Callable[[], float], collections: Iterable[str]
    ) -> None:
        self.assets: dict[str, dict[str, Asset]] = {collection: {} for collection in collections}
        self._envelope = envelope
        self._clock = clock

    def create(self, operation: Operation, body: Asset, unique: bool) -> Asset:
        """Store a new asset; raise ConflictError when names are `unique` and this one is taken."""
        assets = self.assets[operation.collection]
        if unique and any(asset.get("name") == body.get("name") for asset in assets.values()):
            raise ConflictError
        asset_id = str(uuid.uuid4())
        own = set(self._envelope) - {"name", "attributes"}  # only the service decides these
        given = {key: item for key, item in body.items() if key not in own}
        asset = {"id": asset_id, "service": operation.service, **given}
        generated = self._generated(body, len(assets) + 1)
        filled = {key: item for key, item in generated.items() if key in operation.attributes}
        asset["attributes"] = {**filled, **body.get("attributes", {})}
        assets[asset_id] = asset
        return asset

    def update(self, collection: str, asset_id: str, body: Asset, mode: str, create: bool) -> Asset:
        """Merge the body into the asset, or replace it; raise UnknownError if there is none.

        `mode`: `merge` or `replace`; `create`: create the asset if there is none.
        """
        assets = self.assets[collection]
        if asset_id not in assets and not create:
            raise UnknownError
        before = assets.get(asset_id, {}) if mode == "merge" else {}
        assets[asset_id] = {**merged(before, body), "id": asset_id}
        return assets[asset_id]

    def seed(self, asset_id: str, asset: Asset) -> Asset:
        """Store a role as if it had always existed."""
        self.assets[ROLES][asset_id] = {"service": "cassandra", **asset, "id": asset_id}
        return self.assets[ROLES][asset_id]

    def snapshot(self) -> dict[str, list[Asset]]:
        """Return all assets, oldest first."""
        return {kind: list(assets.values()) for kind, assets in self.assets.items()}

    def _generated(self, body: Asset, number: int) -> Asset:
        """Return the attributes that the service fills in; each asset gets the next address."""
        now = datetime.fromtimestamp(int(self._clock()), tz=timezone.utc)
        named = {"name": body["name"]} if "name" in body else {}
        address = ".".join(str(part) for part in (10, *number.to_bytes(3, "big")))
        return {
            **named,
            "creation_date": now.strftime("%Y-%m-%dT%H:%M:%SZ"),
            "ip": address,
            "status": "created",
        }


def merged(below: Asset, above: Asset) -> Asset:
    """Return `above` merged into `below`: objects by member, everything else replaced."""
    result = dict(below)
    for key, item in above.items():
        old = result.get(key)
        result[key] = (
            merged(old, item) if isinstance(old, dict) and isinstance(item, dict) else item
        )
    return result


def completed(asset: Asset, envelope: tuple[str, ...], attributes: tuple[str, ...]) -> Asset:
    """Return the asset with null for every documented field that has no value."""
    whole = {**dict.fromkeys(envelope), **asset}
    whole["attributes"] = {**dict.fromkeys(attributes), **(whole["attributes"] or {})}
    return whole
