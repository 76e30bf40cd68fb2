"""Write the tables and the numbers of docs/reliability.md: `make reliability`. Its prose stays as it
is.
"""

from __future__ import annotations

import re

from support.checkout import CHECKOUT  # makes the checkout importable as the collection

# isort: split
from explore.casts import CASTS
from explore.test_explore import FAULTS, RUNS
from faults.table import SECTIONS
from story.world import LONG, QUICK

PAGE = CHECKOUT / "docs" / "reliability.md"
COMMAND = "make reliability"
# The numbers, by what follows each of them.
NUMBERS = {
    r" rows below": sum(map(len, SECTIONS.values())),
    r" runs at random": RUNS,
    r" faults each": max(FAULTS),
    r" settings\.": len(CASTS),
    r" sequences of": QUICK.count,
    r" commands with": QUICK.commands,
    r"\nof \d+\. Neither": LONG.count,
    r"\. Neither": LONG.commands,
}


def page() -> str:
    """Return the page."""
    text = PAGE.read_text(encoding="utf-8")
    for after, number in NUMBERS.items():
        text, count = re.subn(rf"[\d,]+(?={after})", f"{number:,}", text)
        assert count == 1, after
    faults = "\n".join(
        line
        for title, cases in SECTIONS.items()
        for line in (f"## {title}", "", *_table(cases), "")
    )
    tables = {
        rf"^## {re.escape(next(iter(SECTIONS)))}\n.*\n(?=## Runs that share a ledger)": faults
        + "\n",
    }
    for place, table in tables.items():
        found = re.search(place, text, re.MULTILINE | re.DOTALL)
        text = text[: found.start()] + table + text[found.end() :]
    return text


def _table(cases) -> list[str]:
    return _lines(
        _TITLES,
        [(*case.name.split(" ", 1), _text(case.what), *map(_cell, case.ends)) for case in cases],
    )


def _lines(titles: tuple[str, ...], rows: list[tuple[str, ...]]) -> list[str]:
    return [f"| {' | '.join(row)} |" for row in (titles, ["---"] * len(titles), *rows)]


def _cell(end) -> str:
    """Return how a task ends and, in brackets, its attempts, the requests received, and how many
    were carried out.
    """
    return f"{'ok, ' if end.success else ''}`{end.outcome}` ({end.attempts or 0}/{end.received}/{end.done})"


def _text(words: str) -> str:
    return words.replace("|", "\\|").replace("<", "&lt;")


_TITLES = "no.", "case", "what happens", "POST", "PUT"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
