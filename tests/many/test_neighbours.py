"""Lists at once that share names: each machine is made once, and every list is green."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest
from many.conftest import run_here
from support.databases import schema_in
from support.ledgers import create, states

LISTS, SHARED = 8, 30  # each shares so many names with the next


@pytest.mark.parametrize("kind", ["sqlite", "postgresql"])
def test_lists_that_share_half_with_the_next_make_each_machine_once(
    service, postgres_server, tmp_path, kind
):
    location = str(tmp_path / "l.db") if kind == "sqlite" else schema_in(postgres_server)
    create(location, service.url)
    every = [f"vm{number}" for number in range(SHARED * (LISTS + 1))]

    def run(number: int) -> dict:
        begin = SHARED * number
        return run_here(location, service.url, every[begin : begin + 2 * SHARED])

    with ThreadPoolExecutor(LISTS) as pool:
        results = list(pool.map(run, range(LISTS)))
    assert [result.get("msg") for result in results if result.get("failed")] == []
    assert sum(result["counts"]["changed"] for result in results) == len(every)
    assert dict(service.created) == dict.fromkeys(every, 1)
    assert states(location) == dict.fromkeys(every, "done")
