"""Count the machines after two runs that want three of them, of which the first loses an answer.

python tests/benchmark/safety.py
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import urllib.request
from pathlib import Path

from loops import access, create, create_ledger, uri

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "extensions"))
import emulator.server

NAMES = ["web01", "web02", "web03"]
OVER = {"loop": NAMES}
SCRIPT = """
import os, sys, requests
url = os.environ["INFRASTRUCTURE_SERVICES_BASE_URL"] + "/api/v1/services/compute/virtual_machines"
failed = 0
for name in sys.argv[1:]:
    try:
        body = {"name": name, "attributes": {"cpu": 4}}
        requests.post(url, json=body, headers={"Authorization": "Bearer x"}).raise_for_status()
    except requests.RequestException:
        failed += 1
sys.exit(failed)
"""
TASKS = {
    "uri in a loop": uri("{{ item }}", **OVER),
    "uri with async": uri("{{ item }}", **OVER, **{"async": 60, "poll": 1}),
    "this collection": create("{{ item }}", **OVER),
}


def command(tool: str, directory: Path) -> list[str]:
    """Return the command that creates the machines with a tool."""
    if tool not in TASKS:
        return [sys.executable, "-c", SCRIPT, *NAMES]
    playbook = directory / "playbook.json"
    plays = [{"hosts": "localhost", "gather_facts": False, "tasks": [TASKS[tool]]}]
    playbook.write_text(json.dumps(plays), "utf-8")
    return [str(Path(sys.executable).parent / "ansible-playbook"), str(playbook)]


def machines(tool: str) -> tuple[int, str]:
    """Return the machines after both runs, and what the second one sent and how it ended."""
    with emulator.server.start() as service, tempfile.TemporaryDirectory() as scratch:
        fault = json.dumps({"kind": "drop", "when": "after", "skip": 1}).encode()
        headers = {"Content-Type": "application/json"}
        url = f"{service.url}/_emulator/faults"
        urllib.request.urlopen(urllib.request.Request(url, fault, headers)).close()
        ledger = {
            "INFRASTRUCTURE_SERVICES_LEDGER": create_ledger(f"{scratch}/fleet.db", service.url)
        }
        counts = []
        for _run in range(2):
            done = subprocess.run(
                command(tool, Path(scratch)),
                env={**os.environ, **access(service), **ledger},
                capture_output=True,
                check=False,
            )
            with urllib.request.urlopen(f"{service.url}/_emulator/health") as answer:
                counts.append(json.load(answer)["virtual_machines"])
    how = "fails" if done.returncode else "succeeds"
    return counts[1], f"creates {counts[1] - counts[0]} more and {how}"


def main() -> None:
    """Print a row for each tool; exit with 1 unless this collection creates each machine once."""
    rows = {tool: machines(tool) for tool in (*TASKS, "a script with requests")}
    for tool, (number, second) in rows.items():
        print(f"{tool:25}{number} machines; the second run {second}", flush=True)
    sys.exit(rows["this collection"][0] != len(NAMES))


if __name__ == "__main__":
    main()
