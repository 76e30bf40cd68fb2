# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The ledger as an inventory, as Ansible's own commands see it: the documented example and every
option.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from functools import partial
from pathlib import Path

import ansible.template
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
from ansible_collections.infrastructure.services.plugins.plugin_utils._ledger.location import (
    open_ledger,
)
from ledger.entries import put

URL = "https://infrastructure.example.com"
MINIMAL = "plugin: infrastructure.services.ledger\nledger: fleet.db\n"
DEFAULTS = {
    "address": "attributes.ip",
    "cache": False,
    "strict": True,
    "compose": {},
    "groups": {},
    "keyed_groups": [],
    "base_url": None,
    "tenants": None,
    "regions": None,
    "platforms": None,
}
# Since ansible-core 2.19, only such a text is a template.
trusted = getattr(ansible.template, "trust_as_template", str)
TRAP = "{{ lookup('ansible.builtin.pipe', 'touch evaluated') }}"


def machine(name: str, region: str | None = None, **attributes) -> dict:
    """Return an envelope."""
    rest = {
        "description": None,
        "platform": None,
        "region": region,
        "service": "compute",
        "tenant": None,
    }
    return {**rest, "id": f"id-of-{name}", "name": name, "attributes": attributes}


DOCUMENTED = [
    machine("web01", region="north", cpu=4, ip="192.0.2.10", team="web"),
    machine("app01", region="south", cpu=None, ip=None, team="platform"),
    machine("app02", region="north", cpu=8, ip="192.0.2.12", team="platform"),
]


def record_into(
    file: Path,
    *assets: dict,
    base_url: str = URL,
    resource: str = "compute_virtual_machine",
    state: str = DONE,
) -> None:
    """Write assets into a ledger."""
    ledger = open_ledger(str(file))
    for asset in assets:
        put(ledger, Key(base_url, resource, asset["name"]), Entry(state, {}, asset))
    ledger.close()


@pytest.fixture
def record(tmp_path: Path):
    """Return a function that writes assets into fleet.db."""
    return partial(record_into, tmp_path / "fleet.db")


def environment(directory: Path) -> dict[str, str]:
    """Return what Ansible's own commands need to find the collection, and nothing else of the
    user's.
    """
    (directory / "ansible.cfg").touch()
    collections = next(
        entry for entry in sys.path if (Path(entry) / "ansible_collections/infrastructure").exists()
    )
    return {
        **os.environ,
        "ANSIBLE_COLLECTIONS_PATH": collections,
        "ANSIBLE_CONFIG": str(directory / "ansible.cfg"),
        "ANSIBLE_HOME": str(directory / "home"),
        "ANSIBLE_NOCOLOR": "true",
        "PYTHONWARNINGS": "ignore",
    }


@pytest.fixture
def listed(tmp_path: Path, monkeypatch):
    """Return a function that returns the hosts of a configuration with their variables, and the
    warnings.
    """

    def listed(before: InventoryData | None = None, **config) -> tuple[dict, str]:
        plugin, inventory, warnings = InventoryModule(), before or InventoryData(), []
        options = {**DEFAULTS, "ledger": "fleet.db", **config}
        monkeypatch.setattr(
            plugin, "_read_config_data", lambda path: plugin._options.update(options) or options
        )
        monkeypatch.setattr(
            type(plugin.display), "warning", lambda display, text, *_: warnings.append(text)
        )
        plugin.parse(inventory, DataLoader(), str(tmp_path / "fleet.ledger.yml"))
        ours = ("ansible_host", "compute_virtual_machine")
        hosts = {
            name: {key: value for key, value in host.vars.items() if key in ours}
            for name, host in inventory.hosts.items()
        }
        return hosts, " ".join(warnings)

    return listed


@pytest.fixture
def run(tmp_path: Path):
    """Return a function that runs one of Ansible's commands with a configuration of the plugin."""

    def run(
        command: str,
        *arguments: str,
        config: str = MINIMAL,
        name: str = "fleet.ledger.yml",
        **more: str,
    ):
        (tmp_path / name).write_text(config, encoding="utf-8")
        line = [sys.executable, "-m", "ansible", command, "-i", str(tmp_path / name), *arguments]
        return subprocess.run(
            line,
            cwd=tmp_path,
            env={**environment(tmp_path), **more},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=120,
            text=True,
            check=False,
        )

    return run


# What `ansible-inventory --list` does, for several inventories in one process.
LISTING = """if True:
    import json, os, sys
    from ansible.inventory.manager import InventoryManager
    from ansible.parsing.dataloader import DataLoader
    from ansible.plugins.loader import init_plugin_loader
    init_plugin_loader()
    found = {}
    for name, (sources, environment) in json.loads(sys.argv[1]).items():
        os.environ.update(environment)
        inventory = InventoryManager(DataLoader(), sources)
        groups = {group.name: [host.name for host in group.get_hosts()] for group in inventory.groups.values()}
        hostvars = {host.name: host.vars for host in inventory.get_hosts()}
        found[name] = {"groups": groups, "hostvars": hostvars}
    print(json.dumps(found, default=str))
"""


