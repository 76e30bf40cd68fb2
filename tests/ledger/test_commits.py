"""The threads of a list share commits."""

import time
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

from ansible_collections.infrastructure.services.plugins.plugin_utils._ledger.commits import Commits
from ansible_collections.infrastructure.services.plugins.plugin_utils._ledger.entries import Write

THREADS, ITEMS = 16, 160
COMMIT, REQUEST = 0.005, 0.02  # seconds


def test_what_threads_write_at_once_is_one_commit():
    """And a thread whose change is written does not wait for the commit after it."""
    made: list[int] = []  # how many changes each commit has

    def write(changes: list) -> list[bool]:
        made.append(len(changes))
        time.sleep(COMMIT)
        return [change.kind is Write.BEGIN for change in changes]

    commits = Commits(SimpleNamespace(write=write))

    def item(number: int) -> list[bool]:
        begun = commits.write(SimpleNamespace(kind=Write.BEGIN, revision=2 * number))
        time.sleep(REQUEST)
        return [begun, commits.write(SimpleNamespace(kind=Write.OUTCOME, revision=2 * number + 1))]

    with ThreadPoolExecutor(THREADS) as pool:
        assert [*pool.map(item, range(ITEMS))] == [[True, False]] * ITEMS
    assert sum(made) == 2 * ITEMS
    assert len(made) < ITEMS / 2
