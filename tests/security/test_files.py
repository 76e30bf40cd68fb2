"""Whatever a file of entries or a plan contains, there is a result, or an error that names the option
and is short; in bounded memory, and nothing is sent that the plan does not have.
"""

from __future__ import annotations

import json
import tracemalloc
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from story.commands import Ended, Terminal
from support.ledgers import create
from support.wire import Wire, answer, running

from .files import json_files

LONGEST_MESSAGE = 10_000  # characters
LEAST_MEMORY, MEMORY = 16 << 20, 100  # bytes for any input, and for each of its characters
FIXED = settings(  # the seed is fixed, so a failure comes again without shrinking
    phases=(Phase.generate,),
    deadline=None,
    database=None,
    derandomize=True,
    suppress_health_check=list(HealthCheck),
)
LONG = settings(FIXED, phases=tuple(Phase), max_examples=5000, derandomize=False)
MACHINE = "compute_virtual_machine"
FILE_OF_ENTRIES = [
    {
        "resource": MACHINE,
        "name": "web01",
        "state": "present",
        "asset": {"id": "vm-1", "name": "web01", "attributes": {"cpu": 4}},
    }
]


@contextmanager
def bounded_memory(size: int) -> Iterator[None]:
    """Check the memory that is taken for an input of this size."""
    tracemalloc.start()
    try:
        yield
        dummy, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < LEAST_MEMORY + MEMORY * size


def assert_clear(msg: str, *begins: str) -> None:
    """Check the message of an error."""
    assert msg.startswith(begins), msg[:1000]
    assert msg.isprintable(), repr(msg[:1000])
    assert len(msg) < LONGEST_MESSAGE


QUICK_AND_LONG = pytest.mark.parametrize(
    "how",
    [settings(FIXED, max_examples=100), pytest.param(LONG, marks=pytest.mark.stress)],
    ids=["quick", "long"],
)


@pytest.fixture
def service() -> Iterator[Wire]:
    """A service that refuses all machines, so that nothing is recorded of them."""
    with running(lambda sent: answer(422)) as wire:
        yield wire


@pytest.fixture
def terminal(service: Wire, tmp_path: Path) -> Terminal:
    return Terminal(tmp_path, service.url)


def assert_refused_clearly(ended: Ended, *options: str) -> None:
    assert ended.result["failed"] is True
    assert_clear(ended.result["msg"], *(f"{option}:" for option in options))
    assert "exception" not in ended.result


def strict(content: bytes) -> Any:
    """Return the JSON in a file, in which no key is there twice."""

    def members(pairs: list[tuple[str, object]]) -> dict[str, object]:
        assert len(dict(pairs)) == len(pairs)
        return dict(pairs)

    return json.loads(content, object_pairs_hook=members)


def plans_in(content: bytes, name: str) -> Iterator[object]:
    """Yield what a file, if it is JSON, would send for a machine."""
    for row in strict(content)["results"]:
        if row["item"] == name and row["plan"] == "create":
            yield row["body"]


@QUICK_AND_LONG
def test_any_file_is_a_plan_or_refused(terminal, service, how):
    names, file = ["web01", "web02"], terminal.directory / "p.plan.json"
    ledger = create(str(terminal.directory / "fleet.db"), service.url)
    report = str(terminal.directory / "p.json")
    terminal.send_list(["web03"], ledger)
    terminal.send_list(names, ledger, check_mode=True, report=report)
    whole = json.loads(file.read_bytes())
    ends: list[bool] = []

    @settings(how)
    @given(json_files(whole))
    def each(content: bytes) -> None:
        file.write_bytes(content)
        before = len(service.sent)
        with bounded_memory(len(content)):
            ended = terminal.send_list(names, ledger, approved=str(file))
        ends.append(len(service.sent) > before)
        if not ends[-1]:
            assert_refused_clearly(ended, "approved")
        for sent in service.sent[before:]:
            body = json.loads(sent.body)
            assert body in plans_in(content, body["name"])

    each()
    assert min(ends.count(True), ends.count(False)) > len(ends) / 50


def inner_list(content: bytes) -> bytes:
    """Return the list in a JSON object, which is what a file of entries holds."""
    return content.partition(b":")[2].rpartition(b"}")[0] or content


@QUICK_AND_LONG
def test_any_file_of_entries_is_used_or_refused(terminal, service, how):
    ledger = create(str(terminal.directory / "entries.db"), service.url)
    ends: list[bool] = []

    @settings(how)
    @given(json_files({"entries": FILE_OF_ENTRIES}).map(inner_list))
    def each(content: bytes) -> None:
        file = terminal.directory / "entries.json"
        file.write_bytes(content)
        with bounded_memory(len(content)):
            ended = terminal.settle(ledger, str(file))
        ends.append(bool(ended.result.get("failed")))
        if ends[-1]:
            assert_refused_clearly(ended, "file", "entries")
        else:
            strict(content)

    each()
    assert min(ends.count(True), ends.count(False)) > len(ends) / 50
