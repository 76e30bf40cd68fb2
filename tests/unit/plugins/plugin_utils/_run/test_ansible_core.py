"""What the collection uses of ansible-core beyond its public API: present in this core, and used in
one file only.
"""

from __future__ import annotations

import ast
import inspect
import json
import subprocess
import sys
from contextlib import suppress

import pytest
from ansible import constants
from ansible.errors import AnsibleConnectionFailure
from ansible.inventory.data import InventoryData
from ansible.inventory.host import Host
from ansible.module_utils.basic import AnsibleModule
from ansible.playbook.play_context import PlayContext
from ansible.playbook.role import Role
from ansible.playbook.task import Task
from ansible.plugins.action import ActionBase
from ansible.plugins.connection import ConnectionBase
from ansible.plugins.connection.local import Connection as LocalConnection
from ansible.plugins.connection.ssh import Connection as SSHConnection
from ansible.plugins.loader import connection_loader
from ansible.plugins.shell import ShellBase
from ansible.utils.display import Display
from ansible_collections.infrastructure.services.plugins.plugin_utils._run import ansible_core
from support.checkout import CHECKOUT

FILE = "plugins/plugin_utils/_run/ansible_core.py"
# Methods of ActionBase that ansible_core.py overrides or calls, with the arguments that it passes.
METHODS = {
    "_compute_environment_string": ("raw_environment_out",),
    "_execute_module": ("module_args", "task_vars", "wrap_async"),
    "_low_level_execute_command": ("cmd", "sudoable"),
    "_remove_tmp_path": ("tmp_path", "force"),
}
# Attributes that only this file uses.
PRIVATE = {
    *METHODS,
    "_bare_run",
    "_connection",
    "_display",
    "_internal",
    "_loader",
    "_parent",
    "_play",
    "_role",
    "_shell",
    "_task",
    "_templar",
}
# The same of the module on the target.
OWN = {"plugins/module_utils/_task/module.py": {"_load_params", "_diff"}}
KEYWORDS = [
    "action",
    "args",
    "async_val",
    "check_mode",
    "diff",
    "environment",
    "no_log",
    "retries",
    "timeout",
    "until",
]


def names_in(file: str) -> set[str]:
    """Return the attributes that a file uses and does not set, and parts of imports from ansible."""
    tree = ast.parse((CHECKOUT / file).read_text(encoding="utf-8"))
    attributes = [node for node in ast.walk(tree) if isinstance(node, ast.Attribute)]
    own = {node.attr for node in attributes if isinstance(node.ctx, ast.Store)}
    imported = [node.module or "" for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
    parts = {part for name in imported if name.startswith("ansible.") for part in name.split(".")}
    return {node.attr for node in attributes} - own | parts


@pytest.mark.parametrize("method", METHODS)
def test_the_method_accepts_the_arguments_it_gets(method):
    parameters = inspect.signature(getattr(ActionBase, method)).parameters
    assert [name for name in METHODS[method] if name not in parameters] == []


@pytest.mark.parametrize(
    ("owner", "attribute"),
    [
        (ActionBase, "_connection"),
        (ActionBase, "_task"),
        (ActionBase, "_templar"),
        (AnsibleModule, "_load_params"),
        (ConnectionBase, "_shell"),
        (ConnectionBase, "become"),
        (LocalConnection, "transport"),
        (SSHConnection, "_bare_run"),
        (Task, "_role"),
        (Role, "get_role_params"),
        (ShellBase, "env_prefix"),
        (ShellBase, "tmpdir"),
        (Display, "columns"),
        (Host, "vars"),
        (InventoryData, "hosts"),
        (constants, "LOCALHOST"),
        (constants, "DEFAULT_LOCAL_TMP"),
        *((Task, keyword) for keyword in KEYWORDS),
    ],
)
def test_the_attribute_exists(owner, attribute):
    assert hasattr(owner, attribute) or attribute in inspect.getsource(owner)


@pytest.fixture
def ssh():
    """A connection of ssh that repeats a command three times."""
    connection = connection_loader.get("ssh", PlayContext())
    connection.set_option("reconnection_retries", 3)
    return connection


def test_a_connection_repeats_commands_as_before_once_a_creation_has_ended(ssh):
    before = ssh._bare_run
    with suppress(AnsibleConnectionFailure), ansible_core.running_once(ssh):
        assert ssh.get_option("reconnection_retries") == 0
        raise AnsibleConnectionFailure("lost")
    assert (ssh.get_option("reconnection_retries"), ssh._bare_run) == (3, before)


OTHERS = [path.relative_to(CHECKOUT).as_posix() for path in (CHECKOUT / "plugins").rglob("*.py")]


@pytest.mark.parametrize("file", [file for file in OTHERS if file != FILE])
def test_no_other_file_uses_it(file):
    others = {name for names in OWN.values() for name in names} - OWN.get(file, set())
    assert names_in(file).isdisjoint(PRIVATE | others)


def test_a_python_that_is_too_old_is_recognized_by_the_message_of_this_core():
    start = "import sys; sys.version_info = (2, 0); import ansible.module_utils.basic"
    done = subprocess.run(
        [sys.executable, "-c", start], capture_output=True, text=True, check=False, timeout=60
    )
    assert ansible_core.is_python_too_old(json.loads(done.stdout))
    assert not ansible_core.is_python_too_old({"msg": "MODULE FAILURE: Ansible requires more"})
