"""The fault matrix as one table, in the order in which it is printed."""

from __future__ import annotations

from .bodies import BODIES, GOOD_ANSWERS
from .case import Case
from .inputs import INPUTS
from .messages import FRAMING, HEADERS
from .network import STATUSES, WAY
from .tokens import TOKENS

SECTIONS: dict[str, list[Case]] = {
    "Inputs": INPUTS,
    "Connecting to the service": WAY,
    "Status line and headers": HEADERS,
    "Framing, TLS, encodings and redirects": FRAMING,
    "Bodies": BODIES,
    "Statuses": STATUSES,
    "Tokens": TOKENS,
    "Good answers": GOOD_ANSWERS,
}
CASES = [case for section in SECTIONS.values() for case in section]
