"""The world outside makes an effect once for an invocation id, and tells what was asked."""

from __future__ import annotations

from pathlib import Path

from draftsman_tui.soak.outside import Effects, Outside, Request, effects


def test_the_same_invocation_again_makes_nothing_and_gets_the_first_value(tmp_path: Path) -> None:
    outside = Outside(tmp_path, 7)
    first = outside.make(1, "send", "i1")
    outside.recorded(1, "send")
    assert outside.make(2, "send", "i1") == first == outside.find("i1")
    assert outside.make(2, "send", "i2") != first
    assert outside.find("i3") is None
    found = effects(tmp_path, 7)
    assert found.made["i1"] == ("send", first)
    assert set(found.made) == {"i1", "i2"}
    asked = Request(2, "send", recorded=False)
    assert found.requests == (
        Request(1, "send", recorded=False),
        Request(1, "send", recorded=True),
        asked,
        asked,
    )


def test_a_job_that_made_nothing_has_no_effects(tmp_path: Path) -> None:
    assert effects(tmp_path, 8) == Effects()
    Outside(tmp_path, 8).recorded(1, "send")
    assert effects(tmp_path, 8).made == {}
