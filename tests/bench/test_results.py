"""Medians, ratios, tables, and the reports of goals."""

from __future__ import annotations

import pytest

from bench.__main__ import BEGIN, END, written
from bench.arguments import MEASURES
from bench.goals import BEST, GOALS, Goal, most
from bench.report import Key, Results
from bench.server import BenchError

OURS = Key("drain100", "draftsman")
PEER = Key("drain100", "peer")


@pytest.fixture
def results() -> Results:
    """Provide three rounds whose median is not their mean."""
    results = Results()
    for own, peer in ((3000.0, 100.0), (1000.0, 400.0), (2000.0, 50.0)):
        results.add(OURS, {"rate": own, "wal_bytes": own})
        results.add(PEER, {"rate": peer})
    results.add(Key("drain100", "draftsman", True), {"rate": 1700.0})
    results.add(Key("idle", "draftsman"), {"p50_ms": 2.0, "p99_ms": 9.0})
    results.add(Key("idle", "draftsman", True), {"p50_ms": 4.0, "p99_ms": 9.0})
    return results


def test_a_ratio_is_that_of_the_medians(results: Results) -> None:
    assert results.median(OURS, "rate") == 2000
    assert results.ratio(OURS, PEER, "rate") == 20
    assert results.median(PEER, "wal_bytes") is None
    assert results.ratio(OURS, Key("drain100", "nobody"), "rate") is None


@pytest.mark.parametrize(
    ("goal", "line"),
    [
        (Goal("drain100", "rate", 16, against="peer"), ("drain100 / peer", "20.0", ">= 16", "met")),
        (
            Goal("drain100", "rate", 25, against="peer"),
            ("drain100 / peer", "20.0", ">= 25", "missed by 20%"),
        ),
        (most("drain100", "wal_bytes", 2000), ("drain100 wal_bytes", "2,000", "<= 2000", "met")),
        (
            most("drain100", "wal_bytes", 1000),
            ("drain100 wal_bytes", "2,000", "<= 1000", "missed by 100%"),
        ),
        (
            Goal("drain100", "rate", 0.9, past=True),
            ("drain100, over a past / without", "0.85", ">= 0.9", "missed by 6%"),
        ),
        (
            Goal("idle", "p50_ms", 0.5, past=True),
            ("idle, over a past / without", "0.50", ">= 0.5", "met"),
        ),
        (
            Goal("idle", "p50_ms", 1, against="peer"),
            ("idle p50_ms / peer", "", ">= 1", "not measured"),
        ),
    ],
)
def test_a_goal_is_met_missed_or_not_measured(
    results: Results, goal: Goal, line: tuple[str, ...]
) -> None:
    assert goal.verdict(results) == line


def test_every_goal_is_of_a_measure() -> None:
    assert {goal.measure for goal in GOALS} <= {*MEASURES}
    assert {goal.plain for goal in GOALS if goal.plain} <= {*MEASURES}


def test_best_peer_is_the_fastest_of_those_measured(results: Results) -> None:
    goal = most("idle", "p50_ms", 1.0, BEST)
    assert goal.verdict(results)[-1] == "not measured"
    for queue, times in (("slow", (5.0, 5.0, 1.0)), ("fast", (2.5, 1.0, 9.0))):
        for time in times:
            results.add(Key("idle", queue), {"p50_ms": time})
    assert goal.verdict(results) == ("idle p50_ms / the best peer", "0.80", "<= 1", "met")
    rate = Goal("drain100", "rate", 20, against=BEST)
    results.add(Key("drain100", "slow"), {"rate": 1.0})
    assert rate.verdict(results) == ("drain100 / the best peer", "20.0", ">= 20", "met")


def test_answer_is_compared_with_the_submissions_between_the_answers(results: Results) -> None:
    results.add(Key("answer", "draftsman"), {"p50_ms": 100.0, "pair": 2.5})
    goal = most("answer", "pair", 2.0)
    assert goal.verdict(results) == ("answer / idle", "2.50", "<= 2", "missed by 25%")


def test_tables_replace_only_the_text_between_the_markers() -> None:
    page = f"before\n{BEGIN}\nold\n{END}\nafter\n"
    assert written(page, "new") == f"before\n{BEGIN}\n\nnew\n\n{END}\nafter\n"
    assert written(written(page, "x"), "new") == written(page, "new")
    with pytest.raises(BenchError, match="has no"):
        written("before\nafter\n", "new")


def test_server_with_default_settings_is_compared_with_the_benchs_own(results: Results) -> None:
    goal = Goal("drain100", "rate", 0.9, host="on PostgreSQL 15")
    assert goal.verdict(results)[1:] == ("", ">= 0.9", "not measured")
    results.add(Key("drain100", "on PostgreSQL 15"), {"rate": 1900.0})
    name, measured, _, verdict = goal.verdict(results)
    assert name == "drain100 on PostgreSQL 15 / on the bench's server"
    assert (measured, verdict) == ("0.95", "met")


def test_server_is_compared_with_the_smallest_statement_on_it(results: Results) -> None:
    host = "on PostgreSQL 15"
    floor = "swap of 100"
    goal = Goal("drain100", "server_us", 1.1, least=False, host=host, floor=floor)
    results.add(OURS, {"server_us": 60.0})
    results.add(Key("drain100", host), {"server_us": 90.0})
    assert goal.verdict(results)[-1] == "not measured"
    results.add(Key("floor", floor), {"server_us": 10.0})
    results.add(Key("floor", f"{floor} {host}"), {"server_us": 15.0})
    assert goal.measured(results) == pytest.approx(1.0)
    assert goal.name.endswith("on the bench's server, / that of a swap of 100")
