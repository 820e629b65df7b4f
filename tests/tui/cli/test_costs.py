"""`budgets` and `costs`."""

from __future__ import annotations

from draftsman.costs.budgets import CallEstimate
from draftsman.database.database import Connection
from draftsman.errors import Failure
from draftsman.ids import new_id
from draftsman.runtime import Runtime
from draftsman_testing.factories import QUESTION, Factory
from tests.support.budgets import set_budgets
from tests.tui.cli.cli_runner import Cli


async def test_budgets_are_listed_with_their_use(
    cli: Cli, rt: Runtime, make: Factory, conn: Connection
) -> None:
    assert "no budgets: [budgets] of the configuration has none" in (await cli("budgets")).err
    assert (await cli("budgets", "--json")).json == []
    await set_budgets(
        conn,
        call={"output_tokens": 500},
        job={"cost_usd": 5},
        repo={"*": {"cost_usd": 50}},
        all={"cost_usd": 200, "input_tokens": 1000},
    )
    work = await make.running(repo="https://git.example.org/acme/shop")
    await rt.model_calls.record(work.lease, {"cost_usd": 3.5, "input_tokens": 70}, "m")
    await rt.model_calls.reserve(work.lease, new_id(), CallEstimate("m", 10, 10, 0.25))
    lines = [line.split() for line in (await cli("budgets")).out.splitlines()]
    day = lines[1][6]
    assert lines == [
        ["SCOPE", "STATUS", "LEFT", "BUDGET", "USED", "DAY", "RESERVED"],
        ["all", "jobs", "open", "$196.25", "$200.00", "$3.50", day, "$0.25"],
        [
            *("all", "jobs", "open", "920", "input", "tokens", "1,000", "input", "tokens"),
            *("70", "input", "tokens", day, "10", "input", "tokens"),
        ],
        ["each", "call", "open", "500", "output", "tokens"],
        ["each", "job", "open", "$5.00"],
        [work.name, "open", "$1.25", "$5.00", "$3.50", "$0.25"],
        ["each", "repo", "open", "$50.00"],
        ["repo", "git.example.org/acme/shop", "open", "$46.25", "$50.00", "$3.50", day, "$0.25"],
    ]
    large = (await cli("budgets", "--where", "left>100")).out.splitlines()
    assert [line.split()[3] for line in large[1:]] == ["$196.25", "920"]
    uses = (await cli("budgets", "--json")).json
    assert {use["name"]: use["used"] for use in uses if use["measure"] == "cost_usd"} == {
        "all:*": 3.5,
        "job:*": 0,
        f"job:{work.number}": 3.5,
        "repo:*": 0,
        "repo:git.example.org/acme/shop": 3.5,
    }


async def test_costs_are_grouped(cli: Cli, rt: Runtime, make: Factory, conn: Connection) -> None:
    assert "no costs" in (await cli("costs")).err
    first = await make.running(repo="https://git.example.org/acme/shop", agent="codex")
    await rt.model_calls.record(first.lease, {"cost_usd": 3.5, "input_tokens": 7000}, "large")
    second = await make.running()
    await rt.model_calls.record(second.lease, {"cost_usd": 0.25, "output_tokens": 5}, "small")
    await conn.execute(
        "INSERT INTO draftsman.daily_costs VALUES"
        " (draftsman.budget_day() - 7, 'old', 'anna', '', 'small', 2, 9, 1, 1)"
    )
    lines = [line.split() for line in (await cli("costs")).out.splitlines()]
    assert lines == [
        ["NAME", "COST", "SHARE", "CALLS", "INPUT", "OUTPUT"],
        ["git.example.org/acme/shop", "$3.50", "93%", "1", "7,000", "0"],
        ["none", "$0.25", "7%", "1", "0", "5"],
        ["total", "$3.75", "100%", "2", "7,000", "5"],
    ]
    models = (await cli("costs", "--by", "model", "--since", "8d", "--json")).json
    assert [(cost["value"], cost["cost_usd"]) for cost in models] == [
        ("small", 9.25),
        ("large", 3.5),
    ]
    days = (await cli("costs", "--by", "day", "--since", "30d", "--json")).json
    assert [cost["cost_usd"] for cost in days] == [9, 3.75], "in the order of the days"
    assert (await cli("costs", "--since", "1s", "--by", "agent", "--json")).json[0]["value"] == (
        "codex"
    )
    refused = await cli("costs", "--since", "0s")
    assert (refused.code, "out of range" in refused.err) == (2, True), refused.err


async def test_budgets_are_listed_before_a_worker_applies_them_and_for_jobs_that_wait(
    cli: Cli, rt: Runtime, make: Factory, conn: Connection
) -> None:
    with cli.config.open("a", encoding="utf-8") as config:
        config.write("\n[budgets.job]\ncost_usd = 5\n[budgets.repo.shop]\ninput_tokens = 9\n")
    listed = await cli("budgets")
    assert [line.split() for line in listed.out.splitlines()[1:]] == [
        ["each", "job", "inactive", "$5.00"],
        ["repo", "shop", "inactive", "9", "input", "tokens"],
    ]
    assert "not in effect: each job, repo shop; a worker that becomes the leader" in listed.err
    waiting = await make.running()
    paused = await make.running()
    for work in (waiting, paused):
        await rt.model_calls.reserve(work.lease, None, CallEstimate("", 0, 0, 0), {"cost_usd": 2})
    await rt.asking.ask(waiting.lease, QUESTION)
    await rt.job_control.pause(paused.number, make.owner, "noon")
    await rt.settlement.failure(paused, Failure("busy", http_status=503))
    await set_budgets(conn, job={"cost_usd": 5}, repo={"shop": {"input_tokens": 9}})
    listed = await cli("budgets")
    assert listed.err == ""
    assert [line.split()[0] for line in listed.out.splitlines()[1:]] == [
        *("each", waiting.name, paused.name, "repo")
    ]
    await rt.job_control.cancel(waiting.number, make.owner)
    assert waiting.name not in (await cli("budgets")).out
