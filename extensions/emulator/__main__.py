# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""`python -m emulator`: run the emulator until SIGTERM or SIGINT."""

from __future__ import annotations

import argparse
import json
import os
import signal
import ssl
import sys
from pathlib import Path
from typing import Sequence

NEEDS = {"h11": "h11", "jsonschema": "jsonschema", "yaml": "PyYAML"}
try:
    from .server import start
except ModuleNotFoundError as missing:
    if missing.name not in NEEDS:
        raise
    sys.exit(
        f"the emulator needs {missing.name}: {sys.executable} -m pip install {' '.join(NEEDS.values())}"
    )


def arguments(argv: Sequence[str]) -> argparse.Namespace:
    """Parse the command line."""
    parser = argparse.ArgumentParser(
        prog="python -m emulator", description="A fake Infrastructure Service."
    )
    _add_address(parser)
    _add_tokens(parser)
    _add_service(parser)
    _add_capacity(parser)
    return parser.parse_args(argv)


def _add_address(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("--host", default="127.0.0.1", help="address to listen on (default: %(default)s)")
    add("--port", type=port, default=0, help="port to listen on; 0 takes a free one (default)")
    add(
        "--ready-file",
        type=Path,
        metavar="FILE",
        help="receives the base URL, one line, once the emulator listens",
    )
    add("--prefix", default="", metavar="PATH", help="prefix of every path of the service")
    add(
        "--tls-certificate",
        type=Path,
        metavar="FILE",
        help="serve https with this certificate chain and key (PEM)",
    )


def _add_tokens(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add(
        "--token",
        help="the only valid access token besides those the token endpoint issues (default: any)",
    )
    add("--client-id", help="the only client id accepted by the token endpoint (default: any)")
    add(
        "--client-secret",
        help="the only client secret accepted by the token endpoint (default: any)",
    )


def _add_service(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add(
        "--seed-role",
        action="append",
        default=[],
        metavar="ID",
        help="an application role to start with; repeatable",
    )
    add(
        "--strict",
        dest="required",
        action="store_const",
        const="strict",
        help="a create needs name and attributes",
    )
    add(
        "--lenient",
        dest="required",
        action="store_const",
        const="lenient",
        help="no field is required",
    )
    add(
        "--put",
        choices=("merge", "replace"),
        help="what an update does to the fields that are not sent",
    )
    add(
        "--set",
        action="append",
        default=[],
        metavar="NAME=JSON",
        help="a setting, such as create_status=202",
    )


def _add_capacity(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add(
        "--delay",
        action="append",
        default=[],
        type=delay,
        metavar="[OPERATION=]SECONDS",
        help="time of a request",
    )
    add("--rate", type=int, metavar="N", help="requests per second; any more are answered with 429")
    add(
        "--capacity",
        type=int,
        metavar="N",
        help="requests processed at once; the others wait in a queue",
    )
    add(
        "--queue",
        type=int,
        metavar="N",
        help="requests that may wait in the queue; any more are answered with 503",
    )
    add("--retry-after", type=int, metavar="SECONDS", help="Retry-After of those answers")


def port(text: str) -> int:
    """Return the number of `--port`; raise ArgumentTypeError if it is none of a port."""
    if text.isascii() and text.isdigit() and len(text) <= 5 and int(text) <= 65535:
        return int(text)
    raise argparse.ArgumentTypeError(f"{text!r} is not a number from 0 to 65535")


def delay(text: str) -> tuple[str, float]:
    """Return the operation and the seconds of `--delay`; raise ArgumentTypeError for no number."""
    operation, _equals, seconds = text.rpartition("=")
    try:
        return operation or "any", float(seconds)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{seconds!r} is not a number of seconds") from None


def settings(options: argparse.Namespace) -> dict[str, object]:
    """Return the settings that were given; raise ValueError for a `--set` that is not NAME=JSON."""
    named = (
        "token",
        "client_id",
        "client_secret",
        "required",
        "put",
        "rate",
        "capacity",
        "queue",
        "retry_after",
    )
    given = {name: getattr(options, name) for name in named if getattr(options, name) is not None}
    if options.delay:
        given["delay"] = dict(options.delay)
    for item in options.set:
        name, _equals, value = item.partition("=")
        try:
            given[name] = json.loads(value)
        except ValueError:
            raise ValueError(f"--set {name}: {value!r} is not JSON") from None
    return given


def announce(url: str, ready_file: Path | None) -> None:
    """Print the URL and write it to the file atomically."""
    if ready_file is not None:
        unfinished = ready_file.with_name(f"{ready_file.name}.{os.getpid()}")
        unfinished.write_text(f"{url}\n", encoding="ascii")
        unfinished.replace(ready_file)
    sys.stdout.write(f"{url}\n")
    sys.stdout.flush()


def serve(options: argparse.Namespace) -> None:
    """Run until SIGTERM or SIGINT; raise OSError or ValueError if it cannot start."""
    stop = {signal.SIGINT, signal.SIGTERM}
    signal.pthread_sigmask(
        signal.SIG_BLOCK, stop
    )  # before any thread starts, so that each of them inherits it
    if options.ready_file is not None:
        options.ready_file.unlink(
            missing_ok=True
        )  # of an earlier run: it would announce a server that is gone
    context = None
    if options.tls_certificate is not None:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(options.tls_certificate)
    with start(
        options.host, options.port, options.seed_role, options.prefix, context, **settings(options)
    ) as running:
        announce(running.url, options.ready_file)
        signal.sigwait(stop)


def main(argv: Sequence[str]) -> str | None:
    """Run the emulator; return an error message in one line, None on success."""
    try:
        serve(arguments(argv))
    except (OSError, ValueError) as error:
        return f"the emulator cannot start: {error}"
    return None


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
