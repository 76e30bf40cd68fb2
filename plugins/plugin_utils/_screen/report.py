# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The report of a run, or of its plan: its rows, its files, and which files may be replaced.

The templates page.html and junit.xml.j2 draw the data that they get.

All tasks of one run of Ansible share its report. The first of them that ends replaces the report of
an earlier run.
"""

from __future__ import annotations

import json
import os
import re
import shlex
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

from ansible import context
from jinja2 import Environment, StrictUndefined

from ...module_utils._errors import ACCEPTED, UNKNOWN, InvalidInput
from ...module_utils._resources.names import is_name
from ...module_utils._resources.resources import RESOURCES
from ...module_utils._result import Result
from ...module_utils._secrets import for_message, printable
from ...module_utils._task.specs import STATES
from ...module_utils._values import Params, date_time
from .._ledger.entries import NO_LIMIT, Serial, author, current_time
from .._ledger.ledger import Ledger
from .plan import own_fields, plan_lines, shared_fields
from .plan import text as as_text
from .rows import (
    DAMAGES,
    EFFECTS,
    ENDED,
    FORMAT,
    IN_DOUBT,
    MARKS,
    PLANNED,
    Run,
    by_cause,
    by_need,
    counted,
    tally,
)

_HEAD = 100  # characters of a file, which contain the format
_WIDTH = 120  # columns of a plan for a merge request
_FEWEST_DOTS = 10  # requests in the picture of a page
# The name of the color of each mark in the page.
_COLORS = {"+": "good", "~": "change", ">": "change", "?": "doubt", "!": "differs", "x": "bad"}
_IN_DIFF = {"?": "!", "~": "!", ".": "#"}  # the marks as `diff` has them
_APPROVE = (
    "With the role fleet, this command sends exactly this plan. Run it where the plan was made,"
    " with the other options of that run except --check. For a module, set its option approved to"
    " the JSON file."
)


class Report:
    """The report of the run that a task belongs to, which adds its results when it ends."""

    def __init__(
        self, path: str, ledger: str | None, run: str, service: str, is_plan: bool
    ) -> None:
        """Raise InvalidInput for a path that could not be written to; change no file.

        `path`: of the JSON file, absolute; `ledger`: its place, without a password, None if there
        is none; `run`: names the run of Ansible; `service`: its canonical base_url.
        """
        base, suffix = os.path.splitext(path)
        if suffix != ".json":
            raise InvalidInput("report", f"{path!r} has to end in .json")
        # A plan never replaces the report of a run.
        self._base, first = (f"{base}.plan", ".md") if is_plan else (base, ".xml")
        self._suffixes = (first, ".html", ".json")
        # The report of the run before, which may be the only one that has an id.
        self._previous = "" if is_plan else f"{base}.previous.json"
        state = PLANNED if is_plan else ENDED
        self._new = Run(run, state, service, ledger, author(), current_time())
        try:
            with TemporaryDirectory(dir=os.path.dirname(path)):
                self._before()
        except (OSError, ValueError) as error:
            raise InvalidInput(
                "report",
                f"{self._problem(error)}. Give a new file in a directory that exists, or an earlier"
                " report",
            ) from None

    @property
    def where(self) -> str:
        """The line with the paths of the files: the first one, and the suffixes of the others."""
        return f"report: {os.path.relpath(self._base)}{', '.join(reversed(self._suffixes))}"

    def add_list(
        self,
        rows: list[Result],
        warnings: list[str],
        ledger_id: str,
        serial: Serial | None,
        refused: str,
    ) -> str:
        """Add the rows of a list to the report; return why that failed, empty on success.

        Its files are for their owner alone. Only one task at a time may do this. `ledger_id`: empty
        if there is no ledger; `serial`: the last row of its history when the list was planned;
        `refused`: why the plan cannot be approved, '' if it can.
        """
        try:
            before = self._before()
            if before is self._new and self._previous:
                with suppress(FileNotFoundError):
                    os.replace(f"{self._base}.json", self._previous)
            run = replace(
                before,
                ended_at=current_time(),
                ledger_id=ledger_id or before.ledger_id,
                # As the first list found the ledger.
                serial=before.serial or (serial and serial._asdict()),
                refused=before.refused or refused,
                warnings=tuple(dict.fromkeys((*before.warnings, *warnings))),
                results=_merged(before.results, rows),
            )
            for suffix in self._suffixes:  # the JSON file last
                with TemporaryDirectory(dir=os.path.dirname(self._base)) as directory:
                    new = Path(directory, "new")
                    new.touch(0o600)
                    new.write_text(_TEXTS[suffix](run, f"{self._base}.json"), "utf-8")
                    os.replace(new, f"{self._base}{suffix}")
        except (OSError, ValueError) as error:
            return (
                f"report: {self._problem(error)}. The task was done, and its result is complete;"
                " the report lacks it"
            )
        return ""

    def _before(self) -> Run:
        """Return the report of the other tasks of this run.

        Raise OSError or ValueError if it is of another service or ledger, or a file is not ours.
        """
        for path in (*(f"{self._base}{suffix}" for suffix in self._suffixes), self._previous):
            _require_ours(path)
        own = self._new
        try:
            before = Run.from_json(json.loads(Path(f"{self._base}.json").read_text("utf-8")))
        except (FileNotFoundError, *DAMAGES):
            return own
        if before.run != own.run:
            return own
        if (before.service, before.ledger) != (own.service, own.ledger):
            raise ValueError("it has results of this run for another service or ledger")
        return before

    def _problem(self, error: Exception) -> str:
        path, why = f"{self._base}.json", getattr(error, "strerror", None) or error
        return f"{path!r} cannot be written: {why}"


def _require_ours(path: str) -> None:
    """Raise OSError or ValueError for a file that is not a report."""
    if not os.path.lexists(path):
        return
    is_report = os.path.isfile(path) and not os.path.islink(path)
    if is_report:
        with open(path, "rb") as file:
            is_report = FORMAT.encode() in file.read(_HEAD)
    if not is_report:
        raise ValueError(f"{path} exists and is not a report")


def rows_to_settle(known: object, ledger: Ledger) -> list[Params]:
    """Return what a report knows of each asset that its run began or adopted.

    `known`: the contents of its JSON file; `ledger`: to which it has to belong. Raise InvalidInput.
    """
    try:
        run = Run.from_json(known)
        at, before = date_time(run.ended_at), Serial(**(run.serial or {}))
        begun = [row for row in run.results if row.began is not None or _stays(row)]
        rows = [_row_to_settle(row, at) for row in begun]
    except DAMAGES:
        raise InvalidInput(
            "file", "has neither a list of entries nor the report of a run, or is damaged"
        ) from None
    if run.state != ENDED:
        raise InvalidInput(
            "file", "has a plan. Give the report of the run, which has no .plan in it"
        )
    if run.ledger_id not in {ledger.header.ledger_id, ledger.header.replaces} - {""}:
        raise InvalidInput(
            "file",
            f"is the report of a run with the ledger {for_message(run.ledger_id or 'none')}, and"
            f" this one is {ledger.header.ledger_id}. Give the ledger of that run, or one that was"
            " created with its id as replaces; record other machines by a list with their ids",
        )
    ledger.find([])
    if ledger.has_gone_back and not ledger.had(before):
        raise InvalidInput(
            "file",
            f"is the report of a run that began at {for_message(run.began_at)}, and the ledger lacks"
            " rows from before that run. Settle the reports of earlier runs first; where there is"
            " none, record what they made by a list with ids, as the page about backups says",
        )
    return rows


def _row_to_settle(row: Result, at: str) -> Params:
    """Return a row of a report; raise one of DAMAGES for one that no run writes."""
    resource, asset = RESOURCES[row.resource], row.asset
    is_doubt = asset is None and row.word == IN_DOUBT
    began = 0 if row.began is None else row.began
    if not (is_name(row.item) and isinstance(began, int) and 0 <= began < NO_LIMIT):
        raise ValueError
    if not isinstance(asset, (dict, type(None))) or (is_doubt and row.outcome not in STATES):
        raise ValueError
    return {
        "resource": resource.name,
        "name": row.item,
        "began": began,
        "asset": asset,
        "state": row.outcome if is_doubt else "",
        "at": at,
    }


def _merged(before: tuple[Result, ...], listed: list[Result]) -> tuple[Result, ...]:
    """Return the rows of a run after a list, which replace those of the same assets.

    A row of what may have had an effect stays, and one of what a plan changes: a plan in which two
    lists change an asset is not approved.
    """
    rows: dict[tuple[str, str | None], list[Result]] = {}
    for row in (*before, *listed):
        same = rows.setdefault((row.resource, row.item), [])
        if row.skipped and same:
            continue
        same[:] = filter(_stays, same)
        told = [(each.asset, each.differs) for each in same]
        if _stays(row) or row.request_attempts or (row.asset, row.differs) not in told:
            same.append(row)
    return tuple(row for same in rows.values() for row in same)


def _stays(row: Result) -> bool:
    may_exist = row.outcome in (ACCEPTED, UNKNOWN)
    return row.changed or row.plan in EFFECTS or bool(may_exist and row.request_attempts)


def _command(file: str) -> str:
    """Return the command that carries out the plan in a JSON file, without options of this run.

    They can hold secrets.
    """
    approved = f"fleet_approved={shlex.quote(os.path.relpath(file))}"
    return shlex.join(["ansible-playbook", *context.CLIARGS.get("args", ()), "-e", approved])


def _markdown(run: Run, file: str) -> str:
    """Return a heading with the counts, how to approve, and the plan of the screen, in fences.

    No text of a user or of the service is outside the fences, which no such text can end.
    """
    plan = [f"service: {printable(run.service)}", *map(printable, run.warnings)]
    for resource, rows in run.lists.items():
        heading, *lines = plan_lines(RESOURCES[resource], rows, _WIDTH)
        plan += ["", heading, *map(_in_diff, lines)]
    text, command = "\n".join(plan), printable(_command(file))
    fence = "`" * max([3, *(1 + len(ticks) for ticks in re.findall("`+", text + command))])
    heading = f"## Plan: {counted(tally(run.results))}"
    how = [_APPROVE, "", f"{fence}shell", command, fence, ""] if run.is_for_approval else []
    return "\n".join([f"<!-- {FORMAT} -->", heading, "", *how, f"{fence}diff", text, fence, ""])


def _in_diff(line: str) -> str:
    """Return a line of the screen with its mark as `diff` has them, at its start."""
    return f"{_IN_DIFF.get(line[2:3], line[2:3])}{line[3:]}"


def _json(run: Run, _file: str) -> str:
    return json.dumps(run.as_json(), indent=1) + "\n"


def page(run: Run, file: str) -> str:
    """Return the page of a run, which loads nothing else; `file`: the JSON file beside it."""
    rows = by_need(run.results)
    counts = tally(rows)
    shared = {resource: shared_fields(listed) for resource, listed in run.lists.items()}
    return _drawn(
        "page.html",
        run=run,
        rows=rows,
        counts=counts,
        verdict=counted(counts),
        problems=by_cause(row for row in rows if row.msg.text),
        approve=_APPROVE if run.is_for_approval else "",
        command=_command(file),
        shared=shared,
        own=lambda row: own_fields(row, shared[row.resource]),
        timed={resource: _timed(listed) for resource, listed in run.lists.items()},
    )


def _junit(run: Run, _file: str) -> str:
    """Return JUnit XML: an asset is a test case, its module a suite."""
    return _drawn("junit.xml.j2", run=run)


def _drawn(name: str, **data: object) -> str:
    """Return a template with its data, escaped."""
    source = Path(__file__).with_name(name).read_text("utf-8")
    drawing = Environment(
        autoescape=True,
        undefined=StrictUndefined,
        finalize=_visible,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    drawing.filters.update(mark=MARKS.get, color=_color, tally=tally, text=as_text, kind=_kind)
    return f"{drawing.from_string(source).render(data)}\n"


def _color(word: str) -> str:
    return _COLORS.get(MARKS[word], "calm")


def _timed(rows: list[Result]) -> list[Result]:
    """Return the rows of a picture of the requests, problems last, above the others."""
    timed = [row for row in by_need(rows)[::-1] if row.begun_after is not None]
    return timed if len(timed) >= _FEWEST_DOTS else []


def _kind(row: Result) -> str:
    """Return the element for the end of a JUnit case, '' for success."""
    left = "skipped" if row.skipped or row.word == IN_DOUBT else ""
    return "failure" if row.failed else left


def _visible(value: object) -> object:
    """Return a value without invisible and bidirectional characters; markup is ours."""
    if isinstance(value, str) and not hasattr(value, "__html__"):
        return printable(value)
    return "" if value is None else value


_TEXTS = {".md": _markdown, ".xml": _junit, ".html": page, ".json": _json}
