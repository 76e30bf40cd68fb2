# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What happens on the wire if an answer meets a fault: pure functions that return steps."""

from __future__ import annotations

import base64
from dataclasses import dataclass, replace
from typing import Callable

from .faults import Fault
from .messages import JSON, Response
from .wire import render


@dataclass(frozen=True)
class Step:
    """Wait `seconds`, send `data`, and end the connection by FIN (drop), RST (reset) or not ()."""

    seconds: float = 0.0
    data: bytes = b""
    ending: str = ""


@dataclass(frozen=True)
class Script:
    """The status that is sent, None for none, and the steps."""

    status: int | None
    steps: tuple[Step, ...]


def script(fault: Fault | None, response: Response, close: bool) -> Script:
    """Return what happens on the wire; `close`: the connection ends with this answer anyway."""
    if fault is None:
        return _plain(response, close)
    return _SCRIPTS[fault.kind](fault, response, close)


def _plain(response: Response, close: bool, seconds: float = 0.0) -> Script:
    return Script(
        response.status,
        (Step(seconds, b"".join(render(response, close)), "drop" if close else ""),),
    )


def _delay(fault: Fault, response: Response, close: bool) -> Script:
    return _plain(response, close, fault.seconds if fault.when == "after" else 0.0)


def _status(fault: Fault, _response: Response, close: bool) -> Script:
    headers = fault.headers
    if fault.location:
        headers += (("Location", fault.location),)
    if fault.body and not any(name.lower() == "content-type" for name, _value in headers):
        headers += (("Content-Type", JSON),)
    return _plain(
        Response(fault.status, headers, fault.body.encode("utf-8", "surrogatepass")), close
    )


def _end(fault: Fault, _response: Response, _close: bool) -> Script:
    return Script(None, (Step(ending=fault.kind),))


def _truncate(fault: Fault, response: Response, close: bool) -> Script:
    head, body = render(response, close)
    data = head[: fault.bytes] if fault.part == "headers" else head + body[: fault.bytes]
    return Script(response.status, (Step(data=data, ending=fault.ending),))


def _drip(fault: Fault, response: Response, close: bool) -> Script:
    head, body = render(response, close)
    at_once, slowly, rest = (b"", head, body) if fault.part == "headers" else (head, body, b"")
    drops = (Step(fault.seconds, slowly[index : index + 1]) for index in range(len(slowly)))
    return Script(
        response.status,
        (Step(data=at_once), *drops, Step(data=rest, ending="drop" if close else "")),
    )


def _garbage(fault: Fault, response: Response, close: bool) -> Script:
    junk = base64.b64decode(fault.base64) or fault.text.encode("utf-8", "surrogatepass")
    if fault.part == "body":
        return _plain(replace(response, body=junk), close)
    return Script(None, (Step(data=junk, ending="drop"),))


def _close(fault: Fault, response: Response, close: bool) -> Script:
    data = b"".join(render(response, close))
    return Script(response.status, (Step(data=data), Step(fault.seconds, ending="drop")))


_SCRIPTS: dict[str, Callable[[Fault, Response, bool], Script]] = {
    "status": _status,
    "redirect": _status,
    "delay": _delay,
    "drop": _end,
    "reset": _end,
    "truncate": _truncate,
    "drip": _drip,
    "garbage": _garbage,
    "close": _close,
}
