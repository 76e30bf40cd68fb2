"""The threads of a list share commits."""

from __future__ import annotations

import threading
import time
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

from ansible_collections.infrastructure.services.plugins.plugin_utils._ledger.commits import Commits
from ansible_collections.infrastructure.services.plugins.plugin_utils._ledger.entries import Write

THREADS, ITEMS = 16, 160
COMMIT, REQUEST = 0.005, 0.02  # seconds


class SlowLedger:
    """Takes as long for a commit as a disk; notes how many changes each one has."""

    def __init__(self) -> None:
        self.commits: list[int] = []
        self._alone = threading.Lock()

    def write(self, changes: list) -> list[bool]:
        with self._alone:
            self.commits.append(len(changes))
            time.sleep(COMMIT)
        return [change.revision % 2 == 0 for change in changes]


def test_what_threads_write_at_once_is_one_commit():
    """Not one for each thread that finds its change written, with the few that came since."""
    ledger = SlowLedger()
    commits = Commits(ledger)

    def item(number: int) -> list[bool]:
        begin = SimpleNamespace(kind=Write.BEGIN, revision=2 * number)
        outcome = SimpleNamespace(kind=Write.OUTCOME, revision=2 * number + 1)
        begun = commits.write(begin)
        time.sleep(REQUEST)
        return [begun, commits.write(outcome)]

    with ThreadPoolExecutor(THREADS) as pool:
        assert [*pool.map(item, range(ITEMS))] == [[True, False]] * ITEMS
    assert sum(ledger.commits) == 2 * ITEMS
    assert len(ledger.commits) < ITEMS  # each writes twice
