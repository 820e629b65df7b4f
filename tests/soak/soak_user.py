"""Attacks of a process in the sandbox mode `user`, with and without Landlock; needs root."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from draftsman.sandbox import landlock
from tests.attacks.catalog import OPEN
from tests.attacks.probe_report import attack_report

pytestmark = [
    pytest.mark.timeout(120),
    pytest.mark.skipif(os.geteuid() != 0, reason="the mode user needs root"),
]


@pytest.mark.parametrize("has_landlock", [True, False])
async def test_attacks_have_no_effect_but_those_that_the_page_names(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, has_landlock: bool
) -> None:
    if not has_landlock:
        monkeypatch.setattr(landlock, "abi", lambda: 0)
    report = await attack_report("user", tmp_path)
    worked = {name for name, result in report.items() if not result.startswith("failed")}
    assert worked == OPEN["user"] | {"mode"}, report
