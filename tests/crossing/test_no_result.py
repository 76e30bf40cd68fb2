"""The message about a module that gave no result holds no credential."""

from __future__ import annotations

import json

import pytest
from support.running import Ansible
from support.wire import answer, running

CREATE = "infrastructure.services.compute_virtual_machine"
PASSWORD, TOKEN = (
    "password-in-the-url",
    "Connection",
)  # the second is a word in the error of the connection
FORMS = {
    "one": (CREATE, {"name": "vm"}),
    "list": (f"{CREATE}s", {"virtual_machines": [{"name": "vm"}]}),
}


@pytest.fixture(scope="module")
def ran(collections, tmp_path_factory):
    """Run a creation and a list whose connection is lost after the module has run."""
    with running(lambda sent: answer(201, {"name": "vm"})) as service:
        shared = {
            "base_url": service.url.replace("://", f"://me:{PASSWORD}@"),
            "access_token": TOKEN,
        }
        away = {"ansible_connection": "away", "ansible_away": "late"}
        play = {
            "hosts": "localhost",
            "gather_facts": False,
            "ignore_unreachable": True,
            "vars": away,
            "tasks": [
                {"name": form, module: {**given, **shared}}
                for form, (module, given) in FORMS.items()
            ],
        }
        ansible = Ansible(tmp_path_factory.mktemp("lost"), collections, service.url, "local")
        return ansible.playbook(json.dumps([play]) + "\n", ANSIBLE_PIPELINING="true")


@pytest.mark.matrix
@pytest.mark.parametrize("form", FORMS)
def test_no_credential_is_in_the_message(ran, form):
    result = ran.result(form)
    assert (result["outcome"], result["unreachable"]) == ("unknown", True)
    assert "reset by peer" in result["msg"]
    assert PASSWORD not in ran.output + json.dumps(result)
    assert TOKEN not in result["msg"]
