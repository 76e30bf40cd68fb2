"""Odd names and ids, and what each entry of the collection makes of them."""

from __future__ import annotations

from typing import Any, NamedTuple

EMPTY = "must not be empty, . or .."
LONG = "has 256 characters; 255 is the most"
CONTROL = "has a control character"
LEFT = "contains a mask of a secret or the placeholder of omit"
ALIKE = "looks like another name"
NUMBER = "must be a string (write '0017', or {{ x | string }} for a number: "


class Name(NamedTuple):
    """A name or id, and how its refusal begins after the option; empty: it is accepted."""

    value: Any
    new: str = ""  # as the name of a machine to create
    exists: str = ""  # as an id, or as the name of what exists
    is_host: bool = False  # as the name of a recorded machine, whether it is a host


NAMES = {
    "a word": Name("web01", is_host=True),
    "a full name": Name("web_01.Example.com", is_host=True),
    "digits": Name("0017", is_host=True),
    "another script": Name("größer", is_host=True),
    "a picture": Name("web \N{ROCKET}"),
    "a blank within": Name("Büro 2"),
    "an option of ssh": Name("-oProxyCommand=touch evaluated"),
    "another folder": Name("../../x"),
    "a slash": Name("web/01"),
    "a backslash": Name("web\\01"),
    "dots": Name("..", EMPTY, EMPTY),
    "a template": Name("{{ 1 }}"),
    "every host": Name("all"),
    "hosts of no group": Name("ungrouped"),
    "the controller": Name("localhost"),
    "255 characters": Name("x" * 255, is_host=True),
    "256 characters": Name("x" * 256, LONG, LONG),
    "3,000 characters": Name("x" * 3000, "has 3,000 characters", "has 3,000 characters"),
    "empty": Name("", EMPTY, EMPTY),
    "blanks": Name(" \t", EMPTY, EMPTY),
    "a line break at its end": Name("web02\n", CONTROL, CONTROL),
    "a NUL character": Name("web\x0002", CONTROL, CONTROL),
    "an escape": Name("web\x1b[2J", CONTROL, CONTROL),
    "a C1 control": Name("web\x9b2J", CONTROL, CONTROL),
    "a lone surrogate": Name("web\ud800", CONTROL, CONTROL),
    "a blank at its end": Name("web02 ", ALIKE),
    "a blank in front": Name(" web02", ALIKE),
    "a no-break space": Name("web\u00a002", ALIKE),
    "a zero width space": Name("web\u200b02", ALIKE),
    "a byte order mark": Name("\ufeffweb02", ALIKE),
    "another direction": Name("web\u202e20", ALIKE),
    "a line separator": Name("web\u202802", ALIKE),
    "a variation selector": Name("web02\ufe0f", ALIKE),
    "a filler": Name("web02\u3164", ALIKE),
    "decomposed": Name("cafe\u0301", ALIKE),
    "no character yet": Name("web\U000e0080", ALIKE),
    "a mask": Name("web-********", LEFT, LEFT),
    "a mask of an option": Name("VALUE_SPECIFIED_IN_NO_LOG_PARAMETER", LEFT, LEFT),
    "an omitted value": Name(f"web-__omit_place_holder__{'a' * 40}", LEFT, LEFT),
    "an octal number": Name(0o17, NUMBER, NUMBER),
    "a fraction": Name(12.1, NUMBER, NUMBER),
    "yes": Name(True, NUMBER, NUMBER),
    "a list": Name(["web01"], "must be a string", "must be a string"),
}
