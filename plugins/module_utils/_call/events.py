# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What can happen to one attempt: the rows of the retry policy."""

from __future__ import annotations

from enum import Enum


class Event(Enum):
    """One thing that can happen to an attempt."""

    SUCCESS = "success"
    TOKEN_UNAVAILABLE = "token unavailable"
    UNSENT = "unsent"
    UNSENT_HOPELESS = "unsent and no use in repeating"
    UNANSWERED = "unanswered"
    THROTTLED = "throttled"
    UNAVAILABLE = "unavailable"
    SERVER_ERROR = "server error"
    IRREGULAR = "irregular status"
    UNAUTHORIZED = "unauthorized"
    REDIRECTED = "redirected"
    REFUSED = "refused"
    ANSWER_CUT = "accepted, answer cut"
    ANSWER_UNUSABLE = "accepted, answer unusable"
