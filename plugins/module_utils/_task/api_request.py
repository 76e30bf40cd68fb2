# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Any operation of the service that has no module of its own: `send_request`."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any, cast
from urllib.parse import quote, unquote, urlencode

from .._call.attempt import Call
from .._call.policy import READS, SAFE_TO_REPEAT, Operation, Resource
from .._errors import InvalidInput
from .._http import Answer
from .._http.strict_json import InvalidJSON, decode_any
from .._http.transport import require_usable as require_usable_connection
from .._http.urls import API
from .._resources.planning import SEND, AssetOperation, Plan, Task, require_usable
from .._resources.resources import OPERATIONS
from .._result import Result
from .._values import DICT, TEXT, Params, Type, encode, text
from .journal import NoLedger
from .loop import Job
from .options import settings_from
from .specs import ModuleSpec
from .task import Context, Limits, begun, run_loop
from .validation import Options
from .work import Work

# RFC 3986 section 3.3.
_PATH = re.compile(rf"{API}/([\w.~!$&'()*+,;=:@/-]|%[\da-fA-F]{{2}})*", re.ASCII)
# A query, a fragment, a dot segment, and what many servers ignore: parameters, blanks at the end of a
# segment, and empty segments.
_NO_PATH = re.compile(r"[?#;\\\0]|\s(/|$)|//|/\.\.?(/|$)")


def _named(operation: Operation, params: Params) -> Operation:
    """Return the operation with the method and path of these options."""
    method = params["method"]
    if method not in [*SAFE_TO_REPEAT]:
        return operation
    named = replace(operation, method=method, path=str(params["path"]))
    if not SAFE_TO_REPEAT[method]:
        return named
    return replace(named, creates=False, repeat="Running the task again is safe.")


def _decoded(path: str) -> str:
    """Return a path without percent-encoding, as a gateway that decodes repeatedly sees it."""
    while (plain := unquote(path)) != path:
        path = plain
    return path


def _path(value: object) -> str:
    path = text(value)
    if not _PATH.fullmatch(path) or _NO_PATH.search(_decoded(path)):
        raise ValueError
    return path


def _any_json(answer: Answer) -> Any:
    """Return the JSON value of an answer, None for an empty one; raise InvalidJSON."""
    value = decode_any(answer.body) if answer.body else None
    # The beginning of a number is a number.
    if answer.problem or (answer.cut and not isinstance(value, (dict, list))):
        raise InvalidJSON("it may have been cut off")
    return value


API_REQUEST = ModuleSpec(
    name="api_request",
    own=dict(
        method=dict(type=TEXT, choices=[*SAFE_TO_REPEAT], default="GET"),
        path=dict(
            type=Type(
                "str",
                f"a path that starts with {API}/, without ?, # (see query), ;, backslashes and"
                " dot or empty segments, encoded or not, and with other special characters"
                " percent-encoded",
                _path,
            ),
            required=True,
        ),
        query=dict(type=DICT, default={}),
        body=dict(type=Type("raw", "any JSON", lambda value: value)),
    ),
    # The method is replaced; what is not known of a task is assumed to be the worst.
    operation=Operation(
        resource=Resource("api_request", "request", "path", {}),
        method="POST",
        path="",
        creates=True,
        word="send",
        done="processed",
        missing="the path does not exist, or base_url is wrong",
        exists="the service reports a conflict with its current state",
        repeat="Look at the service before you send it again: it may take effect twice.",
        decode=_any_json,
    ),
    choose=_named,
)


def send_request(options: Options, context: Context, *_recorded: object) -> Result:
    """Send the request of a task, or predict its result; raise ServicesError before that.

    `_recorded`: what carries out a task under the ledger.
    """
    params = options.valid()
    operation = options.spec.operation_of(params)
    _require_no_module(operation)
    require_usable(params, ("path", "query", "body"))
    pairs = [
        (name, each if isinstance(each, str) else encode(each, "query"))
        for name, value in params["query"].items()
        for each in (value if isinstance(value, list) else [value])
        if each is not None
    ]
    query = f"?{urlencode(pairs, quote_via=quote)}" if pairs else ""
    reads = operation.method in READS
    is_predicted = context.check_mode and not reads
    settings = settings_from(params, is_predicted)
    title = operation.resource.label(operation.path)
    call = Call(operation, title, settings, "", params["body"], query, context.require_reader)

    def succeed(value: Any) -> Result:
        return Result(changed=True, more={"json": value})

    if is_predicted:
        result = succeed(None).but(request=call.info, request_attempts=0)
        return context.secrets.scrub(result)
    asset_operation = cast(AssetOperation, operation)  # which plans nothing here
    task = Task(asset_operation, settings, operation.path, {}, plan=Plan(SEND, {}, {}))
    require_usable_connection(settings.connection, settings.base_url)
    job = Job(Work(call, task, succeed, context.secrets))
    loop = run_loop([job], settings, context, NoLedger(), Limits(), [])
    result = begun(job.result, loop.reason, call, context)
    return result.but(changed=result.changed and not reads)


def _require_no_module(operation: Operation) -> None:
    """Raise InvalidInput if a module of the collection has this method and path."""
    paths = (operation.path, _decoded(operation.path))
    for module, known in OPERATIONS.items():
        pattern = re.escape(known.path).replace(r"\{id\}", "[^/]+") + "/?"
        is_known = any(re.fullmatch(pattern, path, re.IGNORECASE) for path in paths)
        if operation.method == known.method and is_known:
            raise InvalidInput(
                "path",
                f"use the module infrastructure.services.{module} for {known.method} {known.path}",
            )
