# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The errors of the collection, and the known effect of each.

ServicesError         the task failed                            any of the four outcomes
|-- InvalidInput      an option cannot be used                   not_sent
|   `-- LedgerError   the ledger cannot be used; LedgerAway: now
`-- AttemptFailed     one attempt got no answer, for the policy

InvalidJSON is a ValueError: its effect depends on what the JSON was read for.
"""

from __future__ import annotations

import sys
from typing import Any, Callable, NamedTuple

# Every entry to the collection imports this file before anything that needs a later Python.
if sys.version_info < (3, 9):  # noqa: UP036 (ansible-core 2.16 still runs modules on older ones)
    raise ImportError(
        "infrastructure.services needs Python 3.9 or later, here and where"
        " a module runs; this is Python"
        f" {sys.version_info[0]}.{sys.version_info[1]} ({sys.executable})."
        " Set ansible_python_interpreter, or install"
        " ansible-core with a later Python"
    )

# The outcomes of a request, from harmless to grave.
NOT_SENT = "not_sent"
REJECTED = "rejected"
UNKNOWN = "unknown"
ACCEPTED = "accepted"
OUTCOMES = (NOT_SENT, REJECTED, UNKNOWN, ACCEPTED)
_MAX_LISTED = 10  # names in one message
MAX_FAULTS = 100  # of a list, in one message


def outcome_of(*outcomes: str) -> str:
    """Return the outcome of several attempts together; a later rejection undoes none of them."""
    return max(outcomes, key=OUTCOMES.index)


def sentence(text: str) -> str:
    """Return the text with a full stop at its end if it needs one."""
    return text if text.endswith((".", "!", "?")) or not text else f"{text}."


def quantity(count: int, noun: str) -> str:
    """Return a number of things in words, such as `1 request` or `1,000 requests`."""
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"


def listing(parts: list[str], most: int = _MAX_LISTED, between: str = ", ") -> str:
    """Return the first parts of a list for a message, and how many more there are."""
    more = f" and {len(parts) - most:,} more" if len(parts) > most else ""
    return f"{between.join(parts[:most])}{more}"


class Message(NamedTuple):
    """The text of a failure or a warning, in parts.

    The parts may quote the service, so no code takes a text apart.
    """

    text: str  # the failure, the known effect, and the next step
    # Such as `virtual machine web01`; '' if it is about the whole task.
    asset: str = ""
    command: str = ""  # the shell command that lists the assets in doubt
    since: str = ""  # when the asset came into doubt

    def __str__(self) -> str:
        text = f"{self.asset}: {self.text}" if self.asset else self.text
        return f"{sentence(text)} For the commands, run: {self.command}" if self.command else text

    def then(self, text: str) -> Message:
        """Return the message with a further sentence."""
        return self._replace(text=f"{sentence(self.text)} {text}".strip())


class ServicesError(Exception):
    """The base of our errors; its text may quote a secret until the result is scrubbed."""

    def __init__(self, msg: str | Message, outcome: str = NOT_SENT, **details: Any) -> None:
        """`outcome`: the known effect of the request; `details`: further keys of the result."""
        super().__init__(msg)
        self.outcome = outcome
        # Of the failed task.
        self.message = msg if isinstance(msg, Message) else Message(msg)
        self.msg = str(msg)
        self.details = details


class InvalidInput(ServicesError):
    """An option cannot be used; found before anything is sent."""

    def __init__(self, option: str, problem: str = "", effect: str = "Nothing was sent.") -> None:
        """`option`: its name, or without a `problem` the whole text, for several options at once.

        `effect`: what the task has certainly not done.
        """
        super().__init__(f"{option}: {problem}" if problem else option)
        self.message = self.message.then(effect)
        self.option = option
        self.problem = problem

    def renamed(self, named: Callable[[str], str], effect: str) -> InvalidInput:
        """Return the error with the name by which the user gives the option, and with an effect."""
        option = named(self.option) if self.problem else self.option
        return InvalidInput(option, self.problem, effect)


class LedgerError(InvalidInput):
    """The ledger cannot be used."""

    def __init__(self, problem: str) -> None:
        super().__init__("ledger", problem)


class LedgerAway(LedgerError):
    """The ledger does not answer now; a write may have been committed all the same."""


class AttemptFailed(ServicesError):
    """One attempt got no answer.

    `sent`: whether a byte of the request was handed to the socket; `hopeless`: no retry can
    help.
    """

    def __init__(self, msg: str, sent: bool = False, hopeless: bool = False) -> None:
        super().__init__(msg)
        self.sent = sent
        self.hopeless = hopeless
