# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A service that gives each case its own answers: a case is the first segment of the path."""

from __future__ import annotations

import socketserver
import threading
from collections import defaultdict
from itertools import takewhile
from typing import Iterable, Mapping

from support.wire import Last, Sent


class Service(socketserver.ThreadingTCPServer):
    """`sent`: for each case, the requests that it made."""

    daemon_threads = True

    def __init__(self, answers: Mapping[str, Iterable[bytes]]) -> None:
        super().__init__(("127.0.0.1", 0), _Connection)
        self.url = f"http://127.0.0.1:{self.server_address[1]}"
        self._answers = answers
        self.reset()
        threading.Thread(target=self.serve_forever, args=(0.02,), daemon=True).start()

    def reset(self) -> None:
        """Begin anew, with all answers to be given."""
        self.connections = 0
        self.sent: dict[str, list[Sent]] = defaultdict(list)
        self._left = {case: list(answers) for case, answers in self._answers.items()}

    def answer_to(self, sent: Sent) -> bytes:
        """Return the case's next answer; one request too many is answered by the end of the connection."""
        case = sent.target.split("/")[1]
        self.sent[case].append(sent)
        return self._left[case].pop(0) if self._left.get(case) else Last()


class _Connection(socketserver.StreamRequestHandler):
    timeout = 10
    disable_nagle_algorithm = True

    def handle(self) -> None:
        self.server.connections += 1
        number = self.server.connections
        while head := b"".join(takewhile(lambda line: line not in (b"", b"\r\n"), self.rfile)):
            length = [line for line in head.splitlines() if line.lower().startswith(b"content-length:")]
            body = self.rfile.read(int(length[0].split(b":")[1])) if length else b""
            said = self.server.answer_to(Sent(head, body, number))
            self.wfile.write(said)
            if isinstance(said, Last):
                return