@pytest.fixture(scope="module")
def inventories(tmp_path_factory) -> dict:
    """What Ansible makes of several inventories: the groups and the variables of the hosts of each."""
    directory = tmp_path_factory.mktemp("inventories")
    example, mixed, named = (directory / name for name in ("example", "mixed", "named"))
    for place, recorded in (
        (example, DOCUMENTED),
        (mixed, [machine("web01", ip="192.0.2.1"), machine("web02", ip="192.0.2.2")]),
        (named, [machine("web01")]),
    ):
        place.mkdir()
        record_into(place / "fleet.db", *recorded)
    (example / "fleet.ledger.yml").write_text(EXAMPLES, encoding="utf-8")
    (mixed / "fleet.ledger.yml").write_text(
        MINIMAL + "compose: {team: '\"composed\"'}\n", encoding="utf-8"
    )
    (mixed / "hosts.yml").write_text(
        yaml.safe_dump(
            {
                "all": {
                    "hosts": {
                        "web01": {"role": "front"},
                        "web02": {"ansible_host": "192.0.2.99", "team": "by hand"},
                    }
                }
            }
        ),
        encoding="utf-8",
    )
    (named / "fleet.ledger.yml").write_text(
        "plugin: infrastructure.services.ledger\n", encoding="utf-8"
    )
    ours, theirs = str(mixed / "fleet.ledger.yml"), str(mixed / "hosts.yml")
    cases = {
        "example": ([str(example / "fleet.ledger.yml")], {}),
        "ours first": ([ours, theirs], {}),
        "ours last": ([theirs, ours], {}),
        "named": (
            [str(named / "fleet.ledger.yml")],
            {"INFRASTRUCTURE_SERVICES_LEDGER": str(named / "fleet.db")},
        ),
    }
    done = subprocess.run(
        [sys.executable, "-c", LISTING, json.dumps(cases)],
        cwd=directory,
        timeout=120,
        text=True,
        env=environment(directory),
        capture_output=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_the_example_in_the_plugin_s_documentation_lists_what_it_says(inventories):
    groups = inventories["example"]["groups"]
    assert {name: groups[name] for name in ("team_web", "team_platform", "large")} == {
        "team_web": ["web01"],
        "team_platform": ["app01", "app02"],
        "large": ["app02"],
    }


@pytest.mark.parametrize("order", ["ours first", "ours last"])
def test_the_order_of_the_sources_does_not_matter(inventories, order):
    hosts = inventories[order]["hostvars"]
    assert (hosts["web01"]["ansible_host"], hosts["web01"]["role"]) == ("192.0.2.1", "front")
    assert (hosts["web02"]["ansible_host"], hosts["web02"]["team"]) == ("192.0.2.99", "by hand")
    assert hosts["web01"]["team"] == "composed"


def test_the_environment_can_name_the_ledger(inventories):
    assert list(inventories["named"]["hostvars"]) == ["web01"]


def test_a_host_is_in_the_groups_and_has_the_variables_of_the_configuration(listed, record):
    record(*DOCUMENTED)
    inventory = InventoryData()
    attributes = "compute_virtual_machine.attributes"
    listed(
        inventory,
        keyed_groups=[{"key": trusted(f"{attributes}.team"), "prefix": "team"}],
        groups={"large": trusted(f"{attributes}.cpu | default(0, true) >= 8")},
        compose={"ansible_user": trusted("'deploy'")},
    )
    groups = {name: [str(host) for host in group.hosts] for name, group in inventory.groups.items()}
    assert groups["team_platform"] == ["app01", "app02"]
    assert groups["large"] == ["app02"]
    assert inventory.hosts["web01"].vars["ansible_user"] == "deploy"


def test_hosts_are_the_machines_in_state_done(listed, record):
    record(machine("web01", ip="192.0.2.1"))
    record(machine("web02"), state=UNKNOWN)
    record(machine("role"), resource="cassandra_application_role")
    asset = machine("web01", ip="192.0.2.1")
    assert listed() == (
        {"web01": {"ansible_host": "192.0.2.1", "compute_virtual_machine": asset}},
        "",
    )


@pytest.mark.parametrize(
    ("config", "names"),
    [
        ({}, "web01 app01 app02"),
        ({"base_url": "https://Infrastructure.example.com:443/"}, "web01 app01 app02"),
        ({"base_url": "https://other.example.com"}, ""),
    ],
    ids=str,
)
def test_base_url_narrows_the_list(listed, record, config, names):
    record(*DOCUMENTED)
    hosts, warned = listed(**config)
    assert set(hosts) == set(names.split())
    assert ("the ledger has no virtual machine that matches" in warned) is (not names)


def test_the_address_is_read_from_the_configured_path(listed, record):
    record(
        machine("web01", ip="192.0.2.1", subnet={"gateway": "192.0.2.254"}),
        machine("web02", subnet=None),
    )
    hosts, _warned = listed(address="attributes.subnet.gateway")
    assert hosts["web01"]["ansible_host"] == "192.0.2.254"
    assert "ansible_host" not in hosts["web02"]


@pytest.mark.parametrize(
    "address", ["attributes.ip.v4", "attributes.vip", "vip", "vip.a", "attributes.none.a"]
)
def test_a_path_that_leads_nowhere_gives_no_address_and_no_warning(listed, record, address):
    record(machine("web01", ip="192.0.2.1", none=None))
    hosts, warned = listed(address=address)
    assert "ansible_host" not in hosts["web01"]
    assert "ansible_host" not in warned


def test_a_name_that_is_already_taken_is_skipped_with_a_warning(listed, record):
    record(*(machine(name, region="first") for name in ("all", "localhost", "web01")))
    record(machine("web01", region="second"), base_url="https://other.example.com")
    hosts, warned = listed()
    assert [hosts[name]["compute_virtual_machine"]["region"] for name in hosts] == ["first"]
    for left_out in (f"all of {URL}", f"localhost of {URL}", "web01 of https://other.example.com"):
        assert f"{left_out} is left out" in warned


def test_a_host_from_two_sources_merges_variables_and_manual_ones_win(listed, record):
    record(machine("web01", ip="192.0.2.1"), machine("web02", ip="192.0.2.2"))
    before = InventoryData()
    for name in ("web01", "web02"):
        before.add_host(name)
    before.set_variable("web02", "ansible_host", "192.0.2.99")
    hosts, warned = listed(before)
    assert {name: host["ansible_host"] for name, host in hosts.items()} == {
        "web01": "192.0.2.1",
        "web02": "192.0.2.99",
    }
    assert hosts["web02"]["compute_virtual_machine"]["name"] == "web02"
    assert warned == ""


@pytest.mark.parametrize(
    "address",
    [
        "-E/path",
        "-oProxyCommand=x",
        "a b",
        "a;b",
        "web01 -p 1",
        "a" * 64,
        "a..b",
        "-a.example",
        "a-.example",
        17,
        ["a"],
        {"a": 1},
        "fe80::1%-o",
        "192.0.2.1/24",
        "a\n",
        "{{ 1 }}",
        ".".join(["a" * 63] * 5),
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


def test_neither_requests_nor_psycopg_is_imported():
    code = """if True:
        import sys
        sys.path.insert(0, sys.argv[1])
        from ansible_collections.infrastructure.services.plugins.inventory import ledger
        sys.exit(bool({"requests", "psycopg"} & {*sys.modules}))"""
    collections = next(
        entry for entry in sys.path if (Path(entry) / "ansible_collections/infrastructure").exists()
    )
    subprocess.run([sys.executable, "-c", code, collections], check=True)


def test_a_missing_or_empty_ledger_is_a_warning(listed, record, tmp_path):
    hosts, warned = listed()
    assert (hosts, list(tmp_path.iterdir())) == ({}, [])
    assert f"no ledger at {tmp_path / 'fleet.db'} yet" in warned
    record()
    hosts, warned = listed()
    assert hosts == {}
    assert "the ledger has no virtual machine" in warned


@pytest.mark.parametrize(
    ("config", "problem"),
    [
        ({"ledger": "."}, "is a directory"),
        ({"ledger": "http://s"}, "must be a path"),
        ({"base_url": "https://user:password@s"}, "^base_url: contains a user name or password"),
    ],
)
def test_a_ledger_that_cannot_be_read_is_an_error(listed, config, problem):
    with pytest.raises(AnsibleParserError, match=problem):
        listed(**config)


@pytest.mark.parametrize(
    ("name", "ours"),
    [
        ("ledger.yml", True),
        ("x.ledger.yaml", True),
        ("fleet.yml", False),
        ("ledger.yml.bak", False),
    ],
)
def test_the_name_of_the_file_decides(tmp_path, name, ours):
    (tmp_path / name).touch()
    assert InventoryModule().verify_file(str(tmp_path / name)) is ours


def test_the_cache_keeps_the_hosts_and_expressions_are_data(run, record, tmp_path):
    """Nothing recorded is evaluated: as a name, address, variable or group; read afresh or from the
    cache.
    """
    record(machine("web01", ip=TRAP, team=TRAP), machine(TRAP))
    config = MINIMAL + yaml.safe_dump(
        {
            "cache": True,
            "cache_plugin": "ansible.builtin.jsonfile",
            "cache_connection": str(tmp_path / "cache"),
            "keyed_groups": [{"key": "compute_virtual_machine.attributes.team"}],
            "compose": {"team": "compute_virtual_machine.attributes.team"},
        }
    )
    (tmp_path / "play.yml").write_text(
        yaml.safe_dump(
            [
                {
                    "hosts": "all",
                    "gather_facts": False,
                    "connection": "local",
                    "tasks": [
                        {"ansible.builtin.debug": {"msg": f"{{{{ {variable} }}}}"}}
                        for variable in (
                            "inventory_hostname",
                            "ansible_host",
                            "team",
                            "compute_virtual_machine",
                        )
                    ],
                }
            ]
        ),
        encoding="utf-8",
    )
    for source in ("ledger", "cache"):
        done = run("playbook", "play.yml", config=config)
        assert done.stdout.count("touch evaluated") > 7, (
            f"from the {source}: {done.stdout}{done.stderr}"
        )
        assert not (tmp_path / "evaluated").exists()
        (tmp_path / "fleet.db").unlink(missing_ok=True)
    assert "web01" not in run("inventory", "--graph", "--flush-cache", config=config).stdout


@pytest.mark.parametrize(
    "name",
    [
        "-oProxyCommand=touch evaluated",
        "--",
        " web01",
        "\tweb01",
        "\u00a0web01",
        "web01\nweb02",
        "web\x1b[2J",
        "web\x00",
        "web\u2028",
        "web\u202e10",
        "\n-oProxyCommand=x",
    ],
)
def test_a_name_that_ssh_could_take_for_an_option_is_left_out_with_a_warning(listed, record, name):
    record(machine(name, ip="192.0.2.1"), machine("web09", ip="192.0.2.9"))
    hosts, warnings = listed()
    assert list(hosts) == ["web09"]
    assert warnings.count("is left out: its name") == 1
    assert warnings.isprintable()


@pytest.mark.parametrize("name", ["web-01", "web01 ", "web 01", "user@web", "w\u00e9b"])
def test_any_other_name_is_a_host(listed, record, name):
    record(machine(name, ip="192.0.2.1"))
    hosts, warnings = listed()
    assert (list(hosts), warnings) == ([name], "")


def test_a_host_name_is_never_an_option_of_ssh(run, record, tmp_path):
    """No address is recorded, so that the name is all that ssh would get."""
    record(machine("-oProxyCommand=touch evaluated"), machine("web01"))
    (tmp_path / "ssh").write_text("#!/bin/sh\nprintf '%s\\n' \"$@\" >> arguments\nexit 255\n")
    (tmp_path / "ssh").chmod(0o755)
    run(
        "adhoc",
        "all",
        "-m",
        "ansible.builtin.raw",
        "-a",
        "true",
        ANSIBLE_SSH_EXECUTABLE=str(tmp_path / "ssh"),
    )
    sent = (tmp_path / "arguments").read_text().splitlines()
    assert "web01" in sent
    assert not [argument for argument in sent if "touch evaluated" in argument]


TEMPLATE = """plugin: infrastructure.services.ledger
ledger: "{{ lookup('ansible.builtin.env', 'FLEET_DIRECTORY') }}/fleet.db"
"""


def test_the_ledger_may_be_a_template(run, record, tmp_path):
    record(machine("web01", ip="192.0.2.1"))
    done = run("inventory", "--list", config=TEMPLATE, FLEET_DIRECTORY=str(tmp_path))
    assert json.loads(done.stdout)["_meta"]["hostvars"].keys() == {"web01"}, done.stderr


@pytest.mark.parametrize(
    ("config", "variables", "says"),
    [
        ('plugin: infrastructure.services.ledger\nledger: "{{ nothing }}/x"\n', {}, "nothing"),
        ("plugin: infrastructure.services.ledger\nledger: \"{{ '' }}\"\n", {}, "it is empty"),
        (
            "plugin: infrastructure.services.ledger\n",
            {"INFRASTRUCTURE_SERVICES_LEDGER": ""},
            "it is empty",
        ),
        (
            "plugin: infrastructure.services.ledger\n",
            {"INFRASTRUCTURE_SERVICES_LEDGER": "{{ 1 }}/none/x.db"},
            "{{ 1 }}",
        ),
    ],
)
def test_a_template_or_a_variable_without_a_ledger_is_an_error(run, config, variables, says):
    done = run(
        "inventory",
        "--list",
        config=config,
        ANSIBLE_INVENTORY_ANY_UNPARSED_IS_FAILED="true",
        **variables,
    )
    assert done.returncode != 0
    said = "".join(done.stderr.split())  # ansible-core breaks a line anywhere in a long path
    assert "".join(says.split()) in said
    assert "Traceback" not in done.stderr
