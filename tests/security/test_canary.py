"""No secret is in any output, result or file, whatever happens: each secret option holds a
recognisable one.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import pytest
from support.service import Service

from .canary import CLIENT_ID, SECRETS, echo, found_below, found_in
from .conftest import ON_TARGET

LEAST = {
    "compute_virtual_machine": {"name": "web01"},
    "cassandra_application_role": {"id": "r1", "name": "app"},
}


def lookup(name: str) -> str:
    """Return the expression for a secret: the playbook contains none, they come from the
    environment of the command.
    """
    return f"{{{{ lookup('env', 'CANARY_{name.upper()}') }}}}"


TOKEN = {"access_token": lookup("token")}
CLIENT = {"client_id": CLIENT_ID, "client_secret": lookup("client")}
PARAMETER = {"auth_parameters": {"assertion": lookup("parameter")}}


class Scene(NamedTuple):
    """What happens in a task: how service and token endpoint answer, which secrets they echo, the
    options.
    """

    service: str
    secrets: str
    options: dict
    endpoint: str = "granted"
    check: bool = False


def fetched(service: str, endpoint: str = "granted", **options: object) -> Scene:
    """Return a scene whose token is fetched, using every option for that."""
    return Scene(service, "fetched-client-parameter", {**CLIENT, **PARAMETER, **options}, endpoint)


GATEWAY = {"headers": {"Ocp-Apim-Subscription-Key": lookup("plain")}}
REFUSALS = ("forbidden", "unauthorized", "error", "moved", "malformed", "html", "list", "lost")
SCENES = {
    "good, given token": Scene("good", "token", TOKEN),
    "good, all secrets": Scene("good", "token-client-parameter", {**TOKEN, **CLIENT, **PARAMETER}),
    "good, fetched token": fetched("good"),
    "good, client in the form": fetched("good", client_authentication="post"),
    **{name: fetched(name) for name in REFUSALS},
    **{
        f"no token, {name}": fetched("good", name)._replace(secrets="client-parameter")
        for name in ("unusable", "denied", "cut", "lost", "html")
    },
    "key of a gateway, good": Scene("good", "token-plain", {**TOKEN, **GATEWAY}),
    "key of a gateway, forbidden": Scene("forbidden", "token-plain", {**TOKEN, **GATEWAY}),
    "refused connection": fetched("good", base_url="http://127.0.0.1:9"),
    "token endpoint not there": fetched("good", auth_url="http://127.0.0.1:9"),
    "token that is a list": Scene("lost", "token", {"access_token": list(TOKEN.values())}),
    "secret with a line break": fetched("good", client_secret=lookup("client") + "\n"),
    "parameter that is a key": fetched("good", auth_parameters={lookup("parameter"): {}}),
    "parameters as text": fetched("good", auth_parameters=f"assertion={lookup('plain')}")._replace(
        secrets="client-plain"
    ),
    "another option is wrong": fetched("good", **TOKEN, timeout="soon"),
    "check": Scene("good", "token", {**TOKEN, **CLIENT, **PARAMETER}, check=True),
    "check, wrong option": Scene(
        "good", "token", {**TOKEN, **CLIENT, **PARAMETER, "timeout": "soon"}, check=True
    ),
}


def tasks(url: str, module: str, in_process: bool) -> list[dict]:
    """Return a task for each scene, and tasks that show and keep their results."""
    made = []
    for number, (name, scene) in enumerate(SCENES.items()):
        addresses = {
            "base_url": f"{url}/{scene.service}/{scene.secrets}",
            "auth_url": f"{url}/{scene.endpoint}/{scene.secrets}",
        }
        quick = {"retries": 0, "connect_timeout": 2, "timeout": 10}
        task = {
            "name": name,
            f"infrastructure.services.{module}": {
                **LEAST[module],
                **addresses,
                **quick,
                **scene.options,
            },
            "register": f"result_{number}",
            "ignore_errors": True,
            "check_mode": scene.check,
            **({} if in_process else ON_TARGET),
        }
        made.append(task)
    results = ", ".join(f"result_{number}" for number in range(len(SCENES)))
    kept = {
        "content": f"{{{{ [{results}] }}}} {{{{ [{results}] | to_json }}}}",
        "dest": "{{ playbook_dir }}/results",
    }
    facts = f"{{{{ {module} }}}} {{{{ ansible_facts }}}}"
    shown = {"ansible.builtin.debug": {"var": "every"}, "vars": {"every": f"{{{{ [{results}] }}}}"}}
    return [*made, shown, {"ansible.builtin.copy": kept}, {"ansible.builtin.debug": {"msg": facts}}]


@pytest.fixture
def service() -> Iterator[Service]:
    """Run the service that echoes everything."""
    with Service(echo) as running:
        yield running


@pytest.mark.parametrize(
    "in_process",
    [
        pytest.param(True, id="in process"),
        pytest.param(False, id="as a module", marks=pytest.mark.matrix),
    ],
)
def test_no_secret_in_a_playbook_run(ansible, service, in_process):
    module = sorted(LEAST)[in_process]
    secrets = {f"CANARY_{name.upper()}": secret for name, secret in SECRETS.items()}
    run = ansible(
        "ansible-playbook",
        "-vvvv",
        "--diff",
        tasks=tasks(service.url, module, in_process),
        **secrets,
    )
    assert run.rc == 0, run.output
    assert "Traceback" not in run.output
    assert run.output.count("TASK [") == len(SCENES) + 3
    assert found_in(run.output.encode()) == []
    assert found_below(run.directory) == []
    sent = {request.headers.get("authorization") for request in service.received}
    assert {f"Bearer {SECRETS[name]}" for name in ("token", "fetched")} <= sent, (
        "the secrets were not used"
    )


@pytest.mark.matrix
def test_no_log_hides_the_items_of_a_list(ansible, service):
    """Since 2.19, Ansible itself shows the message, and warnings."""
    module = "infrastructure.services.compute_virtual_machines"
    url = f"{service.url}/forbidden/token"
    options = {**TOKEN, "base_url": url, "virtual_machines": [{"name": "web01"}]}
    token = {"CANARY_TOKEN": SECRETS["token"]}
    shown = []
    for no_log in (True, False):
        task = {module: options, "no_log": no_log, "ignore_errors": True}
        run = ansible("ansible-playbook", "-vvvv", tasks=[task], **token)
        assert run.rc == 0, run.output
        shown.append('"item": "web01"' in run.output)
    assert shown == [False, True], run.output
