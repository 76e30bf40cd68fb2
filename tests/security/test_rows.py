"""Whatever somebody has written into a ledger, there is a result with an outcome, all that is said can be
printed, and a machine that is in doubt is not sent.
"""

from __future__ import annotations

import json
import shutil
import sqlite3
from contextlib import closing

from hypothesis import given, settings
from hypothesis import strategies as st
from story.commands import Terminal
from support.ledgers import create
from support.wire import answer, running

from .test_files import QUICK_AND_LONG

TABLES = [f"infrastructure_services_{name}" for name in ("entry", "history", "ledger")]
ODD = [
    *("{{ lookup('pipe', 'touch x') }}", "\033[31mred\u202e", "a\nb", "../x", "", b"\0\xff"),
    *(-1, 9e15, 1.5, 2**62, "null", "[1]", '{"a": NaN}', '{"a": "\\ud800"}', "done", "unknown"),
    '{"id": [1], "name": null, "attributes": {"ip": {"a": 1}}}',
]
READS = {
    "ledger_info": lambda terminal, ledger: terminal.run(
        "ledger_info", {"ledger": ledger, "history": True, "table": True}
    ),
    "in_doubt": lambda terminal, ledger: terminal.list_in_doubt(ledger, f"{ledger}.csv"),
    "a task": lambda terminal, ledger: terminal.send_one("lost", ledger),
    "a plan": lambda terminal, ledger: terminal.send_list(
        ["lost", "made"], ledger, check_mode=True, report=f"{ledger}.json"
    ),
    "an edit": lambda terminal, ledger: terminal.edit(ledger, "new", asset={"id": "i"}),
}


@QUICK_AND_LONG
def test_any_row_of_a_ledger_is_used_or_refused(tmp_path, how):
    with running(lambda sent: answer(201, {"id": "i-1", **json.loads(sent.body)})) as service:
        terminal, whole = Terminal(tmp_path, service.url), str(tmp_path / "whole.db")
        terminal.send_list(["lost", "made"], create(whole, service.url))
        with closing(sqlite3.connect(whole, isolation_level=None)) as database:
            database.execute(f"UPDATE {TABLES[0]} SET state = 'unknown' WHERE name = 'lost'")
            columns = [
                (table, name)
                for table in TABLES
                for _number, name, *_rest in database.execute(f"PRAGMA table_info({table})")
                if name not in ("resource", "name", "state")  # another asset, or settled
            ]
        sent, file = len(service.sent), tmp_path / "odd.db"

        @settings(how)
        @given(st.sampled_from(columns), st.sampled_from(ODD), st.sampled_from([*READS]))
        def each(column, value, reads):
            for path in tmp_path.glob("odd.*"):
                path.unlink()
            shutil.copy(whole, file)
            with closing(sqlite3.connect(file, isolation_level=None)) as database:
                try:
                    database.execute(f'UPDATE {column[0]} SET "{column[1]}" = ?', [value])
                except sqlite3.IntegrityError:
                    return
            ended = READS[reads](terminal, str(file))
            assert ended.result["outcome"] == "not_sent" or ended.result["failed"]
            assert ended.said.replace("\n", "").isprintable()
            assert len(service.sent) == sent

        each()
