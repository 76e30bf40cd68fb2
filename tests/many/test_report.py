"""The report of a run exists however the run ends; test_ends.py has the report of a run that is
interrupted.
"""

from __future__ import annotations

from many.conftest import REPORTING, TOKEN, report_in


def test_the_end_of_a_run_is_reported(start, service, tmp_path):
    service.statuses.update(vm3=403, vm4=307)
    service.headers = (f"X-Request-Id: {TOKEN}",)
    start(20, REPORTING, report=str(tmp_path / "fleet.json")).end()
    one = report_in(tmp_path)
    assert (one["state"], len(one["results"])) == ("ended", 20)
    told = {row["item"]: row for row in one["results"]}
    assert (told["vm3"]["outcome"], told["vm3"]["status"], told["vm3"]["failed"]) == (
        "rejected",
        403,
        True,
    )
    assert told["vm3"]["body"] == {"name": "vm3", "attributes": {"cpu": 4}}
    assert "x-request-id: ***" in told["vm4"]["msg"]
    assert all(row["seconds"] >= 0.05 for row in told.values())
