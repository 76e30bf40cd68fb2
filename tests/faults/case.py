# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A row of the fault matrix, and the few ways in which a task may end."""

from __future__ import annotations

from types import MappingProxyType
from typing import Any, Callable, Mapping, NamedTuple, Union

from .behaviours import answers
from .lab import Lab
from .servers import Script


class Seen(NamedTuple):
    """How a task must end, and what the service must have seen; every task may make two attempts.

    `attempts`: what the task reports (None when an option is refused); `received`: whole requests that the service
    read; `done`: how many of them it carried out.
    """

    outcome: str
    attempts: int | None
    received: int
    done: int
    success: bool = False


# POST and PUT, according to the policy.
GOOD = (Seen("accepted", 1, 1, 1, success=True),) * 2
GOOD_AT_LAST = (Seen("accepted", 2, 2, 1, success=True),) * 2
REFUSED_OPTION = (Seen("not_sent", None, 0, 0),) * 2
UNSENT = (Seen("not_sent", 2, 0, 0),) * 2
UNSENT_HOPELESS = (Seen("not_sent", 1, 0, 0),) * 2
NO_TOKEN = (Seen("not_sent", 0, 0, 0),) * 2
REJECTED = (Seen("rejected", 1, 1, 0),) * 2
REJECTED_TWICE = (Seen("rejected", 2, 2, 0),) * 2
LOST_DONE = Seen("unknown", 1, 1, 1), Seen("unknown", 2, 2, 2)
LOST_UNDONE = Seen("unknown", 1, 1, 0), Seen("unknown", 2, 2, 0)
LOST_UNREAD = Seen("unknown", 1, 0, 0), Seen("unknown", 2, 0, 0)
IN_DOUBT_DONE = (Seen("unknown", 1, 1, 1),) * 2
IN_DOUBT_UNDONE = (Seen("unknown", 1, 1, 0),) * 2
CUT = Seen("accepted", 1, 1, 1), Seen("accepted", 2, 2, 2)
UNUSABLE = (Seen("accepted", 1, 1, 1),) * 2

NOTHING = MappingProxyType({})
Given = Union[Mapping[str, Any], Callable[[Lab], Mapping[str, Any]]]


class Case(NamedTuple):
    """A row: its number, a name, a description of the fault, how a POST and a PUT end, and how to cause it."""

    number: str
    name: str
    what: str
    post: Seen
    put: Seen
    script: Script = answers()
    times: int | None = None  # how many turns the script takes before good answers follow; None: all
    options: Given = NOTHING
    environment: Given = NOTHING
    tls: str = ""  # "": http; "server": https; "mutual": requires a client certificate; "script": up to the script
    identity: Script | None = None  # a token endpoint, used instead of access_token
    proxy: Script | None = None
    says: str = ""  # part of the message
    check: Callable[[Lab, dict], bool] | None = None  # what else must hold
    verbatim: bool = True  # whether the asset is the envelope as it was sent
