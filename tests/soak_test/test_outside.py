"""Simulated external system: idempotent effects and recorded requests."""

from __future__ import annotations

from pathlib import Path

from draftsman_soak.external_effects import EffectRequest, Effects, ExternalSystem, read_effects


def test_a_repeated_invocation_makes_no_effect_and_gets_the_first_value(tmp_path: Path) -> None:
    outside = ExternalSystem(tmp_path, 7)
    first = outside.make(1, "send", "i1")
    outside.recorded(1, "send")
    assert outside.make(2, "send", "i1") == first == outside.find("i1")
    assert outside.make(2, "send", "i2") != first
    assert outside.find("i3") is None
    effects = read_effects(tmp_path, 7)
    assert effects.created["i1"] == ("send", first)
    assert set(effects.created) == {"i1", "i2"}
    request = EffectRequest(2, "send", recorded=False)
    assert effects.requests == (
        EffectRequest(1, "send", recorded=False),
        EffectRequest(1, "send", recorded=True),
        request,
        request,
    )


def test_a_job_without_an_effect_has_no_effects(tmp_path: Path) -> None:
    assert read_effects(tmp_path, 8) == Effects()
    ExternalSystem(tmp_path, 8).recorded(1, "send")
    assert read_effects(tmp_path, 8).created == {}
