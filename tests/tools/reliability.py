# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Print the fault matrix into docs/reliability.md, or check that it is there as it is in the table
(--check).
"""

from __future__ import annotations

import argparse
import sys

from support.checkout import CHECKOUT  # makes the checkout importable as the collection

# isort: split
from explore.counted import FAULTS, PATHS, RUNS
from faults.table import SECTIONS
from ledger.swept import SWEPT
from story.sequences import FOUND, LONG, QUICK

PAGE = CHECKOUT / "docs" / "reliability.md"
COMMAND = "make reliability"


def page() -> str:
    """Return the page."""
    tables = [
        line
        for title, cases in SECTIONS.items()
        for line in ("", f"## {title}", "", *_table(cases))
    ]
    head = _HEAD.format(count=sum(map(len, SECTIONS.values())), command=COMMAND)
    explored = _EXPLORED.format(
        runs=RUNS,
        faults=FAULTS,
        settings=len(PATHS),
        paths=sum(count for _most, count in PATHS.values()),
    )
    paths = [
        (cast, " to ".join(dict.fromkeys(kinds)), f"{most}", f"{count:,}", "0")
        for (cast, kinds), (most, count) in PATHS.items()
    ]
    swept = [
        (
            what,
            ", ".join(f"`{call}` {runs}" for call, runs in calls.items()),
            str(sum(calls.values())),
        )
        for what, calls in SWEPT.items()
    ]
    story = _STORY.format(quick=QUICK, long=LONG)
    found = [(each, str(seconds)) for each, seconds in FOUND.items()]
    sections = [explored, *_lines(_CASTS, paths), "", story, *_lines(_BREAKS, found), ""]
    sections += [_SWEPT, *_lines(_CALLS, swept)]
    return "\n".join([head, *tables, "", *sections, ""])


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


_CASTS = "cast", "ledger", "deviations", "paths", "violations"
_EXPLORED = """\
## Runs that share a ledger

The real code of the ledger runs over databases in memory and in virtual time, and a chooser decides wherever there is
a choice: who goes on next, who is killed, which session of a server is lost, whether a commit of unknown fate was done,
whether a write fails, whether a request arrives, is refused or loses its answer. At the end nothing was created twice,
what was created is recorded at least as in doubt, nothing is recorded that was not created, nobody waits for ever, each
outcome is true, and of two ledgers at most one can be used. (Two users who settle one asset at the same time without
`changed_at` can still remove what the other one began: then `ledger_entry` removes the entry that it finds, not the one
that the user looked at.)

`make test` makes {runs} runs at random, with at most {faults} faults each, in each of {settings} settings. `make
stress` makes every run that deviates from the first choice at so many places at most: {paths:,} runs. One ends as soon
as it is in a state in which another one was, with as many deviations left: what can follow is looked at there. (A state
is what the ledgers hold, who has which lock, what the service did, and all that each process has seen; a test compares
the ends that are reached with and without this.)
"""
_STORY = """\
## Commands in any order

One person gives the commands of the documents in any order: lists, single tasks, plans and approved runs, files of
doubts, `settle`, edits, moves, copies and restored copies of the ledger, a new service URL, a misspelled ledger. Each
request is answered, rejected, lost, or its answer is lost. After each command the test compares the ledger with the
service: no machine is created twice without a warning or an order, no created machine is lost, no id is invented, and
one place of the ledger is in use.

`make test` runs {quick.count} sequences of {quick.commands} commands with a fixed seed, `make stress` {long.count:,}
of {long.commands}. Neither finds a violation. The short run finds each of these breaks when somebody puts it into the
code (`tests/tools/breaks.py 'story - '`):
"""
_SWEPT = """\
## File operations that fail

`make stress` lets each file operation of a task fail once, the first, the second, ... (with strace), with `EIO`,
`ENOSPC`, `EMFILE`, `EDQUOT`, `ENOLCK` or `EACCES`, and kills a move at each call that changes a ledger. Each ends with
a result, after at most one POST, and the next run knows what there is, or says that it is in doubt: so too where SQLite
fails to sync the directory after it has committed an intent. Of the two ledgers of a move at most one can be used, and
running it again completes it.
"""
_BREAKS = "break", "seconds until it is found"
_CALLS = "what", "calls, with the number of runs in which one failed", "runs"
_TITLES = "no.", "case", "what happens", "POST", "PUT"
_HEAD = """\
<!-- SPDX-License-Identifier: GPL-3.0-or-later -->
<!-- Written by `{command}` from tests/faults, tests/explore and tests/ledger; change it there. -->
# What a task reports when something goes wrong

A task's `outcome` says what is known of its effect: `not_sent` (provably nothing reached the service), `rejected`
(the service said no), `accepted` (the service said yes), `unknown` (it may or may not have happened). Each of the
{count} rows below is a test over real sockets, once as a POST (`compute_virtual_machine`) and once as a PUT
(`cassandra_application_role`): the service records what it read and what it did, and no row may contradict that.

Every task in the table has `retries: 1` and meets the fault in both attempts. A cell reads
`outcome` (attempts / whole requests that the service read / requests that it carried out); *ok* is a success, every
other cell a failed task. Where the policy allows a second attempt, a second test removes the fault after the first
one: the task then succeeds.

## What is swept in addition to the table

- Every socket call: the first, second, ... n-th connect, TLS handshake, send and receive of a task fails, by timeout,
  reset, end of stream or short data, until a run completes without a fault; over http, https, a proxy, with a token
  endpoint, and on a kept-alive connection.
- Every byte: good answers of every framing are cut after each of their bytes, by an end of stream and by a reset.
- Every slow drip: headers, body, chunks, chunk extensions, interim answers, TLS handshake, CONNECT, a slow reader, a
  slow name look-up: each ends at `timeout`, in a forked process too.

In all of them at most one POST is carried out, and no success lacks a byte of its body.

## What cannot be known

- A body that only the end of the connection delimits may have lost a trailing line break: that is outside the JSON
  object, so nothing of use is missing.
- A 2xx without a JSON object is `accepted`, since the service said yes. A login page in front of the service that
  answers 200 in its place, and passes nothing on, is therefore reported as accepted, and the message says that the
  answer cannot be used.
- With TLS 1.3, a missing client certificate is reported after the request was sent: `unknown`, although the
  application behind it never saw the request."""


def main() -> int:
    """Write the page, or compare; return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="only say whether the page is current")
    if not parser.parse_args().check:
        PAGE.write_text(page(), encoding="utf-8")
    elif PAGE.read_text(encoding="utf-8") != page():
        print(f"docs/reliability.md is not what the table says; run: {COMMAND}")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
