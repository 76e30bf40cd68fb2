"""Good answers, cut after each of their bytes, by an end of stream and by a reset."""

from __future__ import annotations

import pytest
from support import CREATE, UPDATE
from support.service import Peer

from .behaviors import END_OF_HEAD, answers, chunked, close_delimited, once, whole
from .case import Case
from .lab import Lab, assert_agreement, asset_is_whole, lab_of, run

STRIDE = 37  # between the cuts of an ordinary run; `make stress` makes every cut
FRAMINGS = {"length": whole, "chunked": chunked, "close": close_delimited}


def cuts(length: int, stride: int) -> list[int]:
    """Return after how many bytes to cut: all positions, or each `stride`th and those of the last
    line ends.
    """
    return sorted({*range(0, length + 1, stride), *range(max(0, length - 8), length + 1)})


def check_cut(lab: Lab, result: dict, at: int, answer: bytes, *, by_fin: bool) -> None:
    """A POST reports what is known of its one attempt; a PUT is sent again and succeeds."""
    told = f"cut after {at} of {len(answer)} bytes: {result.get('msg', 'ok')}"
    complete = at >= len(answer)
    assert_agreement(lab, result, told)
    if "failed" not in result:
        assert complete or result["request_attempts"] == 2, told
        assert asset_is_whole(lab, result), told
    else:
        assert lab.resource == CREATE, told
        assert not (complete and by_fin), told
        assert result["outcome"] == ("accepted" if END_OF_HEAD in answer[:at] else "unknown"), told


@pytest.mark.parametrize(
    "stride", [STRIDE, pytest.param(1, marks=pytest.mark.stress)], ids=["some", "all"]
)
@pytest.mark.parametrize("end", [Peer.fin, Peer.rst], ids=["FIN", "RST"])
@pytest.mark.parametrize("tls", ["", "server"], ids=["http", "https"])
@pytest.mark.parametrize("resource", [CREATE, UPDATE], ids=["POST", "PUT"])
@pytest.mark.parametrize("make", FRAMINGS.values(), ids=FRAMINGS)
def test_cut_answers(make, resource, tls, end, stride, tmp_path, authority):
    case = Case(tls=tls)
    with lab_of(case, resource, tmp_path, authority) as lab:
        assert run(lab, case)["outcome"] == "accepted"
        answer = make(lab.service.envelopes[-1])
        for at in cuts(len(answer), stride):
            lab.service.begin(once(answers(lambda body, at=at: make(body)[:at], end)))
            check_cut(lab, run(lab, case), at, answer, by_fin=end is Peer.fin)
