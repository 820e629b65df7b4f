"""The `show` command, as text and as JSON."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import fields
from typing import Any

from draftsman.database.database import Connection
from draftsman.errors import Failure
from draftsman.ids import worker_name
from draftsman.job_types.published.description import TypeDescription
from draftsman.job_types.published.service import publish
from draftsman.jobs.job import Job
from draftsman.jobs.runs.outcome import Cancel, Done
from draftsman.jobs.runs.run import LeaderTerm
from draftsman.questions.question_spec import QuestionSpec
from draftsman.questions.response import Response
from draftsman.runtime import Runtime
from draftsman_testing.factories import QUESTION, Factory
from draftsman_testing.people import People
from tests.support.clock import Clock
from tests.tui.cli.cli_runner import Cli, Terminal


async def test_a_job_with_a_history_is_shown_completely(
    cli: Cli, make: Factory, rt: Runtime, people: People
) -> None:
    request: dict[str, Any] = {"title": "Pay", "text": "Tidy up\n  the tests", "tags": ("x",)}
    work = await make.asked(**request, skills=("sql", "python"), payload={"n": 1})
    await rt.questions.answer(
        work.number, 1, Response(source_event_id="early", text="red"), people.carol
    )  # refused: an approver is not a responder
    await make.answer(work.number, "red", people.ben)
    work = await make.running(work.number)
    await rt.checkpoints.artifact(work.lease, "report.json", "report", b"{}")
    url = "https://git.example/pr/7"
    await rt.checkpoints.pull_request(work.lease, url)
    result = {"summary": "all well", "files_changed": 2, "pr_url": url}
    await rt.settlement.outcome(work, Done(result | {"data": {"log": "/root/x.log"}}))
    done = await cli("show", work.name)
    assert done.code == 0
    for text in (
        f"{work.name}  Pay  completed",
        "noop",
        "Root (cli)",
        "tags          x\n",
        "skills        sql, python\n",
        "pull request  https://git.example/pr/7\n",
        "  the tests",
        "\n  n  1\n",
        f"{work.name}/1  question was answered by ben: red",
        "     Which one?\n",
        "→ Ben (cli) answers red",
        "✗ Carol (cli) answers red",
        "not accepted: Carol may not answer",
        "report.json  report  2 B  run 2",
        "  all well\n  https://git.example/pr/7\n  2 files changed\n",
        f"data: draftsman show {work.name} --json",
    ):
        assert text in done.out, text
    assert "/root" not in done.out
    assert "{" not in done.out
    document = (await cli("show", work.name, "--json")).json
    assert (document["number"], document["status"]) == (work.number, "completed")
    assert [run["status"] for run in document["runs"]] == ["parked", "completed"]
    assert document["questions"][0]["resolution"]["value"] == "red"
    assert [entry["accepted"] for entry in document["answers"]] == [False, True]
    assert [entry["name"] for entry in document["artifacts"]] == ["report.json"]


async def test_the_json_of_a_job_has_its_columns_and_all_that_belongs_to_it(
    cli: Cli, make: Factory
) -> None:
    document = (await cli("show", await make.queued(), "--json")).json
    belonging = {
        *("runs", "questions", "answers", "artifacts", "joined_requests", "steps", "checkpoints"),
        *("messages", "attachments", "archives", "deliveries", "retry_chain", "parents"),
        *("group", "occurrence", "unique_key", "replaces", "replaced_by"),
        *("attention", "wait_reason"),
    }
    columns = {field.name for field in fields(Job)} - {"request", "pr_url"}
    assert document.keys() == columns | belonging
    assert [link["number"] for link in document["retry_chain"]] == [document["number"]]


async def test_attachments_are_shown_with_their_state(
    cli: Cli, make: Factory, rt: Runtime, people: People
) -> None:
    files = [{"reference": {"id": name}, "name": name} for name in ("log.txt", "b.png", "c.csv")]
    number = await make.queued(actor=people.on("slack", "anna"), attachments=files)
    log, image, _ = await rt.attachments.claim("slack")
    await rt.attachments.store(log, bytes(1234))
    await rt.attachments.refuse(image, "it was deleted")
    shown = (await cli("show", f"D-{number}")).out
    assert "Attachments\n  1  log.txt  1.2 kB\n  2  b.png  refused: it was deleted\n" in shown
    assert "  3  c.csv  waits for its download\n" in shown
    document = (await cli("show", f"D-{number}", "--json")).json
    assert [item["status"] for item in document["attachments"]] == ["stored", "refused", "pending"]


async def test_failures_and_cancels_show_their_reason(cli: Cli, make: Factory, rt: Runtime) -> None:
    failed = await make.failed()
    running = await make.running()
    await rt.job_control.cancel(running.number, make.owner, "not needed")
    shown = (await cli("show", failed)).out
    assert (
        "error     no such thing; will not be retried: another run would fail in the same way\n"
        in shown
    )
    assert f"next      to retry: draftsman retry D-{failed}; to take it out" in shown
    shown = (await cli("show", running.name)).out
    assert re.search(r"^  now +worker \w+ is stopping it; it will end as canceled$", shown, re.M)
    assert "by root: not needed" in shown
    assert "key auto:" not in shown
    unwanted = await make.running()
    await rt.settlement.outcome(unwanted, Cancel("the card was archived"))
    output = (await cli("show", unwanted.name)).out
    assert f"by worker {worker_name(make.worker)}: the card was archived" in output


async def test_a_program_that_was_not_found_names_the_check_of_its_agent(
    cli: Cli, make: Factory, rt: Runtime
) -> None:
    hint = "to check the agent on the host of the worker: draftsman agents check coder; to retry"
    for code, agent, hinted in (
        ("command_not_found", "coder", True),
        ("command_not_found", None, False),
        ("protocol", "coder", False),
    ):
        work = await make.running(agent=agent)
        failure = Failure("it ended", origin="agent", code=code, declared="PERMANENT")
        await rt.settlement.failure(work, failure)
        for command in ("show", "why", "wait"):
            done = await cli(command, work.name)
            assert (hint in " ".join((done.out + done.err).split())) == hinted, (command, code)


async def test_a_chain_is_shown_from_each_of_its_jobs(cli: Cli, make: Factory, rt: Runtime) -> None:
    first = await make.failed()
    second = (await rt.job_control.retry(first, make.owner)).number
    work = await make.running(second)
    await rt.settlement.failure(work, Failure("no", declared="PERMANENT"))
    third = (await rt.job_control.retry(second, make.owner)).number
    alone = await make.queued()
    origins = ("original job", f"retry of D-{first}", f"retry of D-{second}")
    statuses = ("failed", "failed", "queued")
    for number in (first, second, third):
        output = (await cli("show", number)).out
        retries = output.partition("\nRetries\n")[2].partition("\n\n")[0].splitlines()
        for job, line, status, origin in zip(
            (first, second, third), retries, statuses, origins, strict=True
        ):
            assert line.split()[:2] == [f"D-{job}", status]
            assert origin in line
            assert line.endswith("this job") == (job == number) or "  no" in line
    assert "Retries" not in (await cli("show", alone)).out
    chain = (await cli("show", second, "--json")).json["retry_chain"]
    assert [(entry["number"], entry["retry_of"], entry["chain_length"]) for entry in chain] == [
        (first, None, 0),
        (second, first, 1),
        (third, second, 2),
    ]


async def test_the_newest_of_a_long_chain_are_shown(cli: Cli, make: Factory, rt: Runtime) -> None:
    numbers = [await make.canceled()]
    for _ in range(9):
        retry_number = (await rt.job_control.retry(numbers[-1], make.owner)).number
        await rt.job_control.cancel(retry_number, make.owner)
        numbers.append(retry_number)
    output = (await cli("show", numbers[0])).out
    note, *retries = output.partition("\nRetries\n")[2].partition("\n\n")[0].splitlines()
    assert note == f"  … 2 more: draftsman show D-{numbers[0]} --json"
    assert [line.split()[0] for line in retries] == [f"D-{number}" for number in numbers[2:]]


async def test_external_text_cannot_control_the_terminal(
    make: Factory, terminal: Callable[..., Terminal]
) -> None:
    hostile = "\x1b]0;owned\x07\x1b[2J\u202egnp.exe\x9b31m"
    number = await make.queued(title=hostile, text=hostile)
    screen = terminal("show", number)
    assert screen.end() == 0
    for entry in ("\x1b]0", "\x1b[2J", "\x07", "\u202e", "\x9b"):
        assert entry not in screen.screen
    assert "\\u{1b}]0;owned\\u{7}" in screen.plain


async def test_long_lines_are_wrapped_under_themselves(
    make: Factory, terminal: Callable[..., Terminal]
) -> None:
    number = await make.queued(text="  " + "word " * 60)
    screen = terminal("show", number)
    assert screen.end() == 0
    request = screen.plain.split("Request\n")[1].splitlines()
    assert len([entry for entry in request if entry.startswith("    word")]) >= 3
    assert max(map(len, screen.plain.splitlines())) <= 80


async def test_a_request_that_joined_the_job_is_shown(cli: Cli) -> None:
    submit_args = ("submit", "--type", "noop", "--subject", "card:1")
    await cli(*submit_args, "first")
    repeated = await cli(*submit_args, "and the tests")
    assert "joined: a live job has the same subject; your request was added" in repeated.out
    result = await cli("show", "D-1")
    assert "Joined requests" in result.out
    assert "and the tests" in result.out.partition("Joined requests")[2]
    (joined,) = (await cli("show", "D-1", "--json")).json["joined_requests"]
    assert (joined["text"], joined["requester"]) == ("and the tests", "root")
    assert "asked for the same work" in (await cli("events", "D-1")).out


async def test_an_open_question_shows_its_choices_and_each_run_its_usage(
    cli: Cli, make: Factory, rt: Runtime
) -> None:
    choices: Any = ({"value": "a", "label": "All of it", "description": "slow"}, "b")
    item = QuestionSpec(
        key="k", text="How much?", choices=choices, freeform=True, context="the mill"
    )
    work = await make.running()
    models = ["m-1"]
    await rt.model_calls.record(work.lease, {"input_tokens": 1200, "models": models})
    await rt.asking.ask(work.lease, item)
    await make.answer(work.number, "b")
    work = await make.running(work.number)
    used = {"input_tokens": 34, "output_tokens": 5, "cost_usd": 0.25, "models": models}
    await rt.model_calls.record(work.lease, used)
    await rt.asking.ask(work.lease, item.model_copy(update={"key": "again"}))
    output = (await cli("show", work.number)).out
    questions = output.split("Questions\n")[1].split("\n\n")[0].splitlines()
    assert questions[0].startswith(f"  {work.name}/1  question was answered by root: b")
    start = next(n for n, entry in enumerate(questions) if f"{work.name}/2" in entry)
    assert questions[start].startswith(f"  {work.name}/2  question for ")
    assert " · expires in " in questions[start]
    assert [entry.split() for entry in questions[start + 1 :]] == [
        ["How", "much?"],
        ["|", "the", "mill"],
        ["1", "All", "of", "it", "slow"],
        ["2", "b"],
        ["or", "free", "text"],
        ["draftsman", "answer", f"{work.name}/2", "NUMBER,", "or", "free", "text"],
    ]
    runs = [entry.strip() for entry in output.split("Runs\n")[1].split("\n\n")[0].splitlines()]
    assert runs[2] == "input tokens 1,200 · models m-1"
    assert runs[5] == "input tokens 34 · output tokens 5 · cost $0.25 · models m-1"
    total = "input tokens 1,234 · output tokens 5 · cost $0.25 · models m-1"
    assert f"  usage      {total}\n" in output


async def test_a_long_result_is_truncated_with_the_command_for_the_rest(
    cli: Cli, make: Factory, rt: Runtime
) -> None:
    work = await make.running()
    await rt.settlement.outcome(work, Done({f"n{n}": n for n in range(100)} | {"\x1b[2J": 1}))
    output = (await cli("show", work.number)).out
    result = output.partition("\nResult\n")[2].partition("\n\n")[0].splitlines()
    assert result[-1] == f"  … 41 more lines: draftsman show {work.name} --json"
    assert "\x1b" not in output


async def test_an_earlier_error_of_a_live_job_is_not_red(
    make: Factory, rt: Runtime, clock: Clock, terminal: Callable[..., Terminal]
) -> None:
    number = await make.retrying()
    red = "\x1b[31m"
    dim = "\x1b[2m"
    screen = terminal("show", number, "--no-pager")
    assert screen.end() == 0
    assert "retrying\n  waiting  next retry " in screen.plain.replace("\r", "")
    assert f"{red}busy" in screen.screen
    await clock.forward(3600)
    await rt.promotion.promote(LeaderTerm())
    await make.running(number)
    screen = terminal("show", number, "--no-pager")
    assert screen.end() == 0
    assert f"{dim}previous attempt: busy" in screen.screen
    assert red not in screen.screen


async def test_an_expired_job_shows_time_and_next_step(
    cli: Cli, make: Factory, rt: Runtime, clock: Clock
) -> None:
    work = await make.asked(QUESTION.model_copy(update={"expires_in": 7200}))
    await clock.forward(7300)
    await rt.expiry.expire(LeaderTerm())
    question = await rt.questions.get(work.number, 1)
    assert question.expires_at is not None
    for command in ("why", "show"):
        output = " ".join((await cli(command, work.name)).out.split())
        at = rf"[^:]*{question.expires_at:%H:%M}(:\d\d)?[^:]*"
        assert re.search(f"{work.name}/1 expired at {at}: no answer within 2 h: ", output)
        assert f"to retry and ask again: draftsman retry {work.name}" in output


async def test_steps_and_checkpoints_show_where_a_job_continues(
    cli: Cli, make: Factory, rt: Runtime
) -> None:
    work = await make.running()
    for n in range(22):
        await rt.checkpoints.begin_step(work.lease, f"page {n:02}", f"invocation-{n}")
        if n < 21:
            await rt.checkpoints.finish_step(work.lease, f"page {n:02}", {"n": n})
    await rt.checkpoints.save(work.lease, {"page": 21})
    out = (await cli("show", work.name)).out
    steps = out[out.index("\nSteps\n") : out.index("\nCheckpoints\n")].splitlines()
    assert steps[2].startswith("  pending page 21  run 1  ")
    assert steps[3].startswith("  done    page 20  run 1  ")
    assert steps[3].endswith("9 B")
    assert steps[-1] == f"  earlier steps: draftsman show {work.name} --json | jq .steps"
    assert len(steps) == 23
    assert (
        "12 B of data  ← the next run continues from here\n" in out[out.index("\nCheckpoints\n") :]
    )
    document = (await cli("show", work.name, "--json")).json
    keys = [step["key"] for step in document["steps"]]
    assert keys == [f"page {n:02}" for n in range(21, -1, -1)]
    [checkpoint] = document["checkpoints"]
    assert (checkpoint["run"], checkpoint["size"], checkpoint["work_size"]) == (1, 12, None)


async def test_a_question_is_shown_before_the_others_of_its_job(cli: Cli, make: Factory) -> None:
    other = QuestionSpec(key="other", text="How fast?", freeform=True)
    work = await make.asked_at_once(QuestionSpec(key="k", text="How much?", freeform=True), other)
    shown = (await cli("show", f"{work.name}/2")).out
    first, others = (
        shown.split(f"{title}\n")[1].split("\n\n")[0] for title in ("Question", "Other questions")
    )
    assert "How fast?" in first
    assert f"draftsman answer {work.name}/2" in first
    assert "How much?" in others
    assert "How fast?" not in others
    assert shown.index("Question\n") < shown.index("Other questions\n")
    assert (await cli("show", f"{work.name}/2", "--json")).json["number"] == work.number
    (await cli("show", f"{work.name}/3")).refused(3, f"there is no question {work.name}/3")


async def test_a_question_names_its_job_where_nothing_is_changed(cli: Cli, make: Factory) -> None:
    work = await make.asked(QuestionSpec(key="k", text="How much?", freeform=True))
    question = f"{work.name}/1"
    for reading in ("logs", "events", "questions", "artifacts list", "deliveries --job"):
        assert (await cli(*reading.split(), question)).code == 0, reading
    for command in ("cancel", "retry", "pause", "resume"):
        text = f"{question} is a question, and this is about a job; use {work.name}"
        (await cli(command, question)).refused(2, text)


async def test_parameters_are_in_the_order_of_their_type(
    cli: Cli, make: Factory, conn: Connection
) -> None:
    properties = {name: {"type": "string"} for name in ("order", "euros", "a")}
    described = TypeDescription(
        name="shop:refund", place="shop:refund", parameters={"properties": properties}
    )
    await publish(conn, [described])
    payload = {"more": "z", "a": "x", "order": "7", "euros": "20"}
    number = await make.queued(type="shop:refund", payload=payload)
    out = (await cli("show", number)).out
    request = out[out.index("\nRequest\n") :].splitlines()[2:6]
    assert [line.split() for line in request] == [
        ["order", "7"],
        ["euros", "20"],
        ["a", "x"],
        ["more", "z"],
    ]


async def test_a_job_with_artifacts_names_the_command_that_gets_them(
    cli: Cli, make: Factory, rt: Runtime
) -> None:
    work = await make.running()
    assert "artifacts get" not in (await cli("show", work.name)).err
    await rt.checkpoints.artifact(work.lease, "report.json", "report", b"{}")
    command = f"draftsman artifacts get {work.name} report.json"
    assert (await cli("show", work.name)).err == f"for an artifact: {command}\n"
