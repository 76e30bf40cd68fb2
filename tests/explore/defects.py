"""Deliberate defects, each with a cast in which it does harm."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import ClassVar, NamedTuple

from ansible_collections.infrastructure.services.plugins.plugin_utils._ledger import sql
from ansible_collections.infrastructure.services.plugins.plugin_utils._ledger.entries import Write
from ansible_collections.infrastructure.services.plugins.plugin_utils._ledger.sql import Statement
from support.turns import Actor

from .places import Changed, Connection

_LEASE = r"state = 'intent' AND :now - .*? < lease_seconds AND lease_from - :now < lease_seconds"


class Defect(NamedTuple):
    """How a ledger does harm in a cast."""

    cast: str
    changed: Changed | None = None
    connection: type[Connection] = Connection


def _without_lease(statement: str, kind: Write | None) -> str:
    """An edit neither sees nor requires that no lease runs."""
    if kind is Write.EDIT or statement.startswith(sql.ENTRIES.partition("{}")[0]):
        return re.sub(_LEASE, "0", statement)
    return statement


def _renewed_always(statement: str, kind: Write | None) -> str:
    """A renewal of an entry, whatever its lease, that keeps its revision."""
    if kind is Write.RENEWAL:
        return (
            re.sub(f" AND {_LEASE}", "", statement)
            .replace(" revision = ?, lease_from", " revision = revision + 0 * ?, lease_from")
            .replace("changed_at = ?", "changed_at = coalesce(changed_at, ?)")
        )
    return statement


def _without_approval(statement: str, kind: Write | None) -> str:
    """A beginning, whatever happened since the approved plan."""
    if kind is Write.BEGIN:
        rows = f"NOT EXISTS (SELECT 1 FROM {sql.HISTORY} WHERE "
        return statement.replace(rows, f"{rows}0 AND ")
    return statement


def _whatever_state(statement: str, kind: Write | None) -> str:
    """A beginning, or an outcome, in a ledger that has moved."""
    if kind in (Write.BEGIN, Write.OUTCOME):
        return statement.replace("WHERE state = 'in use' AND base_url", "WHERE base_url")
    return statement


def _without_anew(statement: str, kind: Write | None) -> str:
    """An outcome without an entry inserts none."""
    if kind is Write.OUTCOME and statement == sql.INSERT:
        return statement.replace(" WHERE EXISTS", " WHERE 0 AND EXISTS", 1)
    return statement


class FillsFirst(Connection):
    """Fills the target of a move before it closes the source."""

    _closings: ClassVar[dict[Actor | None, tuple[Connection, list[Statement]]]] = {}

    def write(self, statements: Iterable[Statement], kind: Write) -> list[int]:
        statements = list(statements)
        mover = self.world.running
        if statements[0][0] == sql.CLOSE:
            self._closings[mover] = self, statements
            return [1]
        counts = super().write(statements, kind)
        if statements[0][0] == sql.OPEN and mover in self._closings:
            source, closing = self._closings.pop(mover)
            Connection.write(source, closing, kind)
        return counts


DEFECTS = {
    "an edit that does not look at the lease": Defect(
        "task, user who looks at once, task", _without_lease
    ),
    "a renewal without a running lease and without a new revision": Defect(
        "task that is suspended, slow user", _renewed_always
    ),
    "a beginning without the guard of the approval": Defect(
        "two runs with one approved plan, user who forgets", _without_approval
    ),
    "a move that fills before it closes": Defect(
        "task, move, task at the target", connection=FillsFirst
    ),
    "a beginning that ignores a move": Defect("task, move, task at the target", _whatever_state),
    "an outcome that inserts nothing": Defect("task, user who does not look", _without_anew),
}
