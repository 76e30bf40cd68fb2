"""The ledger as an inventory, as Ansible's own commands see it: the documented example and every
option.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from ansible.errors import AnsibleParserError
from ansible.inventory.data import InventoryData
from ansible.parsing.dataloader import DataLoader
from ansible_collections.infrastructure.services.plugins.inventory.ledger import (
    EXAMPLES,
    InventoryModule,
)
from ansible_collections.infrastructure.services.plugins.plugin_utils._ledger.entries import (
    DONE,
    UNKNOWN,
    Entry,
    Key,
)
from support.ledgers import opened, put
from support.names import NAMES

URL = "https://infrastructure.example.com"
MINIMAL = "plugin: infrastructure.services.ledger\n"  # the environment names the ledger
DEFAULTS = {
    "strict": True,
    "compose": {},
    "groups": {},
    "keyed_groups": [],
}
TRAP = "{{ lookup('ansible.builtin.pipe', 'touch evaluated') }}"


def machine(name: str, region: str | None = None, **attributes) -> dict:
    """Return an envelope."""
    rest = dict.fromkeys(("description", "platform", "tenant"))
    return {
        **rest,
        "region": region,
        "service": "compute",
        "id": f"id-of-{name}",
        "name": name,
        "attributes": attributes,
    }


DOCUMENTED = [
    machine("web01", region="north", cpu=4, ip="192.0.2.10", team="web"),
    machine("app01", region="south", cpu=None, ip=None, team="platform"),
    machine("app02", region="north", cpu=8, ip="192.0.2.12", team="platform"),
]


@pytest.fixture
def record(tmp_path: Path):
    """Return a function that writes assets into fleet.db."""

    def record(*assets: dict, resource: str = "compute_virtual_machine", state: str = DONE) -> None:
        with opened(str(tmp_path / "fleet.db"), URL) as ledger:
            for asset in assets:
                put(ledger, Key(resource, asset["name"]), Entry(state, {}, asset))

    return record


@pytest.fixture
def listed(tmp_path: Path, monkeypatch):
    """Return a function that returns the hosts of a configuration with their variables, and the
    warnings.
    """

    def listed(**config) -> tuple[dict, str]:
        plugin, inventory, warnings = InventoryModule(), InventoryData(), []
        options = {**DEFAULTS, "ledger": str(tmp_path / "fleet.db"), **config}
        monkeypatch.setattr(
            plugin, "_read_config_data", lambda path: plugin._options.update(options) or options
        )
        monkeypatch.setattr(
            type(plugin.display), "warning", lambda display, text, *_: warnings.append(text)
        )
        plugin.parse(inventory, DataLoader(), str(tmp_path / "fleet.ledger.yml"))
        ours = ("ansible_host", "virtual_machine")
        hosts = {
            name: {key: value for key, value in host.vars.items() if key in ours}
            for name, host in inventory.hosts.items()
        }
        return hosts, " ".join(warnings)

    return listed


@pytest.fixture
def run(tmp_path: Path):
    """Return a function that runs one of Ansible's commands with a configuration of the plugin."""
    found = [each for each in sys.path if (Path(each) / "ansible_collections").exists()]
    environment = {
        **os.environ,
        "ANSIBLE_COLLECTIONS_PATH": found[0],
        "ANSIBLE_CONFIG": str(tmp_path / "ansible.cfg"),
        "ANSIBLE_HOME": str(tmp_path / "home"),
        "ANSIBLE_NOCOLOR": "true",
        "INFRASTRUCTURE_SERVICES_LEDGER": str(tmp_path / "fleet.db"),
        "PYTHONWARNINGS": "ignore",
    }
    (tmp_path / "ansible.cfg").touch()

    def run(command: str, *arguments: str, config: str, **more: str):
        (tmp_path / "fleet.ledger.yml").write_text(config, encoding="utf-8")
        line = [sys.executable, "-m", "ansible", command, "-i", "fleet.ledger.yml", *arguments]
        return subprocess.run(
            line,
            cwd=tmp_path,
            env={**environment, **more},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=120,
            text=True,
            check=False,
        )

    return run


def test_the_example_in_the_plugin_s_documentation_lists_what_it_says(run, record, tmp_path):
    """Beside a source of somebody's own, whose variables win."""
    record(*DOCUMENTED)
    by_hand = {"web01": {"role": "front"}, "app02": {"ansible_host": "192.0.2.99"}}
    (tmp_path / "hosts.yml").write_text(json.dumps({"all": {"hosts": by_hand}}), encoding="utf-8")
    done = run("inventory", "-i", "hosts.yml", "--list", config=EXAMPLES)
    listed = json.loads(done.stdout)
    assert {name: listed[name]["hosts"] for name in ("team_web", "team_platform", "large")} == {
        "team_web": ["web01"],
        "team_platform": ["app01", "app02"],
        "large": ["app02"],
    }
    hosts = listed["_meta"]["hostvars"]
    assert (hosts["web01"]["ansible_host"], hosts["web01"]["role"]) == ("192.0.2.10", "front")
    assert hosts["app02"]["ansible_host"] == "192.0.2.99"


