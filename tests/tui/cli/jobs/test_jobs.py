"""The `jobs` and `why` commands: lists, filters and reasons for waiting."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Callable
from dataclasses import asdict, replace
from uuid import uuid4

import pytest
from psycopg.types.json import Jsonb
from rich.cells import cell_len

from draftsman.channels.plugin import ChannelFacts
from draftsman.errors import Failure
from draftsman.handlers.context import RunContext
from draftsman.jobs.job import Status
from draftsman.jobs.runs.outcome import Done, Outcome
from draftsman.jobs.runs.run import LeaderTerm
from draftsman.runtime import Runtime
from draftsman_testing.factories import GATE, QUESTION, Factory
from draftsman_testing.people import People
from draftsman_testing.waits import until
from tests.core.worker.workers import running_worker, runtime_with
from tests.support.cases import cases
from tests.tui.cli.cli_runner import Cli, Terminal
from tests.tui.cli.conftest import As


async def test_an_empty_list_of_jobs_shows_the_next_command(cli: Cli) -> None:
    done = await cli("jobs")
    assert (done.code, done.out) == (0, "")
    assert "draftsman submit" in done.err
    assert (await cli("jobs", "--json")).json == []
    assert "no jobs match the filters" in (await cli("jobs", "--since", "1h")).err


async def test_named_jobs_and_ranges_are_listed(cli: Cli, make: Factory) -> None:
    first, second, third = [await make.queued() for _ in range(3)]
    failed = await make.failed()

    async def listed(*arguments: str) -> list[int]:
        return [job["number"] for job in (await cli("jobs", *arguments, "--json")).json]

    assert await listed(f"D-{second}") == [second]
    assert await listed(f"{first}..{second}", f"D-{second}", str(failed)) == [failed, second, first]
    assert await listed(f"D-{first}..D-{failed + 50}", "--status", "queued") == [
        third,
        second,
        first,
    ]
    assert await listed(f"D-{first}..D-{third}", "--since", "yesterday 9:00") == [
        third,
        second,
        first,
    ]
    done = await cli("cancel", f"D-{first}..D-{second}", "--yes", "--json")
    assert [job["number"] for job in done.json] == [first, second]
    (await cli("jobs", "--status", "faild")).refused(2, "did you mean failed?")
    (await cli("jobs", "D-2..D-1")).refused(2, "D-10..D-20")
    (await cli("jobs", f"D-{first}", "D-999")).refused(3, "there is no job D-999")


async def test_every_status_has_a_line_with_the_next_step(cli: Cli, make: Factory) -> None:
    numbers = {status: await make.job_in(status) for status in Status}
    lines = (await cli("jobs")).out.splitlines()
    rows = {line.split()[0]: " ".join(line.split()[1:]) for line in lines[1:]}
    assert rows.keys() == {f"D-{number}" for number in numbers.values()}
    message = {
        Status.SCHEDULED: "its start time in 60 min",
        Status.QUEUED: "a worker for queue q-",
        Status.RETRYING: "retry ",
        Status.WAITING_FOR_INPUT: f"answer D-{numbers[Status.WAITING_FOR_INPUT]}/1 in 24 h",
        Status.WAITING_FOR_APPROVAL: f"approve D-{numbers[Status.WAITING_FOR_APPROVAL]}/1 in 24 h",
        Status.RUNNING: "its current run",
    }
    for status, number in numbers.items():
        assert rows[f"D-{number}"].startswith(status.replace("_", " "))
        assert message.get(status, "") in rows[f"D-{number}"]


async def test_a_countdown_shows_the_attempt_and_the_error(
    cli: Cli, make: Factory, rt: Runtime
) -> None:
    busy = await make.retrying(overrides={"base_delay": 9, "max_delay": 9})
    lost = await make.running(max_attempts=7)
    await rt.dead_workers.rescue(LeaderTerm(), [make.worker])
    for number in (busy, lost.number):
        await make.set_due(number, 3600)
    out = (await cli("jobs")).out
    assert "retry 1/3 in 60 min: busy" in out
    assert "attempt 2/7 in 60 min: the worker was lost" in out
    [first, second] = (await cli("jobs", "--json")).json
    assert (first["attempts"], first["max_attempts"], first["error_class"]) == (
        1,
        7,
        "TRANSIENT_INFRA",
    )
    assert 3500 < second["due_in"] <= 3600
    output = (await cli("show", busy)).out
    assert re.search(r"waiting  next retry in 60 min, at .* UTC \(retry 1 of 3\)", output)
    waits = (await cli("show", lost.number, "--json")).json["wait_reason"]
    assert (waits["reason"], waits["text"]) == ("backoff", "run 1 failed: the worker was lost")
    assert waits["next_step"].startswith("next retry in 60 min")
    assert (await cli("why", busy, "--json")).json["due_in"] > 3500


async def test_the_number_of_the_next_attempt_is_the_same_everywhere(
    cli: Cli, make: Factory, rt: Runtime
) -> None:
    job = await make.running(max_attempts=3)
    await rt.settlement.failure(job, Failure("ValueError: no luck"))
    assert "attempt 2/3 in " in (await cli("jobs", "--status", "retrying")).out
    for command in (("why",), ("show",), ("events",)):
        assert "attempt 2 of 3" in (await cli(*command, job.number)).out, command


async def test_a_job_that_was_lost_with_others_waits_for_its_trial(
    cli: Cli, make: Factory, rt: Runtime
) -> None:
    first, second = [await make.queued(on_lost="resume") for _ in range(2)]
    for _ in range(2):
        worker = await make.worker_row()
        for number in (first, second):
            await make.running(number, worker=worker)
        assert await rt.dead_workers.rescue(LeaderTerm(), [worker]) == 2
    await rt.dead_workers.suspects(LeaderTerm())
    out = (await cli("jobs")).out
    assert "retrying" in out
    assert "its turn: jobs that were lost together run one at a time" in out
    for command in ("why", "show"):
        assert f"D-{first} runs before it" in (await cli(command, second)).out


async def test_a_sleep_shows_its_reason_and_a_fan_out_its_jobs(
    cli: Cli, make: Factory, rt: Runtime
) -> None:
    async def nap(ctx: RunContext) -> Outcome:
        await ctx.sleep("ci", 3600, reason="waits for CI")
        return Done()

    async def fan_out(ctx: RunContext) -> Outcome:
        await ctx.gather([await ctx.spawn("part", "noop", queue="elsewhere")])
        return Done()

    numbers = [await make.queued(type=name, queue="q") for name in ("nap", "fan_out")]
    handlers = {"nap": nap, "fan_out": fan_out}
    async with running_worker(runtime_with(rt), handlers, slots=1, queues=("q",)):

        async def parked() -> bool:
            jobs = [await rt.read_model.job(number) for number in numbers]
            return all(job.status is Status.SCHEDULED for job in jobs)

        await until(parked, "the end of both runs")
    out = (await cli("jobs")).out
    assert "waits for CI in 60 min" in out
    assert "the jobs that it spawned" in out
    assert "its start time" not in out
    [_, gathering, sleeping] = (await cli("jobs", "--json")).json
    assert (gathering["hold"], sleeping["sleep_reason"]) == ("children", "waits for CI")


async def test_dead_letters_show_their_error(
    cli: Cli, make: Factory, terminal: Callable[..., Terminal], rt: Runtime
) -> None:
    assert "no dead letters" in (await cli("jobs", "--status", "dead_letter")).err
    work = await make.running(max_retries=0, title="A title that is longer than it needs to be")
    error = "\n\nHTTP 503: the upstream said that it is overloaded until tomorrow\nsecond line"
    await rt.settlement.failure(work, Failure(error, http_status=503))
    done = await cli("jobs", "--status", "dead_letter")
    assert done.out.splitlines()[0].endswith("NEXT")
    assert "HTTP 503: the upstream said that it is overloaded" in done.out
    assert "second line" not in done.out
    screen = terminal("jobs", "--status", "dead_letter")
    assert screen.end() == 0
    assert max(map(cell_len, screen.plain.splitlines())) <= 80
    assert "HTTP 503: the upstream said" in screen.plain


async def test_json_has_the_columns_newest_first(cli: Cli, make: Factory) -> None:
    numbers = [await make.queued(title=f"n{n}") for n in range(3)]
    document = (await cli("jobs", "--json")).json
    assert [job["number"] for job in document] == numbers[::-1]
    assert document[0].keys() >= {"id", "status", "title", "next_retry_at", "created_at"}
    assert document[0]["created_at"].endswith("+00:00")


async def test_filters_and_pages(cli: Cli, make: Factory, rt: Runtime) -> None:
    plain = await make.queued()
    tagged = await make.queued(tags=("x",), agent="tidy", repo="https://host/anna/pay.git")
    failed = await make.failed()
    dead = await make.dead()

    async def numbers(*arguments: object) -> list[int]:
        return [job["number"] for job in (await cli("jobs", "--json", *arguments)).json]

    assert await numbers("--tag", "x") == [tagged]
    assert await numbers("--agent", "tidy") == [tagged]
    for name in ("pay", "PAY", "anna/pay", "Anna/Pay"):
        assert await numbers("--repo", name) == [tagged], name
    assert await numbers("--status", "failed,dead_letter") == [dead, failed]
    assert await numbers("--status", "failed", "--status", "Dead-Letter") == [dead, failed]
    assert await numbers("--limit", 2) == [dead, failed]
    assert await numbers("--before", f"D-{failed}") == [tagged, plain]
    assert await numbers("--before", (await rt.read_model.job(failed)).id) == [tagged, plain]
    assert await numbers("--since", "1h") == [dead, failed, tagged, plain]
    assert await numbers("--status", "waiting") == []
    assert await numbers("--sort", "job") == [plain, tagged, failed, dead]
    assert await numbers("--sort", "-status", "--limit", 3) == [dead, failed, tagged]
    assert (await numbers("--sort", "-finished"))[:2] == [dead, failed]
    assert await numbers("--where", "status:dead") == [dead]
    assert await numbers("--where", "age<1h", "--where", f"job:{failed}") == [failed]
    assert await numbers("--where", "age>1h") == []


async def test_jobs_are_found_by_type_queue_source_key_person_and_tags(
    cli: Cli, as_: As, make: Factory, people: People
) -> None:
    own = {"type": "report", "queue": "slow", "key": "week-31"}
    report = await make.queued(**own, tags=("team=pay", "nightly"), actor=make.owner)
    other = await make.queued(tags=("team=shop",), actor=people.anna)

    async def numbers(*arguments: object, who: str = "root") -> list[int]:
        return [job["number"] for job in (await as_(who)("jobs", "--json", *arguments)).json]

    assert await numbers("--where", "type:report") == [report]
    assert await numbers("--sort", "-queue") == [report, other]
    heads = [(await cli("jobs", *options)).out for options in ([], ["--sort", "type"])]
    assert ["TYPE" in text for text in heads] == [False, True]
    assert "QUEUE" in (await cli("jobs", "--where", "queue:slow")).out

    for arguments in (("--type", "report"), ("--queue", "slow"), ("--key", "week-31")):
        assert await numbers(*arguments) == [report], arguments
    assert await numbers("--type", "noop", "--key", "week-31") == []
    assert await numbers("--source", "cli") == [other, report]
    assert await numbers("--source", "slack") == []
    assert await numbers("--tag", "team") == [other, report]
    assert await numbers("--tag", "team=pay") == [report]
    assert await numbers("--tag", "team", "--tag", "nightly") == [report]
    assert await numbers("--tag", "team=shop", "--tag", "nightly") == []
    assert await numbers("--mine") == [report]
    assert await numbers("--mine", who="anna") == [other]
    assert await numbers("--by", "anna") == [other]
    assert await numbers("--by", "me") == [report]
    (await cli("jobs", "--by", "anna", "--mine")).refused(2, "--by and --mine cannot be combined")
    none = (await cli("jobs", "--type", "http_requst")).err
    assert none == 'no job type "http_requst"; did you mean http_request?\n'
    assert "no jobs match the filters" in (await cli("jobs", "--type", "http_request")).err


async def test_the_source_of_a_job_may_be_a_channel_that_is_no_longer_installed(
    cli: Cli, rt: Runtime, make: Factory
) -> None:
    facts = Jsonb(asdict(ChannelFacts(accounts="account")))
    async with rt.db.connection() as conn:
        await conn.execute("SELECT draftsman.declare_channel('telex', 'acme-telex', %s)", (facts,))
    job = await make.queued(actor=replace(make.owner, channel="telex"))
    await make.queued()
    listed = (await cli("jobs", "--json", "--source", "telex")).json
    assert [item["number"] for item in listed] == [job]


async def test_waiting_matches_input_and_approval(cli: Cli, make: Factory) -> None:
    asked = await make.asked()
    gate = await make.asked(GATE)
    document = (await cli("jobs", "--json", "--status", "waiting")).json
    assert [job["number"] for job in document] == [asked.number, gate.number]


@cases(
    ("arguments", "message"),
    [
        (["--status", "lost"], "unknown status 'lost'; available: waiting, paused, scheduled"),
        (["--since", "yesteday"], "2h, 1d, 2026-11-30"),
        (["--limit", "0"], "not in the range 1 to 1000"),
        (["--before", "me"], "'me' is not a job"),
        (["--staus", "failed"], "--staus"),
        (["extra"], "extra"),
        (["--sort", "bogus"], "cannot sort by 'bogus'; available: job, status"),
        (["--where", "bogus>1"], "no column 'bogus' in this table; columns: job, status"),
        (["--where", "title"], "'title' is no condition on a column"),
    ],
)
async def test_an_invalid_argument_is_refused(cli: Cli, arguments: list[str], message: str) -> None:
    (await cli("jobs", *arguments)).refused(2, message)


async def test_the_table_fits_80_columns_in_colour(
    make: Factory, terminal: Callable[..., Terminal]
) -> None:
    await make.asked(
        QUESTION, title="a title 日本語テキスト that goes on " * 5, repo="/srv/payments"
    )
    await make.retrying(title="\x1b[2Jhostile\x07")
    screen = terminal("jobs")
    assert screen.end() == 0
    lines = screen.plain.splitlines()
    assert len(lines) == 3
    assert max(map(cell_len, lines)) <= 80
    assert "\x1b[1;33mwaiting for input" in screen.screen
    assert "\\u{1b}[2Jhos" in screen.plain
    assert "…" in screen.plain
    assert "answer D-" in screen.plain


@pytest.mark.parametrize("how", ["NO_COLOR", "--no-color", "before", "dumb"])
async def test_colour_can_be_switched_off(
    make: Factory, terminal: Callable[..., Terminal], how: str
) -> None:
    await make.queued()
    env = {"NO_COLOR": {"NO_COLOR": "1"}, "dumb": {"TERM": "dumb"}}.get(how, {})
    arguments = {"--no-color": ["jobs", "--no-color"], "before": ["--no-color", "jobs"]}
    screen = terminal(*arguments.get(how, ["jobs"]), **env)
    assert screen.end() == 0
    assert "queued" in screen.screen
    assert "\x1b" not in screen.screen


async def test_why_shows_the_next_step(cli: Cli, make: Factory) -> None:
    asked = await make.asked()
    done = await cli("why", asked.name)
    assert done.code == 0
    assert f"{asked.name}/1 needs an answer" in done.out
    assert f"draftsman answer {asked.name}/1" in done.out
    document = (await cli("why", asked.number, "--json")).json
    assert (document["number"], document["reason"]) == (asked.number, "question")


async def test_a_job_is_found_by_each_of_its_names(cli: Cli, make: Factory, rt: Runtime) -> None:
    number = await make.queued()
    id = str((await rt.read_model.job(number)).id)
    for name in (f"D-{number}", f"d-{number}", number, id, id.upper(), id[:20]):
        assert (await cli("why", name, "--json")).json["number"] == number


JOB_COMMANDS = ["why", "show", "events", "logs", "diff", "wait", "cancel"]


async def test_an_unknown_job_is_reported_in_one_line(cli: Cli) -> None:
    for command in JOB_COMMANDS:
        (await cli(command, "D-99")).refused(3, "there is no job D-99")
        (await cli(command, uuid4())).refused(3, "no job id starts with")
        (await cli(command, "D-x")).refused(2, "'D-x' is not a job; use D-142")
        (await cli(command, "9" * 40)).refused(2, "is not a job")


async def test_piped_output_is_plain_and_whole(cli: Cli, make: Factory) -> None:
    title = "a long title " * 20
    await make.queued(title=title)
    done = await cli("jobs")
    assert title.strip() in done.out
    assert "\x1b" not in done.out
    assert json.loads((await cli("jobs", "--json")).out)


async def test_the_next_page_keeps_the_filters(
    make: Factory, terminal: Callable[..., Terminal], cli: Cli
) -> None:
    for title in ("first", "second", "third"):
        await make.failed(title=title, agent="tidy", tags=("a b",))
    screen = terminal(
        "jobs", "--status", "failed", "--agent=tidy", "--tag", "a b", "--since", "2h", "--limit=2"
    )
    assert screen.end() == 0
    [line] = [line for line in screen.plain.splitlines() if "to list older jobs: " in line]
    command = line.partition("to list older jobs: ")[2]
    assert command == (
        "draftsman jobs --status failed --since 2h --agent tidy --tag 'a b' --limit 2 --before D-2"
    )
    out = (await cli(*shlex.split(command)[1:])).out
    assert ("first" in out, "second" in out) == (True, False)


async def test_titles_fill_the_remaining_width(
    make: Factory, terminal: Callable[..., Terminal]
) -> None:
    title = "A title that takes more than sixteen characters"
    for _ in range(2):
        await make.completed(title=title)
    screen = terminal("jobs")
    assert screen.end() == 0
    assert screen.plain.count(title) == 2
