"""Checks of the request of a label."""

from __future__ import annotations

import pytest

from draftsman_bots.trello.records.board import LabelRule
from tests.bots.trello.inbound.conftest import TrelloBotHarness


async def test_a_label_with_an_unknown_agent_creates_no_job(
    bench: TrelloBotHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With an embedded database, whose workers all have this configuration."""
    checks = bench.rt.request_checks
    monkeypatch.setattr(checks, "_embedded", True)
    await bench.watch(labels={bench.label: LabelRule(name="draftsman", agent="ghost")})
    bench.card("Fix the parser", labels=[bench.label])
    await bench.poll()
    assert await bench.jobs() == []
    (problem,) = bench.context.health.problems.values()
    assert "unknown agent 'ghost'; available: tidy" in problem
