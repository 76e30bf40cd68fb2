"""Generate the table of docs/docsite/rst/failures.rst from the policy and the texts of the
statuses.

`PYTHONPATH=tests python -m tools.docs_failures` writes it; a test checks that it matches the code.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from http import HTTPStatus

from support.checkout import CHECKOUT  # makes the checkout importable as the collection

# isort: split
from ansible_collections.infrastructure.services.plugins.module_utils._call import policy
from ansible_collections.infrastructure.services.plugins.module_utils._call.policy import Event

PAGE = CHECKOUT / "docs/docsite/rst/failures.rst"
BETWEEN = re.compile(r"(?<=^\.\. table start\n).*?(?=^\.\. table end\n)", re.MULTILINE | re.DOTALL)

# How a user knows an event that has no status, or a successful one.
EVENTS = {
    "UNSENT": "no connection, so not one byte of the request was sent",
    "UNSENT_HOPELESS": "no token from ``auth_url``, or no connection because of the host name, a certificate or the"
    " proxy",
    "UNANSWERED": "the connection broke or timed out after the first byte",
    "ANSWER_CUT": "a 2xx whose answer was cut",
    "ANSWER_UNUSABLE": "a 2xx whose answer is not a JSON object",
}
# A class of statuses stands for its members that are not listed.
CLASSES = {"other 3xx": 300, "other 4xx": 499, "other 5xx": 599, "1xx, 6xx and above": 600}


def rows() -> Iterator[tuple[str, ...]]:
    """Yield a row for each outcome and each answer to whether a request is sent again: what ends so."""
    named = {f"{code} {_phrase(code)}": code for code in sorted(policy._BY_STATUS)}
    causes = {name: policy.meaning(code)[0] for name, code in {**named, **CLASSES}.items()}
    causes |= {words: Event[event] for event, words in EVENTS.items()}
    found: dict[tuple[str, str], list[str]] = {}
    for cause, event in causes.items():
        found.setdefault(_cells(event), []).append(cause)
    for cells, alike in sorted(found.items()):
        yield *cells, "; ".join(alike)


def _phrase(code: int) -> str:
    """Return the name of a status by RFC 9110; before Python 3.13 it is another one for 422."""
    return HTTPStatus(code).phrase.replace("Entity", "Content")


def _cells(event: Event) -> tuple[str, str]:
    creation, update = event.again("POST"), event.again("PUT")
    words = {policy.NEVER: "no", policy.AGAIN: "yes", policy.NEW_TOKEN: "once, with a new token"}
    return f"``{event.effect}``", words[update] if creation == update else "an update"


def _table(widths: str, *rows: tuple[str, ...]) -> list[str]:
    lines = [".. list-table::", "    :header-rows: 1", f"    :widths: {widths}", ""]
    for first, *others in rows:
        lines += [f"    * - {first}", *(f"      - {cell}" for cell in others)]
    return [*lines, ""]


def table() -> str:
    """Return the table as it appears on the page."""
    titles = "Outcome", "Sent again", "Status or event"
    return "\n".join(["", *_table("15 20 65", titles, *rows()), ""])


if __name__ == "__main__":
    PAGE.write_text(
        BETWEEN.sub(lambda _match: table(), PAGE.read_text(encoding="utf-8")), encoding="utf-8"
    )
