# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The service as a function: a request in, an answer out, without sockets, time and faults."""

from __future__ import annotations

import itertools
import re
import threading
import time
from contextlib import nullcontext
from dataclasses import replace
from typing import Callable, Iterable
from urllib.parse import unquote

from . import openapi
from .conversation import Entry
from .faults import Fault, select
from .load import Load
from .messages import JSON, RefusalError, Request, Response, json_response, read_json
from .scripts import Script, script
from .settings import DEFAULT, Settings
from .store import Asset, ConflictError, Store, UnknownError, completed
from .tokens import Tokens

OAUTH_PATH = "/oauth/token"
_BEARER = re.compile(r"bearer +(\S.*)", re.IGNORECASE)


class Api:
    """The operations, the token endpoint, and everything they remember until `reset`."""

    def __init__(
        self,
        settings: Settings = DEFAULT,
        roles: Iterable[str] = (),
        clock: Callable[[], float] = time.time,
    ) -> None:
        document = openapi.load()
        self._operations = openapi.operations(document)
        schemas = document["components"]["schemas"]
        self._envelope = tuple(schemas["Envelope"]["properties"])
        self._role = openapi.validator(schemas["ApplicationRole"])
        self._start = (settings, tuple(roles))
        self._clock = clock
        self._lock = threading.RLock()
        self._fault_ids = itertools.count(
            1
        )  # never restarted: an old id must not remove a new fault
        self.reset()

    def reset(self) -> None:
        """Forget everything: assets, tokens, the request log, faults, changed settings."""
        with self._lock:
            self.settings, roles = self._start
            self.store = Store(
                self._envelope,
                self._clock,
                [operation.collection for operation in self._operations],
            )
            self.tokens = Tokens(self._clock)
            self.load = Load()
            self.conversation: list[Entry] = []
            self.faults: tuple[Fault, ...] = ()
            self._count = 0
            for role in roles:
                self.store.seed(role, {"name": role, "attributes": {"name": role}})

    def answer(
        self, request: Request, connection: int, close: bool, wait: Callable[[float], object]
    ) -> Script:
        """Record the request, process it unless a fault prevents that, and return the script."""
        operation = self.operation(request)
        with self._lock:
            self._count += 1
            entry = Entry(self._count, self._clock(), connection, operation, request)
            self.conversation.append(entry)
            fault, self.faults = select(self.faults, operation)
        if fault is not None:
            entry.fault = fault.kind
            if fault.kind == "delay" and fault.when == "before":
                wait(fault.seconds)
        response = (
            Response(503)
            if fault is not None and fault.prevents
            else self._work(request, operation, wait)
        )
        result = script(fault, response, close)
        entry.applied, entry.status = response.applied, result.status
        return result

    def _work(
        self, request: Request, operation: str | None, wait: Callable[[float], object]
    ) -> Response:
        """Answer a request after its delay; an operation of the service waits for its turn first."""
        settings = self.settings
        limited = operation is not None and operation != "token"
        try:
            with self.load.turn(settings) if limited else nullcontext():
                wait(settings.delay.get(operation or "any", settings.delay.get("any", 0)))
                return self.handle(request)
        except RefusalError as refusal:
            return Response(refusal.status, refusal.headers)

    def snapshot(self) -> dict[str, list[Asset]]:
        """Return all assets, oldest first."""
        with self._lock:
            return self.store.snapshot()

    def seed(self, asset_id: str, asset: object) -> Asset:
        """Store a role as if it had always existed; raise ValueError if it is none."""
        if not isinstance(asset, dict) or not self._role.is_valid(asset):
            raise ValueError("an asset is an object with the fields of an application role")
        with self._lock:
            return self.store.seed(asset_id, asset)

    def add_fault(self, fault: Fault) -> Fault:
        """Queue this fault behind the others; return it with its id."""
        with self._lock:
            fault = replace(fault, id=next(self._fault_ids))
            self.faults += (fault,)
        return fault

    def remove_faults(self, fault_id: int | None = None) -> bool:
        """Remove the fault with this id, or all of them; return whether there was one."""
        with self._lock:
            left = tuple(fault for fault in self.faults if fault_id not in (None, fault.id))
            some, self.faults = len(left) < len(self.faults), left
        return some

    def operation(self, request: Request) -> str | None:
        """Return the name of the operation that the request is for, None when there is none."""
        if request.path == OAUTH_PATH:
            return "token" if request.method == "POST" else None
        for operation in self._operations:
            if operation.method == request.method and operation.path.fullmatch(request.path):
                return operation.name
        return None

    def handle(self, request: Request) -> Response:
        """Answer one request as the service would; an error answer has an empty body."""
        try:
            if request.path == OAUTH_PATH:
                return self._token(request)
            operation, asset_id = self._route(request)
            self._authorize(request)
            body = self._body(request, operation)
            with self._lock:
                return self._apply(operation, asset_id, body)
        except RefusalError as refusal:
            return Response(refusal.status, refusal.headers)

    def _token(self, request: Request) -> Response:
        if request.method != "POST":
            raise RefusalError(405, ("Allow", "POST"))
        with self._lock:
            return self.tokens.answer(request, self.settings)

    def _route(self, request: Request) -> tuple[openapi.Operation, str]:
        """Return the operation and the id in the path; an encoded slash in it stays part of the id."""
        matches = [
            (operation, operation.path.fullmatch(request.path)) for operation in self._operations
        ]
        there = [(operation, match) for operation, match in matches if match]
        if not there:
            raise RefusalError(404)
        for operation, match in there:
            if operation.method == request.method:
                try:
                    return operation, unquote(match.groupdict().get("id", ""), errors="strict")
                except UnicodeDecodeError:
                    raise RefusalError(404) from None
        raise RefusalError(
            405, ("Allow", ", ".join(operation.method for operation, _match in there))
        )

    def _authorize(self, request: Request) -> None:
        if self.settings.authorization == "off":
            return
        match = _BEARER.fullmatch(request.header("authorization"))
        with self._lock:
            if not match or not self.tokens.good(match[1], self.settings):
                raise RefusalError(401, ("WWW-Authenticate", 'Bearer realm="emulator"'))

    def _body(self, request: Request, operation: openapi.Operation) -> Asset:
        if request.media_type != JSON:
            raise RefusalError(415)
        try:
            body = read_json(request.body)
        except ValueError:
            raise RefusalError(400) from None
        if not isinstance(body, dict) or not operation.body.is_valid(body):
            raise RefusalError(422)
        # What the interface leaves open: `strict` demands every field of a creation.
        required = (
            operation.fields if operation.creates and self.settings.required == "strict" else ()
        )
        if any(body.get(name) in (None, "") for name in required):
            raise RefusalError(422)
        return body

    def _apply(self, operation: openapi.Operation, asset_id: str, body: Asset) -> Response:
        settings, kind = self.settings, operation.collection
        try:
            if operation.creates:
                status, asset = (
                    settings.create_status,
                    self.store.create(operation, body, settings.unique_names),
                )
            else:
                create = settings.unknown_id == "create"
                status, asset = (
                    settings.update_status,
                    self.store.update(kind, asset_id, body, settings.put, create),
                )
        except ConflictError:
            raise RefusalError(409) from None
        except UnknownError:
            raise RefusalError(404) from None
        if settings.unset == "null":
            asset = completed(asset, self._envelope, operation.attributes)
        return json_response(status, asset, applied=True)
