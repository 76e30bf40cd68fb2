"""Generate the tables of docs/docsite/rst/messages.rst from the policy and the texts of the
statuses.

`PYTHONPATH=tests python -m tools.docs_failures` writes them; a test checks that they match the
code.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from support.checkout import CHECKOUT  # makes the checkout importable as the collection

# isort: split
from ansible_collections.infrastructure.services.plugins.module_utils._call import policy
from ansible_collections.infrastructure.services.plugins.module_utils._call.policy import Event
from ansible_collections.infrastructure.services.plugins.module_utils._resources.resources import (
    CREATE_VIRTUAL_MACHINE as CREATE,
)
from ansible_collections.infrastructure.services.plugins.module_utils._resources.resources import (
    UPDATE_APPLICATION_ROLE as UPDATE,
)

PAGE = CHECKOUT / "docs/docsite/rst/messages.rst"
BETWEEN = re.compile(
    r"(?<=^\.\. tables start\n).*?(?=^\.\. tables end\n)", re.MULTILINE | re.DOTALL
)

# How a user knows an event; events that have a status are rows of the other table.
EVENTS = {
    "UNSENT": "the connection failed before the first byte of the request was sent",
    "UNSENT_HOPELESS": "no token could be fetched from ``auth_url``, or the connection failed for a"
    " permanent reason: host name, certificate, client key or proxy",
    "UNANSWERED": "the connection broke or timed out after the first byte of the request was sent",
    "ANSWER_CUT": "a 2xx whose answer was cut",
    "ANSWER_UNUSABLE": "a 2xx whose answer is not a JSON object",
}
# A class of statuses stands for its members that are not listed.
CLASSES = {"other 3xx": 300, "other 4xx": 499, "other 5xx": 599, "1xx, 6xx and above": 600}


def rows_of_statuses() -> Iterator[tuple[str, ...]]:
    """Yield a row for each status: what it means, what to do, and how it affects a creation and an
    update.
    """
    named = {str(code): code for code in sorted(policy._BY_STATUS)}
    for name, code in {**named, **CLASSES}.items():
        texts = [
            policy.meaning(code)[1].format(**vars(operation)) for operation in (CREATE, UPDATE)
        ]
        text = texts[0] if texts[0] == texts[1] else f"Creation: {texts[0]}. Update: {texts[1]}"
        yield name, _sentence(text), *_cells(policy.meaning(code)[0])


def rows_of_events() -> Iterator[tuple[str, ...]]:
    """Yield a row for each thing that happens without a final status, or after a successful one."""
    for event, words in EVENTS.items():
        yield _sentence(words), *_cells(Event[event])


def _cells(event: Event) -> list[str]:
    with_token = ", sent again once if a new token can be fetched"
    again = {policy.NEVER: "", policy.AGAIN: ", sent again", policy.NEW_TOKEN: with_token}
    return [f"``{event.effect}``{again[event.again(method)]}" for method in ("POST", "PUT")]


def _sentence(text: str) -> str:
    return f"{text[0].upper()}{text[1:]}."


def _table(widths: str, *rows: tuple[str, ...]) -> list[str]:
    lines = [".. list-table::", "    :header-rows: 1", f"    :widths: {widths}", ""]
    for first, *others in rows:
        lines += [f"    * - {first}", *(f"      - {cell}" for cell in others)]
    return [*lines, ""]


def tables() -> str:
    """Return both tables as they appear on the page."""
    lines = [
        "",
        *_table(
            "10 50 20 20",
            ("Status", "Meaning and next step", "Creation", "Update"),
            *rows_of_statuses(),
        ),
        "Without a final status, or after a good one:",
        "",
        *_table("60 20 20", ("Event", "Creation", "Update"), *rows_of_events()),
    ]
    return "\n".join([*lines, ""])


if __name__ == "__main__":
    PAGE.write_text(
        BETWEEN.sub(lambda _match: tables(), PAGE.read_text(encoding="utf-8")), encoding="utf-8"
    )
