"""The loop in virtual time: whatever the service, the ledger, the token endpoint and signals do, no
machine is made twice, nothing accepted is lost, each job has a result, and it ends.
"""

from __future__ import annotations

from collections import Counter

import pytest
from support import UPDATE
from support.loops import NEVER, Scenario, World

SEEDS = range(50)

SCENARIOS = {
    "plain": Scenario(),
    "one": Scenario(items=1, takes=(3.0,), seconds=3.02),
    "adoptions": Scenario(80, adopts=True, seconds=0.02),
    "one without a ledger": Scenario(items=1, ledger=False),
    "without a ledger": Scenario(ledger=False, fates={"throttled": 0.2, "unreachable": 0.1}),
    "all kinds": Scenario(
        fates={"throttled": 0.2, "lost": 0.02, "refused": 0.05, "unreachable": 0.1}, stops=None
    ),
    "updates": Scenario(
        resource=UPDATE, fates={"throttled": 0.2, "overloaded": 0.1, "lost": 0.1}, stops=None
    ),
    "a storm of 429": Scenario(40, fates={"throttled": 0.6}, retry_after=25, retries=8, stops=None),
    "one unknown outcome ends it": Scenario(100, fates={"lost": 0.1}, max_unknown=1, stops=True),
    "token": Scenario(items=1, fetches=True, takes=(3.0,), seconds=3.12),
    "token that does not live long": Scenario(
        60, fetches=True, token_lives=4, fates={"throttled": 0.3}
    ),
    "token that is not accepted": Scenario(60, fetches=True, revoked_at=0, stops=True),
    "token revoked, and the endpoint hangs": Scenario(
        60,
        fetches=True,
        token_lock=(0, True),
        revoked_at=2,
        token_takes=NEVER,
        signal=(3, 9),
        stops=True,
    ),
    "token from another process": Scenario(fetches=True, token_lock=(8, True)),
    "token lock of a process that died": Scenario(fetches=True, token_lock=(8, False)),
    "token revoked": Scenario(60, fetches=True, revoked_at=2.0),
    "token revoked without a ledger": Scenario(60, fetches=True, revoked_at=2.0, ledger=False),
    "token endpoint fails": Scenario(fetches=True, token_fails=1.0, stops=True),
    "token endpoint fails sometimes": Scenario(fetches=True, token_fails=0.3, stops=None),
    "token endpoint hangs": Scenario(fetches=True, token_takes=NEVER, signal=(1, 9), stops=True),
    "signal": Scenario(100, takes=(0.5, 3.0, 15.0), signal=(0, 9), stops=True),
    "signal, one": Scenario(1, takes=(0.5, 3.0, 15.0), signal=(0, 2), stops=None),
    "signal without a ledger": Scenario(
        100, takes=(0.5, 3.0, 15.0), signal=(0, 9), ledger=False, stops=True
    ),
    "signal and look-ups that hang": Scenario(
        100, lookups=(0.0, NEVER, 30.0), takes=(0.5, 3.0), signal=(0, 9), stops=True
    ),
    "signal and 429": Scenario(60, fates={"throttled": 0.5}, signal=(0, 12), stops=True),
    "others": Scenario(others=((0.0, 3, 4.0), (0.5, 10, 10.0), (0.2, 15, 200.0))),
    "others and 429": Scenario(
        40, fates={"throttled": 0.4}, others=tuple((0.3 * n, n, 3.0) for n in range(40)), stops=None
    ),
    "others of updates": Scenario(
        40,
        resource=UPDATE,
        fates={"throttled": 0.2, "lost": 0.2, "refused": 0.3},
        retries=8,
        others=tuple((0.3 * n, n, 3.0) for n in range(40)),
        stops=None,
    ),
    "others and signal": Scenario(
        others=((0.0, 3, 4.0), (0.5, 10, 10.0), (0.2, 15, 200.0)), signal=(0, 40), stops=None
    ),
    "signal while the ledger is slow": Scenario(
        60, book={"commit": 2.0}, signal=(0, 9), stops=True
    ),
    "entries are lost": Scenario(lost=tuple((0.3 * n, n) for n in range(20))),
    "entries are lost, and the ledger goes away": Scenario(
        40,
        lost=tuple((0.1 * n, n) for n in range(40)),
        book={"away": (2, 62)},
        signal=(0, 9),
        stops=True,
    ),
    "ledger away for 6 s": Scenario(60, book={"away": (2, 8), "blocks": 1.0}),
    "ledger away for 8 s, and loses": Scenario(
        60, lookups=(0, 39.9), book={"away": (2, 10), "blocks": 1.0, "loses": 0.5}, stops=None
    ),
    "ledger away for 60 s": Scenario(
        60, book={"away": (2, 62), "blocks": 2.0, "loses": 0.2}, stops=True
    ),
    "ledger away, blocks for 25 s": Scenario(
        60, book={"away": (2, 62), "blocks": 25.0}, stops=True
    ),
    "ledger away, signal": Scenario(
        60, book={"away": (2, 62), "blocks": 2.0, "loses": 0.2}, signal=(2, 9), stops=True
    ),
    "ledger away, updates": Scenario(
        60,
        resource=UPDATE,
        fates={"lost": 0.4},
        retries=8,
        book={"away": (4, 62), "blocks": 2.0},
        stops=True,
    ),
    "ledger goes back": Scenario(60, book={"goes_back": 2.0}, stops=True),
    "ledger refuses beginnings": Scenario(book={"refuses": "BEGIN"}, stops=True),
    "ledger refuses outcomes": Scenario(book={"refuses": "OUTCOME"}, stops=True),
    "no thread": Scenario(threads=0, stops=True),
    "few threads": Scenario(60, threads=3, stops=True),
    "a thread raises, nothing sent": Scenario(raises=("thread, before", 4)),
    "a thread raises, sent": Scenario(raises=("thread, after", 4)),
    **{
        f"{times} x the main thread raises in {what}": Scenario(
            60, raises=(what, times), stops=True
        )
        for what, times in (
            *(("watch", 1), ("watch", NEVER), ("write", 1), ("write", NEVER)),
            *(("outcome", 3), ("finished", 3), ("adapt", 3)),
        )
    },
}


@pytest.mark.parametrize("scenario", SCENARIOS.values(), ids=SCENARIOS)
def test_a_list_ends_with_what_is_true(scenario):
    problems = Counter()
    for seed in SEEDS:
        world = World(scenario, seed)
        world.run()
        problems.update(world.problems)
    assert not problems
