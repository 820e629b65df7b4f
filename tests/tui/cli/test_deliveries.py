"""The `deliveries` and `redeliver` commands, and targets of `submit --notify`."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from draftsman.deliveries.delivery import Unconfirmed
from draftsman.errors import Failure
from draftsman.repos.repo_catalog import Repo
from draftsman.repos.repo_profile import profile
from draftsman.repos.repo_url import parse
from draftsman.runtime import Runtime
from draftsman_testing.factories import Factory
from draftsman_testing.outbox import LOG, RECEIPT, claim, deliveries_of, send_all
from tests.support.clock import Clock
from tests.tui.cli.cli_runner import Cli, Terminal
from tests.tui.cli.conftest import As


async def _dead(make: Factory, rt: Runtime, count: int = 1) -> list[int]:
    for _ in range(count):
        await make.queued(**LOG)
    failure = Failure("the disk is full", declared="PERMANENT")
    claimed = await claim(rt)
    for item in claimed:
        await rt.delivery_sender.record(item, failure)
    return sorted(item.seq for item in claimed)


async def test_an_empty_list_of_deliveries_shows_how_to_add_a_target(
    cli: Cli, make: Factory
) -> None:
    for args in (("deliveries",), ("deliveries", "--job", await make.queued())):
        done = await cli(*args)
        assert (done.code, done.out) == (0, "")
        assert "draftsman submit --notify log" in done.err
    listed = await cli("deliveries", "--status", "dead_letter")
    assert listed.err == "no dead letter deliveries\n"
    assert (await cli("deliveries", "--json")).json == []


async def test_deliveries_are_listed_newest_first(cli: Cli, make: Factory, rt: Runtime) -> None:
    work = await make.asked(**LOG)
    other = await make.queued(notify=("slack:C1/17.5",))
    (status,) = await claim(rt)
    await rt.delivery_sender.record(status, Unconfirmed("the reply was cut"))
    done = await cli("deliveries")
    rows = [line.split() for line in done.out.splitlines()]
    assert rows[0][:6] == ["ID", "JOB", "KIND", "TARGET", "STATUS", "ATTEMPTS"]
    assert rows[1][1:6] == [f"D-{other}", "status", "slack:C1/17.5", "pending", "0"]
    assert rows[2][1:6] == [f"D-{work.number}/1", "question", "log", "pending", "0"]
    assert rows[3][1:6] == [f"D-{work.number}", "status", "log", "unconfirmed", "1"]
    assert "no reply: the reply was cut" in done.out
    listed = (await cli("deliveries", "--job", work.name, "--limit", 1, "--json")).json
    assert [row["kind"] for row in listed] == ["question"]
    listed = (await cli("deliveries", "--status", "unconfirmed", "--json")).json
    assert [(row["seq"], row["in_doubt"], row["attempts"]) for row in listed] == [
        (status.seq, True, 1)
    ]


async def test_an_unknown_status_is_refused_with_those_there_are(cli: Cli) -> None:
    (await cli("deliveries", "--status", "gone")).refused(2, "'dead_letter'")


async def test_a_dead_letter_delivery_is_sent_again(cli: Cli, make: Factory, rt: Runtime) -> None:
    (seq,) = await _dead(make, rt)
    done = await cli("redeliver", seq)
    assert done.out == "1 delivery queued to resend\n"
    (item,) = await send_all(rt)
    assert (item.seq, item.in_doubt) == (seq, True)
    assert "nothing to redeliver" in (await cli("redeliver", seq)).refused(
        1, "is sent, not a dead letter"
    )
    (await cli("redeliver", 999)).refused(3, "there is no delivery 999")


async def test_deliveries_of_a_job_or_of_all_jobs_are_sent_again(
    cli: Cli, make: Factory, rt: Runtime
) -> None:
    seqs = await _dead(make, rt, 3)
    job = (await rt.outbox.all())[0].job
    assert (await cli("redeliver", "--job", job, "--json")).json == [seqs[-1]]
    assert (await cli("redeliver", "--dead-letters", "--json", "--yes")).json == seqs[:-1]
    done = await cli("redeliver", "--dead-letters")
    assert (done.code, done.out, done.err) == (
        0,
        "nothing to resend: no dead-letter deliveries\n",
        "",
    )


async def test_sending_many_deliveries_again_is_confirmed(
    cli: Cli, make: Factory, rt: Runtime, terminal: Callable[..., Terminal]
) -> None:
    seqs = await _dead(make, rt, 5)
    (await cli("redeliver", "--dead-letters")).refused(2, "Resend 5 deliveries?", "--yes")
    screen = terminal("redeliver", "--dead-letters")
    screen.expect("Resend 5 deliveries? A copy that may have arrived")
    screen.type("n\n")
    assert screen.end() == 1
    assert await rt.outbox.dead_letter_count() == 5
    assert (await cli("redeliver", "--dead-letters", "--yes", "--json")).json == seqs


@pytest.mark.parametrize("args", [(), ("17", "--dead-letters"), ("--job", "D-1", "--dead-letters")])
async def test_redeliver_requires_a_selection(cli: Cli, args: tuple[str, ...]) -> None:
    (await cli("redeliver", *args)).refused(2, "specify one of")


async def test_only_an_operator_can_redeliver(as_: As, make: Factory, rt: Runtime) -> None:
    (seq,) = await _dead(make, rt)
    done = await as_("anna")("redeliver", seq)
    done.refused(1, "may not redeliver", "operator")
    assert (await as_("olga")("redeliver", seq)).code == 0


async def test_a_request_names_its_targets(cli: Cli, rt: Runtime) -> None:
    arguments = ["--type", "noop", "--notify", "log", "--notify", "slack:C1"]
    message = (
        "--notify slack:C1: not configured; add [slack] (draftsman help --page slack); to submit"
    )
    (await cli("submit", *arguments)).refused(2, message)
    assert (await cli("submit", *arguments, "--unchecked")).code == 0
    _configure(cli, 'slack.bot_token.env = "BOT"', 'slack.app_token.env = "APP"')
    done = await cli("submit", *arguments, "--json")
    targets = await rt.outbox.targets(done.json["number"])
    assert [(row.channel, row.target) for row in targets] == [("log", "log"), ("slack", "C1")]
    for wrong in ("fax:anna", "log:x", "webhook:", "slack", "webhook:a/b"):
        (await cli("submit", "--type", "noop", "--notify", wrong)).refused(2, "webhook:NAME")
    told_by = {"text": "x", "targets": ["trello:5f1e0c9a8b7d6e5f4a3b2c1d"]}
    arguments = ["--type", "send_notification", "--payload", json.dumps(told_by)]
    (await cli("submit", *arguments)).refused(2, "not configured; add [trello]")
    refused = await cli("submit", "--type", "noop", "--notify", "webhook:ops")
    refused.refused(2, "unknown webhook 'ops'", "add [webhooks.NAME]")
    batch = json.dumps({"type": "noop", "notify": ["log"]})
    (submitted,) = (await cli("submit", "--batch", "-", "--json", stdin=batch)).json
    assert len(await deliveries_of(rt, submitted["number"])) == 1


async def test_an_issue_that_is_notified_is_of_a_registered_repository(
    cli: Cli, rt: Runtime, make: Factory
) -> None:
    arguments = ["--type", "noop", "--notify", "forge:acme/Acme/pay#12"]
    refused = await cli("submit", *arguments)
    refused.refused(2, "#12: not configured; add events to [forges.acme]")
    url = "https://git.example"
    _configure(
        cli,
        '[forges.acme]\nkind = "gitea"\nevents = "poll"',
        f'url = "{url}"\ntoken = {{env = "T"}}\n',
    )
    refused = await cli("submit", *arguments)
    problem = "acme/pay is not a registered repository of [forges.acme]; first run:"
    refused.refused(2, f"--notify forge:acme/Acme/pay#12: {problem} draftsman repos add")
    assert (await cli("submit", *arguments, "--unchecked")).code == 0
    for source in (f"{url}/acme/pay-api", "https://other.example/acme/pay", f"{url}/acme/pay"):
        assert (await cli("submit", *arguments)).code == 2
        await rt.repos.add(Repo.at(parse(source)), profile({}), make.owner)
    done = await cli("submit", *arguments, "--json")
    targets = await rt.outbox.targets(done.json["number"])
    assert [row.target for row in targets] == ["acme/acme/pay#12"]


def _configure(cli: Cli, *lines: str) -> None:
    text = cli.config.read_text(encoding="utf-8")
    cli.config.write_text("\n".join([text, *lines]), encoding="utf-8")


async def test_the_configuration_names_the_targets_of_all_requests(
    cli: Cli, rt: Runtime, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPS", "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")
    _configure(
        cli,
        'notifications.targets = ["log"]',
        'webhooks.ops.url = "http://127.0.0.1:1/x"',
        'webhooks.ops.secret.env = "OPS"',
        'webhooks.ops.on = ["failed", "dead_letter"]',
    )

    async def targets(*args: str) -> list[tuple[str, list[str], Any]]:
        number = (await cli("submit", "--type", "noop", *args, "--json")).json["number"]
        return [(row.target, row.kinds, row.outcomes) for row in await rt.outbox.targets(number)]

    hook = ("ops", ["result"], ["failed", "dead_letter"])
    default = await targets()
    assert [row[0] for row in default] == ["log", "ops"]
    assert default[1] == hook
    assert await targets("--notify", "none") == [hook], "operators configure its outcomes"
    named = await targets("--notify", "webhook:ops")
    assert [(row[0], row[2]) for row in named] == [("ops", None)], "all deliveries, once"


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        (['notifications.targets = ["mail"]'], "'mail' is not a target"),
        (['notifications.fallback = "webhook:gone"'], "unknown webhook 'gone'"),
        (["notifications.lease = 20"], "lease must be at least four times timeout"),
        (['webhooks.x.url = "http://h/"'], "webhooks.x.secret"),
        (['webhooks.x.url = "ftp://h/"', 'webhooks.x.secret.env = "S"'], "webhooks.x.url"),
        (
            [
                'webhooks.x.url = "http://h/"',
                'webhooks.x.secret.env = "S"',
                'webhooks.x.on = ["x"]',
            ],
            "webhooks.x.on",
        ),
    ],
)
async def test_an_invalid_target_of_the_configuration_is_named(
    cli: Cli, lines: list[str], message: str
) -> None:
    _configure(cli, *lines)
    (await cli("jobs")).refused(2, message)


async def test_show_and_doctor_report_deliveries(
    cli: Cli, make: Factory, rt: Runtime, monkeypatch: pytest.MonkeyPatch
) -> None:
    (seq,) = await _dead(make, rt)
    job = (await rt.outbox.all())[0].job
    await make.running(job)
    (item,) = await claim(rt)
    await rt.delivery_sender.record(item, RECEIPT)
    output = (await cli("show", job)).out
    deliveries = output.partition("\nDeliveries\n")[2].partition("\n\n")[0].splitlines()
    newer, older, error, counts = (" ".join(line.split()) for line in deliveries)
    assert newer.startswith(f"{item.seq} status log sent ")
    assert older.startswith(f"{seq} status log dead letter ")
    assert error == "the disk is full"
    assert counts == "log 1 sent, 1 dead letter the disk is full"
    assert [row["seq"] for row in (await cli("show", job, "--json")).json["deliveries"]] == [
        item.seq, seq,
    ]  # fmt: skip
    _configure(cli, 'webhooks.ops.url = "http://h/"', 'webhooks.ops.secret.env = "NO_SUCH"')
    checked = {
        row["name"]: row for row in json.loads((await cli("doctor", "--json")).out)["checks"]
    }
    assert checked["deliveries"]["status"] == checked["webhook"]["status"] == "warn"
    assert checked["deliveries"]["text"] == "1 dead-letter delivery"
    assert "redeliver --dead-letters" in checked["deliveries"]["hint"]
    assert "the variable NO_SUCH holds no secret" in checked["webhook"]["text"]


async def test_doctor_reports_deliveries_without_a_sender(
    cli: Cli, make: Factory, clock: Clock
) -> None:
    await make.queued(**LOG)
    assert "no running process sends" not in (await cli("doctor", "--json")).out
    await clock.forward(3600)
    checks = (await cli("doctor", "--json")).json["checks"]
    (late,) = (row for row in checks if row["name"] == "deliveries")
    assert late["text"] == "no running process sends to log: 1 delivery waits, for 60 min"
    assert (late["status"], "--status pending" in late["hint"]) == ("warn", True)


async def test_a_target_without_a_process_is_named(cli: Cli, make: Factory) -> None:
    _configure(cli, 'webhooks.ops.url = "http://h/"', 'webhooks.ops.secret.env = "NO_SUCH"')
    assert (await cli("submit", "--type", "noop", "--notify", "webhook:ops")).code == 0
    await make.worker_row(targets=["log", "webhook:other"])
    text = "no running process sends to webhook:ops: 1 delivery waits"
    listed = await cli("deliveries")
    assert (listed.err, "pending" in listed.out) == (f"{text}\n", True)
    checks = (await cli("doctor", "--json")).json["checks"]
    assert any(row["text"].startswith(text) for row in checks if row["name"] == "deliveries")
    assert f"  {text}\n" in (await cli("show", "D-1")).out
    stats = await cli("stats")
    assert stats.err == f"{text}\n"
    (unserved,) = (await cli("stats", "--json")).json["unserved_deliveries"]
    assert (unserved["channel"], unserved["target"], unserved["count"]) == ("webhook", "ops", 1)
    await make.worker_row(targets=["webhook:ops"])
    assert (await cli("deliveries")).err == (await cli("stats")).err == ""
    assert text not in (await cli("show", "D-1")).out


async def test_a_type_without_a_worker_is_named(cli: Cli, make: Factory) -> None:
    await make.worker_row(types=["noop"])
    assert (await cli("submit", "--type", "odd")).out == "D-1 created\n"
    text = "no live worker of the queue 'default' handles 'odd': 1 job waits"
    (found,) = [
        row for row in (await cli("doctor", "--json")).json["checks"] if row["name"] == "types"
    ]
    assert (found["status"], found["text"]) == ("warn", text)
    assert "1 waits for a worker with the type odd" in (await cli("queues")).out
    assert "handles the type 'odd'" in (await cli("why", "D-1")).out
    assert "a worker with the type odd" in (await cli("jobs")).out
