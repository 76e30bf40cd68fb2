"""Each named fault hits one item in fifty: its verdict is the single module's, and the others are
unaffected.
"""

from __future__ import annotations

import json
import socket

import pytest
from ansible_collections.infrastructure.services.plugins.module_utils._errors import (
    ServicesError,
)
from ansible_collections.infrastructure.services.plugins.module_utils._http import (
    Answer,
    Request,
)
from ansible_collections.infrastructure.services.plugins.module_utils._http.transport import (
    Transport,
)
from ansible_collections.infrastructure.services.plugins.module_utils._result import Result
from ansible_collections.infrastructure.services.plugins.module_utils._task.specs import (
    APPLICATION_ROLES,
    VIRTUAL_MACHINES,
)
from support import CREATE, LEAST, UPDATE
from support.lists import run_list

from . import lab as laboratory
from .lab import lab_of, run
from .table import CASES
from .test_matrix import ask_a_name_server, assert_verdict

PLURALS = {CREATE: VIRTUAL_MACHINES, UPDATE: APPLICATION_ROLES}
# In an ordinary run: a row for each event of the retry policy, and for each layer on the way to the
# service.
CHOSEN = {
    "1 token-newline",
    "20 id-empty",  # refused options: of the list, and of the item
    "W1 refused",
    "W11 unknown-authority",
    "61 tls-rst-hello",
    "P3 connect-502",  # nothing sent: TCP, TLS, proxy
    "92 no-access_token",
    "T1 token-401-once",
    "99 new-token-also-401",
    "W6 rst-after-request-done",
    "W10 silent-after-request",
    "58 close-delimited-cut",
    "76 json-nan",  # lost, cut, bad
    "S422 status-422-undone",
    "S429 status-429-undone",
    "S500d status-500-done",
    "S503 status-503-undone",
    "S600 status-600-undone",
    "72 redirect-no-location",
    "G4 close-delimited-tls",
}
ROWS = [
    pytest.param(case, id=case.name, marks=() if case.name in CHOSEN else pytest.mark.stress)
    for case in CASES
]
OTHER = "one-of-the-others"
OTHERS, PLACE = 49, 0


class SplitTransport:
    """One transport to the service of the case, and one inside this process for all other items."""

    def __init__(self, settings) -> None:
        self._real = Transport(settings)

    def send_once(self, request: Request, timeout: float) -> Answer:
        """Make one attempt."""
        if OTHER in request.url or OTHER.encode() in request.body:
            return Answer(201, {}, json.dumps({"id": OTHER, "name": OTHER}).encode())
        return self._real.send_once(request, timeout)


def one_of_fifty(resource: str, **options) -> dict:
    """Return the result of one item among others, in the form of the single module's."""
    plural = PLURALS[resource]
    given = {
        "access_token": "token-of-the-tests",
        "retry_max_delay": 0,
        **LEAST[resource],
        **options,
    }
    item = {name: given.pop(name) for name in list(given) if name in plural.item_options}
    others = [{**LEAST[resource], plural.key: f"{OTHER}-{number}"} for number in range(OTHERS)]
    given[plural.option] = [*others[:PLACE], item, *others[PLACE:]]
    try:
        done = run_list(
            plural, {"max_unknown": 0, "concurrency": 2, **given}, connect=SplitTransport
        )
    except ServicesError as error:
        return Result.of_error(error).as_ansible()
    others = [each for each in done["results"] if each["item"].startswith(OTHER)]
    assert {each["outcome"] for each in others} <= {
        "accepted",
        "not_sent",
    }  # the latter where there is no token
    result = done["results"][PLACE]
    return {
        **{name: value for name, value in result.items() if name != "failed" or value},
        "warnings": done["warnings"],
    }


@pytest.mark.parametrize("resource", [CREATE, UPDATE], ids=["POST", "PUT"])
@pytest.mark.parametrize("case", ROWS)
def test_a_fault_of_one_item_has_the_verdict_of_the_single_module(
    case, resource, tmp_path, authority, monkeypatch
):
    monkeypatch.setattr(socket, "getaddrinfo", ask_a_name_server(socket.getaddrinfo))
    monkeypatch.setattr(laboratory, "run_task", one_of_fifty)
    with lab_of(case, resource, tmp_path, authority) as lab:
        result = run(lab, case)
    assert_verdict(lab, case, resource, result)


def test_every_chosen_row_is_in_the_table():
    assert {case.name for case in CASES} >= CHOSEN
