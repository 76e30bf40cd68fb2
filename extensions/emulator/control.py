# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The control endpoints under `/_emulator/`: JSON in, JSON out, no authentication, not logged."""

from __future__ import annotations

from typing import Callable, Sequence, TypeVar
from urllib.parse import parse_qs, unquote

from .api import Api
from .faults import Fault, parse
from .messages import Request, Response, json_response, read_json

PREFIX = "/_emulator/"
_DONE = json_response(200, {})
_Item = TypeVar("_Item")


def is_control(request: Request) -> bool:
    """Whether the request is for the emulator itself and not for the service."""
    return request.path.startswith(PREFIX)


def handle(api: Api, request: Request) -> Response:
    """Answer a control request: 200, 400 with a message, 404 or 405."""
    name, _slash, rest = request.path[len(PREFIX) :].partition("/")
    methods = _ROUTES.get(f"{name}/{{id}}" if rest else name)
    if methods is None:
        return _message(
            404,
            f"there is no {request.path}; there are: {', '.join(PREFIX + path for path in _ROUTES)}",
        )
    if request.method not in methods:
        return _message(405, f"{request.path} supports {', '.join(methods)}")
    try:
        return methods[request.method](api, request, unquote(rest))
    except ValueError as error:
        return _message(400, str(error))


def _message(status: int, text: str) -> Response:
    return json_response(status, {"message": text})


def _newest(request: Request, items: Sequence[_Item]) -> Sequence[_Item]:
    """Return the newest N items if the query says `last=N`, otherwise all of them.

    Raises ValueError if N is not a number.
    """
    last = parse_qs(request.target.partition("?")[2]).get("last", [str(len(items))])[-1]
    if not (last.isascii() and last.isdigit()):
        raise ValueError(f"last cannot be {last!r}: it is the number of the newest to show")
    return items[max(0, len(items) - int(last)) :]


def _listed(fault: Fault) -> dict[str, object]:
    return {"id": fault.id, **fault.as_dict()}


def _health(api: Api, _request: Request, _rest: str) -> Response:
    assets = {kind: len(items) for kind, items in api.store.assets.items()}
    return json_response(200, {"status": "ok", "requests": len(api.conversation), **assets})


def _reset(api: Api, _request: Request, _rest: str) -> Response:
    api.reset()
    return _DONE


def _get_requests(api: Api, request: Request, _rest: str) -> Response:
    return json_response(
        200, [entry.as_dict() for entry in _newest(request, list(api.conversation))]
    )


def _delete_requests(api: Api, _request: Request, _rest: str) -> Response:
    api.conversation.clear()
    return _DONE


def _get_settings(api: Api, _request: Request, _rest: str) -> Response:
    return json_response(200, api.settings.as_dict())


def _put_settings(api: Api, request: Request, _rest: str) -> Response:
    api.settings = api.settings.changed(read_json(request.body))
    return json_response(200, api.settings.as_dict())


def _get_assets(api: Api, request: Request, _rest: str) -> Response:
    return json_response(
        200, {kind: _newest(request, assets) for kind, assets in api.snapshot().items()}
    )


def _put_asset(api: Api, request: Request, asset_id: str) -> Response:
    return json_response(200, api.seed(asset_id, read_json(request.body)))


def _get_faults(api: Api, _request: Request, _rest: str) -> Response:
    return json_response(200, [_listed(fault) for fault in api.faults])


def _post_fault(api: Api, request: Request, _rest: str) -> Response:
    return json_response(200, _listed(api.add_fault(parse(read_json(request.body)))))


def _delete_faults(api: Api, _request: Request, _rest: str) -> Response:
    api.remove_faults()
    return _DONE


def _delete_fault(api: Api, _request: Request, fault_id: str) -> Response:
    if fault_id.isascii() and fault_id.isdigit() and api.remove_faults(int(fault_id)):
        return _DONE
    return _message(404, f"there is no fault {fault_id}: it was removed, or enough requests met it")


def _get_tokens(api: Api, _request: Request, _rest: str) -> Response:
    return json_response(200, api.tokens.summary())


def _delete_tokens(api: Api, _request: Request, _rest: str) -> Response:
    api.tokens.revoke()
    return _DONE


_ROUTES: dict[str, dict[str, Callable[[Api, Request, str], Response]]] = {
    "health": {"GET": _health},
    "reset": {"POST": _reset},
    "requests": {"GET": _get_requests, "DELETE": _delete_requests},
    "settings": {"GET": _get_settings, "PUT": _put_settings},
    "assets": {"GET": _get_assets},
    "assets/{id}": {"PUT": _put_asset},
    "faults": {"GET": _get_faults, "POST": _post_fault, "DELETE": _delete_faults},
    "faults/{id}": {"DELETE": _delete_fault},
    "tokens": {"GET": _get_tokens, "DELETE": _delete_tokens},
}
