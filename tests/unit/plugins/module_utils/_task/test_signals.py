# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A process that is asked to terminate first records the requests in flight."""

from __future__ import annotations

import os
import signal
import threading

import pytest
from ansible_collections.infrastructure.services.plugins.module_utils._task.signals import (
    Interrupted,
    Signals,
    deferred,
)


def in_child(work) -> tuple[str, int]:
    """Run `work` in a fork; return what it reported and the signal that ended it."""
    read, write = os.pipe()
    if not (pid := os.fork()):
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, signal.SIG_DFL)
        work(lambda said: os.write(write, said.encode()))
        os._exit(0)
    os.close(write)
    _pid, status = os.waitpid(pid, 0)
    with os.fdopen(read) as file:
        return file.read(), os.WTERMSIG(status) if os.WIFSIGNALED(status) else 0


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_ends_the_request_in_flight_and_then_the_process(number):
    def work(say):
        with deferred() as signals:
            try:
                with signals.raised():
                    os.kill(os.getpid(), number)
                    say("never")
            except Interrupted as error:
                say(f"{error}, ")
            os.kill(os.getpid(), number)  # a second one does not interrupt the recording
            say("recorded")
        signals.terminate()
        say("never")

    assert in_child(work) == (f"signal {number.name}, recorded", number)


class Finalized:
    """Is collected as garbage, and gets a signal meanwhile: Python drops what its handler raises."""

    def __init__(self) -> None:
        self.itself = self

    def __del__(self) -> None:
        os.kill(os.getpid(), signal.SIGTERM)


def test_a_signal_is_not_lost_in_the_collection_of_garbage():
    def work(say):
        with deferred() as signals:
            try:
                with signals.raised():
                    Finalized()
                    _garbage = [[] for _number in range(100_000)]
                    os.kill(os.getpid(), signal.SIGINT)
                    say("never")
            except Interrupted as error:
                say(str(error))

    assert in_child(work) == ("signal SIGINT", 0)


def test_a_signal_at_another_time_is_deferred_to_the_end():
    def work(say):
        with deferred() as signals:
            os.kill(os.getpid(), signal.SIGTERM)
            say("recorded")
        signals.terminate()
        say("never")

    assert in_child(work) == ("recorded", signal.SIGTERM)


def test_without_a_signal_the_handlers_are_restored():
    before = [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)]
    with deferred() as signals, signals.raised():
        pass
    assert [
        signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    ] == before


def test_a_signal_that_is_ignored_stays_ignored(monkeypatch):
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with deferred() as signals:
            os.kill(os.getpid(), signal.SIGHUP)
            assert signals.caught == []
    finally:
        signal.signal(signal.SIGHUP, before)


def test_another_thread_does_not_defer_signals():
    before, within = signal.getsignal(signal.SIGTERM), []

    def work():
        with deferred():
            within.append(signal.getsignal(signal.SIGTERM))

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert within == [before]


def test_the_first_signal_names_the_end_of_a_task():
    signals = Signals()
    assert signals.name == ""
    for number in (signal.SIGTERM, signal.SIGINT):
        signals.note(number, None)
    assert signals.name == "SIGTERM"


@pytest.mark.parametrize(
    ("caught", "by_ctrl_c"),
    [
        ([], False),
        ([signal.SIGINT], True),
        ([signal.SIGTERM], False),
        ([signal.SIGTERM, signal.SIGINT], False),
    ],
)
def test_only_a_first_ctrl_c_counts_as_one(caught, by_ctrl_c):
    signals = Signals()
    signals.caught += caught
    assert signals.by_ctrl_c is by_ctrl_c
