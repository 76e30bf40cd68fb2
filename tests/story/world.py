"""The service as a model, and what a person knows of it."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import NamedTuple

from support.wire import Last, Sent, answer


class Sequences(NamedTuple):
    """Sequences of commands, and how many commands each one has at most."""

    count: int
    commands: int


QUICK, LONG = Sequences(30, 25), Sequences(1000, 40)

ANSWER, LOSE, DROP, REJECT = "answer", "lose the answer", "drop the request", "reject"
FATES = (ANSWER, LOSE, DROP, REJECT)


@dataclass
class Creation:
    """A machine that the service created, and what a person has said of it since."""

    name: str
    id: str
    exists: bool = True


@dataclass
class Model:
    """The service: what becomes of the requests for a name, and the machines that it has."""

    fates: dict[str, str] = field(default_factory=dict)
    machines: list[Creation] = field(default_factory=list)
    created_now: list[str] = field(default_factory=list)  # names, since the command began

    def choose(self, sent: Sent) -> bytes:
        """Answer a request, or lose it, as the fate of its name says."""
        body = json.loads(sent.body)
        fate = self.fates.get(body["name"], ANSWER)
        if fate == REJECT:
            return answer(422)
        if fate == DROP:
            return Last(b"")
        machine = Creation(body["name"], f"vm-{len(self.machines)}")
        self.machines.append(machine)
        self.created_now.append(machine.name)
        return Last(b"") if fate == LOSE else answer(201, {"id": machine.id, **body})

    def existing(self, name: str) -> list[Creation]:
        """Return the machines of a name that exist, the newest last."""
        return [each for each in self.machines if each.name == name and each.exists]

    def ids(self) -> set[str]:
        return {machine.id for machine in self.machines}
