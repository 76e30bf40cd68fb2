"""A row of the fault matrix, and the few ways in which a task may end."""

from __future__ import annotations

from types import MappingProxyType
from typing import Any, Callable, Mapping, NamedTuple, Union

from support import CREATE
from support.service import Script

from .behaviors import answers
from .lab import Lab


class End(NamedTuple):
    """How a task must end, and what the service must have seen; every task may make two attempts.

    `attempts`: what the task reports (None when an option is refused); `received`: whole requests
    that the service read; `done`: how many of them it carried out.
    """

    outcome: str
    attempts: int | None
    received: int
    done: int
    success: bool = False


class Ends(NamedTuple):
    """How a POST and a PUT must end according to the policy."""

    post: End
    put: End

    def of(self, resource: str) -> End:
        return self.post if resource == CREATE else self.put


def _both(*end) -> Ends:
    return Ends(End(*end), End(*end))


SUCCESS = _both("accepted", 1, 1, 1, True)
SUCCESS_AT_SECOND_ATTEMPT = _both("accepted", 2, 2, 1, True)
INVALID_OPTION = _both("not_sent", None, 0, 0)
NO_TOKEN = _both("not_sent", 0, 0, 0)

# No byte of the request was sent.
NOT_SENT = _both("not_sent", 2, 0, 0)
NOT_SENT_NO_RETRY = _both("not_sent", 1, 0, 0)

# The service said no.
REJECTED = _both("rejected", 1, 1, 0)
REJECTED_TWICE = _both("rejected", 2, 2, 0)

# The answer does not say whether the work was done: a PUT is sent again, a POST is not.
LOST_UNREAD = Ends(post=End("unknown", 1, 0, 0), put=End("unknown", 2, 0, 0))
LOST_AFTER_WORK = Ends(post=End("unknown", 1, 1, 1), put=End("unknown", 2, 2, 2))

# Nor does it here, but repeating it would be of no use: neither is sent again.
UNKNOWN_BEFORE_WORK = _both("unknown", 1, 1, 0)
UNKNOWN_AFTER_WORK = _both("unknown", 1, 1, 1)

# The service said yes, but its answer is cut (a PUT is sent again), or cannot be used.
ANSWER_CUT = Ends(post=End("accepted", 1, 1, 1), put=End("accepted", 2, 2, 2))
ANSWER_UNUSABLE = _both("accepted", 1, 1, 1)

Options = Union[Mapping[str, Any], Callable[[Lab], Mapping[str, Any]]]


class Case(NamedTuple):
    """A row: its number and name, what happens, how a task ends, and who causes it; by default all
    is well.
    """

    name: str = ""
    what: str = ""
    ends: Ends = SUCCESS
    service: Script = answers()
    token_endpoint: Script | None = None  # used instead of access_token
    proxy: Script | None = None
    options: Options = MappingProxyType({})  # of the task
    tls: str = ""  # "": http; "server": https; "script": up to the script
    says: str = ""  # part of the message
    check: Callable[[Lab, dict], bool] | None = None  # what else must hold
