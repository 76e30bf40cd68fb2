"""The service as a model, and what a person knows of it."""

from __future__ import annotations

import csv
import json
from dataclasses import dataclass, field
from pathlib import Path
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

    def fill_in(self, path: Path, blank: set[str]) -> dict[str, str]:
        """Fill in a list of doubts, except `blank`; return when its entries changed, by name."""
        with path.open(encoding="utf-8", newline="") as file:
            rows = list(csv.DictReader(file))
        for row in rows:
            machines = self.existing(row["name"])
            if row["name"] not in blank:
                row.update({"id": machines[-1].id} if machines else {"state": "absent"})
        if rows:
            with path.open("w", encoding="utf-8", newline="") as file:
                writer = csv.DictWriter(file, rows[0])
                writer.writeheader()
                writer.writerows(rows)
        return {row["name"]: json.loads(row["since"]) for row in rows}

    def ids(self) -> set[str]:
        return {machine.id for machine in self.machines}
