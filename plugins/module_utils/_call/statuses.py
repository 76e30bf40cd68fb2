# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What each status of an answer means (RFC 9110): the one place that knows status codes.

A status belongs to one event of the policy in `_retry`; the text is what the service, whose error bodies are
empty (interface.md section 7), does not say. `{noun}`, `{missing}` and `{exists}` come from the operation.
"""

from __future__ import annotations

# What can happen to one attempt; the rows of the policy.
SUCCESS = "success"
NO_TOKEN = "no token"
UNSENT = "unsent"
UNSENT_HOPELESS = "unsent and no use in repeating"
LOST = "lost"
THROTTLED = "throttled"
UNAVAILABLE = "unavailable"
SERVER_ERROR = "server error"
IRREGULAR = "irregular status"
UNAUTHORIZED = "unauthorized"
REFUSED = "refused"
ANSWER_CUT = "accepted, answer cut"
ANSWER_UNUSABLE = "accepted, answer unusable"

_STATUSES = {
    400: (REFUSED, "the service found the request malformed; check the options against its documentation"),
    401: (
        UNAUTHORIZED,
        "the service did not accept the access token; check access_token, or auth_url and its client",
    ),
    403: (REFUSED, "the token is valid but lacks the permission for this operation; ask for it, or use another client"),
    404: (REFUSED, "{missing}"),
    405: (REFUSED, "the address knows no such method; base_url is probably that of something else"),
    407: (REFUSED, "the proxy wants credentials; put them into the proxy's URL, or set use_proxy: false"),
    408: (UNAVAILABLE, "the service or a gateway gave up waiting for the request"),
    409: (REFUSED, "{exists}"),
    410: (REFUSED, "the address is gone for good; check base_url"),
    411: (REFUSED, "a gateway wants a length that was sent; check what stands between"),
    412: (REFUSED, "a precondition that a gateway added does not hold"),
    413: (REFUSED, "the body is larger than the service or a gateway takes; send fewer fields"),
    414: (REFUSED, "the address is longer than the service or a gateway takes"),
    415: (REFUSED, "the service does not take application/json here; base_url is probably that of something else"),
    421: (REFUSED, "the request reached a server that does not serve this host; check base_url and the proxy"),
    422: (REFUSED, "the service read the request but not with these values; check names and types in attributes"),
    423: (REFUSED, "the {noun} is locked; try again when it is free"),
    425: (REFUSED, "the service does not take the request this early in a connection; run the task again"),
    428: (REFUSED, "the service wants a conditional request, which its interface does not describe"),
    429: (THROTTLED, "too many requests; run fewer at once, or raise retries and retry_max_delay"),
    431: (REFUSED, "the headers are larger than the service or a gateway takes; the access token is probably too long"),
    451: (REFUSED, "refused for legal reasons"),
    500: (SERVER_ERROR, "the service failed inside; its owner can look up the request"),
    501: (SERVER_ERROR, "the server does not know this method; base_url is probably that of something else"),
    502: (UNAVAILABLE, "a gateway got no valid answer from the service"),
    503: (UNAVAILABLE, "the service or a gateway is overloaded or in maintenance"),
    504: (UNAVAILABLE, "a gateway waited for the service in vain"),
    505: (SERVER_ERROR, "the server does not take HTTP/1.1"),
    507: (SERVER_ERROR, "the service has no room left"),
    511: (SERVER_ERROR, "the network wants a login first (a captive portal)"),
}
_CLASSES = {
    2: (SUCCESS, "the service accepted the request"),
    3: (
        REFUSED,
        "a redirect, which is never followed: body and token would go elsewhere; set base_url to the final address",
    ),
    4: (REFUSED, "the service refused the request"),
    5: (SERVER_ERROR, "the service failed"),
}
_IRREGULAR = (IRREGULAR, "not a final status of HTTP; something else than the service answers at base_url")


def event_of(status: int) -> str:
    """Return the event, a row of the policy, that an answer with this status is."""
    return _meaning(status)[0]


def text_of(status: int, **words: str) -> str:
    """Return what the status means, in the words of the operation (`noun`, `missing`, `exists`)."""
    return _meaning(status)[1].format(**words)


def _meaning(status: int) -> tuple[str, str]:
    return _STATUSES.get(status) or _CLASSES.get(status // 100, _IRREGULAR)
