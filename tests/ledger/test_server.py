"""What poolers and roles do to a ledger in PostgreSQL."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit
from uuid import uuid4

import psycopg
import pytest
from ansible_collections.infrastructure.services.plugins.module_utils._errors import LedgerError
from ledger.entries import put, states
from ledger.tasks import key, list_task
from ledger.test_postgresql import ENTRY
from ledger.test_together import created, crowd
from support.ledgers import create
from support.waiting import until

STRESS = pytest.mark.stress


@pytest.fixture(params=["", "ignore_startup_parameters = options"])
def pooled(request, database, service) -> Iterator[str]:
    """The URL of a ledger behind PgBouncer, whose transactions share one connection to the server."""
    program = shutil.which("pgbouncer", path=f"{os.environ['PATH']}:/usr/sbin")
    if not program:
        pytest.fail("PgBouncer is missing: apt-get install pgbouncer")
    url = urlsplit(database())
    name, host = url.path[1:], url.query.partition("host=")[2]
    with tempfile.TemporaryDirectory(prefix="pgbouncer-") as directory:
        os.chmod(directory, 0o777)  # it refuses to run as root
        Path(directory, "users.txt").write_text('"postgres" ""\n')
        Path(directory, "pgbouncer.ini").write_text(
            f"[databases]\n{name} = host={host} user=postgres\n[pgbouncer]\nlisten_addr =\n"
            f"listen_port = 6432\nunix_socket_dir = {directory}\nauth_type = trust\n"
            f"auth_file = {directory}/users.txt\npool_mode = transaction\n"
            f"default_pool_size = 1\n{request.param}\n"
        )
        line = [program, f"{directory}/pgbouncer.ini"]
        if os.geteuid() == 0:
            line += ["-u", Path(host).owner()]
        with subprocess.Popen(
            line, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        ) as process:
            until(Path(directory, ".s.PGSQL.6432").exists)
            place = f"postgresql://postgres@:6432/{name}?host={directory}&schema=pooled"
            yield create(place, service.url)
            process.kill()


@pytest.mark.parametrize("again", [0, *(pytest.param(n, marks=STRESS) for n in range(1, 10))])
def test_behind_a_pooler_nothing_is_created_twice(pooled, fork, service, again):
    names = [f"web{number}" for number in range(15)]
    with (
        fork("create_all", pooled, service.url, names) as first,
        fork("create_all", pooled, service.url, names) as second,
    ):
        assert first.result()
        assert second.result()
    assert created(service) == sorted(names)
    said = crowd(fork, pooled, service, 20, "many")
    assert sorted(each["outcome"] for each in said) == ["accepted"] + ["not_sent"] * 19
    again = list_task(pooled, names, base_url=service.url)
    assert again["changed"] is False


GUIDE = Path(__file__).resolve().parents[2] / "docs/docsite/rst/postgresql.rst"


@pytest.fixture
def team(database):
    """Return a function that runs statements as an administrator, one that opens a role's URL, and
    a new role's name.

    In the statements `web` stands for that name: roles are shared by all databases of the server.
    """
    url, name = database(), f"web{uuid4().hex}"

    def administrate(statements: str) -> None:
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute(re.sub(r"\bweb(?![0-9a-f])", name, statements))

    def as_role(role: str, schema: str) -> str:
        found = urlsplit(url)
        host = found.netloc.rpartition("@")[2]
        query = f"{found.query}&schema={schema}"
        return found._replace(netloc=f"{role}@{host}", query=query).geturl()

    yield administrate, as_role, name
    for role in ("web_plan", "web"):
        administrate(f"DROP OWNED BY {role} CASCADE; DROP ROLE {role}")


def test_the_statements_of_the_guide_give_each_team_a_schema(team, opened):
    administrate, as_role, name = team
    (statements,) = re.findall(
        r":caption: administrator\.sql\n\n((?:    .+\n)+)", GUIDE.read_text(encoding="utf-8")
    )
    administrate(statements)
    put(opened(as_role(name, name)), key(name), ENTRY)
    assert len(states(opened(as_role(f"{name}_plan", name)))) == 1
    with pytest.raises(LedgerError, match="permission denied for schema public"):
        opened(as_role(name, "public"))


def test_a_role_that_cannot_create_tables_is_told_so(team, opened):
    administrate, as_role, name = team
    administrate(
        "CREATE ROLE web LOGIN; CREATE ROLE web_plan; CREATE SCHEMA team; GRANT USAGE ON SCHEMA team TO web"
    )
    with pytest.raises(LedgerError, match=r": permission denied for schema team$"):
        opened(as_role(name, "team"))
