"""A process that is asked to terminate first records the requests in flight."""

from __future__ import annotations

import gc
import os
import signal

import pytest
from ansible_collections.infrastructure.services.plugins.module_utils._task.signals import (
    Interrupted,
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

    assert in_child(work) == (
        f"the task was interrupted (signal {number.name}), recorded",
        number,
    )


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

    assert in_child(work) == ("the task was interrupted (signal SIGINT)", 0)


def test_a_signal_at_another_time_is_deferred_to_the_end():
    def work(say):
        with deferred() as signals:
            os.kill(os.getpid(), signal.SIGTERM)
            say("recorded")
        signals.terminate()
        say("never")

    assert in_child(work) == ("recorded", signal.SIGTERM)


@pytest.mark.parametrize("before", [True, False])
def test_no_garbage_is_collected_only_while_a_signal_interrupts(before):
    was_enabled = gc.isenabled()
    try:
        (gc.enable if before else gc.disable)()
        with deferred() as signals:
            with signals.raised():
                assert not gc.isenabled()
            assert gc.isenabled() == before
    finally:
        (gc.enable if was_enabled else gc.disable)()