def test_hosts_are_the_machines_in_state_done(listed, record):
    record(machine("web01", ip="192.0.2.1"))
    record(machine("web02"), state=UNKNOWN)
    record(machine("role"), resource="cassandra_application_role")
    asset = machine("web01", ip="192.0.2.1")
    assert listed() == (
        {"web01": {"ansible_host": "192.0.2.1", "virtual_machine": asset}},
        "",
    )


@pytest.mark.parametrize(
    "address",
    [
        "-E/path",
        "-oProxyCommand=x",
        17,
        "fe80::1%-o",
        "{{ 1 }}",
        "web01:22",
        "192.0.2.1/24",
    ],
)
def test_an_invalid_address_raises_a_warning_and_sets_no_ansible_host(listed, record, address):
    record(machine("web01", ip=address))
    hosts, warned = listed()
    assert "ansible_host" not in hosts["web01"]
    assert (
        "web01 gets no ansible_host: its attributes.ip is neither an address nor a host name"
        in warned
    )


@pytest.mark.parametrize(
    "address", ["192.0.2.1", "2001:db8::1", "web01", "web_01.Example.com.", "1-2.example"]
)
def test_an_address_or_a_host_name_is_the_ansible_host(listed, record, address):
    record(machine("web01", ip=address))
    hosts, warned = listed()
    assert (hosts["web01"]["ansible_host"], warned) == (address, "")


@pytest.mark.parametrize(
    ("made", "asked", "is_ours"),
    [
        ("ledger.yml", "ledger.yml", True),
        ("fleet.ledger.yaml", "fleet.ledger.yaml", True),
        ("hosts.yml", "hosts.yml", False),
        ("hosts.yml", "ledger.yml", False),
    ],
)
def test_a_configuration_is_known_by_its_name(tmp_path, made, asked, is_ours):
    (tmp_path / made).touch()
    assert InventoryModule().verify_file(str(tmp_path / asked)) == is_ours


def test_an_empty_ledger_is_a_warning(listed, record, tmp_path):
    record()
    assert listed() == ({}, f"no virtual machine is recorded in {tmp_path / 'fleet.db'}")


@pytest.mark.parametrize(
    ("config", "problem"),
    [
        ({"ledger": "/"}, "is not a regular file"),
        ({"ledger": "fleet.db"}, "neither an absolute path"),
        ({"ledger": "~/fleet.db"}, "neither an absolute path"),
        ({"ledger": "none"}, "none is no ledger, and this needs one"),
        ({}, "there is no ledger at .*/fleet.db. Correct the location, or restore the ledger"),
        ({"ledger": None}, "ledger: is missing: .* INFRASTRUCTURE_SERVICES_LEDGER"),
        ({"ledger": ""}, "ledger: is missing: .* INFRASTRUCTURE_SERVICES_LEDGER"),
        ({"ledger": "{{ x }}"}, "does not evaluate Jinja.* set INFRASTRUCTURE_SERVICES_LEDGER"),
    ],
)
def test_a_ledger_that_cannot_be_read_is_an_error(listed, config, problem):
    with pytest.raises(AnsibleParserError, match=problem):
        listed(**config)


def test_expressions_are_data(run, record, tmp_path):
    """Nothing recorded is evaluated: as an address, variable or group."""
    record(machine("web01", ip=TRAP, team=TRAP))
    config = MINIMAL + yaml.safe_dump(
        {
            "keyed_groups": [{"key": "virtual_machine.attributes.team"}],
            "compose": {"team": "virtual_machine.attributes.team"},
        }
    )
    shown = ("inventory_hostname", "ansible_host", "team", "virtual_machine")
    tasks = [{"ansible.builtin.debug": {"msg": f"{{{{ {name} }}}}"}} for name in shown]
    play = {"hosts": "all", "gather_facts": False, "connection": "local", "tasks": tasks}
    (tmp_path / "play.yml").write_text(json.dumps([play]), encoding="utf-8")
    done = run("playbook", "play.yml", config=config)
    assert done.stdout.count("touch evaluated") >= 3, f"{done.stdout}{done.stderr}"
    assert not (tmp_path / "evaluated").exists()


RECORDABLE = [case for case in NAMES if not NAMES[case].exists]


@pytest.mark.parametrize("case", RECORDABLE)
def test_a_name_that_is_no_host_name_is_left_out_with_a_warning(listed, record, case):
    """Whatever it was recorded by."""
    name = NAMES[case].value
    record(machine(name, ip="192.0.2.1"), machine("web09", ip="192.0.2.9"))
    hosts, warnings = listed()
    assert sorted(hosts) == sorted([name, "web09"] if NAMES[case].is_host else ["web09"])
    told = warnings.count("is left out, because it is not the name of a host")
    assert told == (not NAMES[case].is_host)
    assert warnings.isprintable()
