"""What a module writes to the system log before it does anything: none of its options, so no
credential.
"""

from __future__ import annotations

import pytest
from ansible.module_utils.basic import AnsibleModule
from support import CREATE, UPDATE
from support.front import run_module

CREDENTIALS = {
    "access_token": "s3cret-token",
    "headers": {"X-Api-Key": "s3cret-key", "X-Tenant": "blue"},
    "auth_parameters": {"client_assertion": "s3cret-assertion"},
}
LEAST = {CREATE: {"name": "web01"}, UPDATE: {"id": "role-1", "name": "one"}}


@pytest.mark.parametrize("resource", [CREATE, UPDATE])
def test_the_system_log_contains_no_option(monkeypatch, resource):
    logged: list[str] = []
    monkeypatch.setattr(
        AnsibleModule, "log", lambda self, msg, log_args=None: logged.append(f"{msg} {log_args}")
    )
    run_module(
        resource,
        {"base_url": "https://service.example", **LEAST[resource], **CREDENTIALS},
        check_mode=True,
    )
    assert logged == ["Invoked {}"]
