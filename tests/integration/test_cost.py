"""What an item of a loop costs, measured by its processes, imports and connections."""

from __future__ import annotations

VM = "infrastructure.services.compute_virtual_machine"
ITEMS = 50
LOOP = f"""
- name: Create
  {VM}:
    name: "web{{{{ item }}}}"
    attributes: {{cpu: 4}}
  loop: "{{{{ range({ITEMS}) | list }}}}"
"""


def test_a_later_item_of_a_loop_opens_a_connection_and_starts_and_imports_nothing(
    ansible_once, service, tmp_path
):
    audit = tmp_path / "audit"
    run = ansible_once.tasks(
        LOOP, ANSIBLE_CALLBACKS_ENABLED="recorder,auditor", AUDITOR_FILE=str(audit)
    ).ok()
    assert len(run.items("Create")) == len(service.conversation()) == ITEMS
    lines = audit.read_text(encoding="utf-8").splitlines()
    assert lines[0] == "imported True", "the parent does not import what the workers need"
    assert lines.count("item") == ITEMS
    places = [place for place, line in enumerate(lines) if line == "item"]
    # After the last item the worker may be exiting, when Python itself imports modules.
    assert set(lines[places[1] : places[-1]]) == {"item", "socket.connect"}, (
        "a later item does more than send its request"
    )
    assert [line for line in lines if line.startswith("socket.")] == ["socket.connect"] * ITEMS
    # Before the first item Ansible itself may start a process: ansible-core 2.21 asks ldconfig
    # where libcrypt is.
    assert not [line for line in lines[places[0] :] if line.startswith(("os.", "subprocess."))]
