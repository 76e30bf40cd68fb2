"""`python -m emulator` as a process: options, ready file, exit, and the messages when it cannot
start.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import emulator as package
import pytest
import requests
import trustme
from emulator.__main__ import main

EXTENSIONS = Path(package.__file__).parents[1]
COMMAND = (sys.executable, "-m", "emulator")


def environment(first: Path | None = None) -> dict[str, str]:
    path = os.pathsep.join(str(one) for one in (first, EXTENSIONS) if one)
    return {**os.environ, "PYTHONPATH": path, "PYTHONDONTWRITEBYTECODE": "1"}


def test_it_is_ready_when_it_says_so_and_exits_when_told(tmp_path):
    ready, authority = tmp_path / "ready", trustme.CA()
    ready.write_text("of an earlier run\nwhich is gone\n")
    certificate = tmp_path / "certificate.pem"
    authority.issue_cert("127.0.0.1").private_key_and_cert_chain_pem.write_to_path(certificate)
    authority.cert_pem.write_to_path(tmp_path / "ca.pem")
    options = f"""
        --ready-file {ready} --prefix /p --tls-certificate {certificate} --seed-role r1 --seed-role r2
        --token t --client-id i --client-secret s --lenient --put replace --delay 0.5 --delay token=0
        --rate 50 --capacity 16 --queue 0 --retry-after 2 --set create_status=202 --set scopes=["a"]
    """
    process = subprocess.Popen(
        [*COMMAND, *options.split()], env=environment(), stdout=subprocess.PIPE, text=True
    )
    try:
        url = process.stdout.readline().rstrip()
        assert ready.read_text() == f"{url}\n"
        with requests.Session() as session:
            session.verify, session.trust_env = str(tmp_path / "ca.pem"), False
            settings = session.get(f"{url}/_emulator/settings", timeout=5).json()
            health = session.get(f"{url}/_emulator/health", timeout=5).json()
    finally:
        process.send_signal(signal.SIGINT)
        output = process.communicate(timeout=10)[0]
    assert (process.returncode, output) == (0, "")
    assert url.startswith("https://127.0.0.1:")
    assert url.endswith("/p")
    assert health["application_roles"] == 2
    expected = {
        "token": "t",
        "client_id": "i",
        "client_secret": "s",
        "required": "lenient",
        "put": "replace",
        "create_status": 202,
        "scopes": ["a"],
        "expires_in": 3600,
        "delay": {"any": 0.5, "token": 0},
        "rate": 50,
        "capacity": 16,
        "queue": 0,
        "retry_after": 2,
    }
    assert {name: settings[name] for name in expected} == expected
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "ca.pem",
        "certificate.pem",
        "ready",
    ]


@pytest.fixture
def _signals_arrive() -> Iterator[None]:
    """Let signals arrive again, which the emulator waits for."""
    yield
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT, signal.SIGTERM})


@pytest.mark.usefixtures("_signals_arrive")
@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("--set", "create_status=404"), "create_status cannot be 404"),
        (("--set", "put=merge"), "'merge' is not JSON"),
        (("--rate", "0"), "rate cannot be 0"),
        (("--delay", "tokens=1"), "delay cannot be"),
        (("--set", "typo=1"), "with any of"),
        (("--host", "192.0.2.1"), "cannot start"),
        (("--tls-certificate", "missing.pem"), "No such file"),
        (("--ready-file", "missing/directory/ready"), "No such file"),
    ],
)
def test_a_failed_start_says_why(arguments, says):
    assert says in main(arguments)
