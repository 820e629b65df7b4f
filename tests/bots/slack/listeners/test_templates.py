"""Templates: the list, the form, and a single job of each submission."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from draftsman.jobs.job import Job
from draftsman.schedules.template import define
from draftsman_bots.slack import ids
from draftsman_bots.slack.requests.templates import MAX_LISTED
from draftsman_testing.slack import error
from tests.bots.slack.listeners.conftest import ANNA, DAVE, MALLORY, SlackBotHarness

SCHEMA = {
    "required": ["package"],
    "properties": {
        "package": {"type": "string", "pattern": "^[a-z]+$"},
        "level": {"enum": ["minor", "major"], "default": "minor"},
        "days": {"type": "integer", "minimum": 1, "maximum": 9},
        "dry": {"type": "boolean", "default": False},
    },
}
TEXT = "Update {package} to the newest {level} version of {days} days, dry: {dry}"


async def add(
    bench: SlackBotHarness, name: str = "bump", schema: Any = SCHEMA, **fields: Any
) -> None:
    definition = define(
        {"type": "http_request", "payload": {"url": "https://example.org/"}, "text": TEXT}
        | ({"parameters": schema} if schema else {"text": "Tidy"})
        | fields
    )
    await bench.rt.templates.add(name, definition, bench.make.owner)


async def opened(bench: SlackBotHarness, text: str = "template bump", user: str = ANNA) -> Any:
    """Open the form with a command; return it."""
    ack = await bench.slack.command(user, bench.general, text)
    assert ack.body is None
    await bench.ctx.background.idle()
    (view,) = bench.slack.views(user)
    return view


def block(view: Any, name: str) -> str:
    (found,) = [
        item["block_id"]
        for item in view["blocks"]
        if item["type"] == "input" and item["label"]["text"] == name
    ]
    return str(found)


async def errors(bench: SlackBotHarness, user: str = ANNA) -> dict[str, str]:
    """Return the errors of the open form by parameter."""
    await bench.ctx.background.idle()
    (view,) = bench.slack.views(user)
    labels = {b["block_id"]: b["label"]["text"] for b in view["blocks"] if b["type"] == "input"}
    return {labels[id]: text for id, text in view["errors"].items()}


async def only_job(bench: SlackBotHarness) -> Job:
    (job,) = await bench.rt.read_model.jobs()
    return await bench.rt.read_model.job(job.number)


@pytest.mark.parametrize("text", ["template bump", "run bump", "TEMPLATE bump"])
async def test_form_submits_a_job_of_the_template(bench: SlackBotHarness, text: str) -> None:
    await add(bench)
    view = await opened(bench, text)
    values = {block(view, "package"): "httpx", block(view, "level"): "major"}
    await bench.slack.submit(ANNA, view["id"], values, copies=3)
    job = await only_job(bench)
    assert job.agent_request.text == "Update httpx to the newest major version of  days, dry: false"
    assert (job.source, job.invoker_id, job.idempotency_key) == (
        "slack", "anna", f"slack:view:{view['id']}",
    )  # fmt: skip
    assert (job.template, job.template_version) == ("bump", 1)
    (target,) = await bench.rt.outbox.targets(job.number)
    assert (target.target, target.thread) == (bench.general, None)
    assert bench.slack.views(ANNA) == []


async def test_errors_are_shown_at_their_inputs_and_the_form_stays(bench: SlackBotHarness) -> None:
    await add(bench)
    view = await opened(bench)
    wrong = {block(view, "package"): "HTTPX!", block(view, "days"): "12"}
    await bench.slack.submit(ANNA, view["id"], wrong)
    assert await errors(bench) == {
        "package": "must match the pattern ^[a-z]+$, not 'HTTPX!'",
        "days": "must be at most 9, not 12",
    }
    await bench.slack.submit(ANNA, view["id"], {block(view, "days"): "many"})
    assert await errors(bench) == {
        "package": "is required",
        "days": "must be a whole number, not 'many'",
    }
    assert await bench.jobs() == []
    await bench.slack.submit(ANNA, view["id"], {block(view, "package"): "httpx"})
    assert (await only_job(bench)).idempotency_key == f"slack:view:{view['id']}"


async def test_an_error_of_the_whole_form_is_shown_at_its_first_input(
    bench: SlackBotHarness,
) -> None:
    schema = SCHEMA | {"minProperties": 4}
    await add(bench, schema=schema)
    view = await opened(bench)
    await bench.slack.submit(ANNA, view["id"], {block(view, "package"): "httpx"})
    assert await errors(bench) == {
        "package": "parameters of template bump: must have at least 4 keys"
    }


async def test_form_keeps_its_version(bench: SlackBotHarness) -> None:
    await add(bench)
    view = await opened(bench)
    template = await bench.rt.templates.get("bump")
    await bench.rt.templates.edit(template, define({"text": "Other"}), bench.make.owner)
    await bench.slack.submit(ANNA, view["id"], {block(view, "package"): "httpx"})
    assert (await only_job(bench)).template_version == 1


async def test_form_of_a_removed_template_is_refused(bench: SlackBotHarness) -> None:
    await add(bench)
    view = await opened(bench)
    await bench.rt.templates.remove("bump", bench.make.owner)
    await bench.slack.submit(ANNA, view["id"], {block(view, "package"): "httpx"})
    assert await errors(bench) == {"package": "template bump was removed; see: templates"}
    assert await bench.jobs() == []


async def test_repeated_command_opens_one_form(bench: SlackBotHarness) -> None:
    await add(bench)
    await bench.slack.command(ANNA, bench.general, "template bump", copies=3)
    assert await bench.ephemeral_texts(ANNA) == []
    assert len(bench.slack.views(ANNA)) == 1


@pytest.mark.parametrize(
    ("code", "text"),
    [
        ("expired_trigger_id", "Slack timed out. Please try again."),
        ("view_too_large", "Slack did not open the form: view_too_large."),
    ],
)
async def test_a_form_that_slack_does_not_open_is_reported(
    bench: SlackBotHarness, code: str, text: str
) -> None:
    await add(bench)
    bench.slack.faults.next("views.open", error(code))
    await bench.slack.command(ANNA, bench.general, "template bump")
    assert await bench.ephemeral_texts(ANNA) == [text]


async def test_values_and_templates_without_parameters_need_no_form(
    bench: SlackBotHarness,
) -> None:
    await add(bench)
    await add(bench, "tidy", None)
    ack = await bench.slack.command(
        ANNA, bench.general, "run bump package=httpx days=3 level='major'", copies=2
    )
    replies = [copy.body["text"] for copy in ack.copies if copy.body]
    assert any(reply.startswith("D-1 is queued") for reply in replies)
    ack = await bench.slack.command(ANNA, bench.general, "template tidy")
    assert ack.body["text"].startswith("D-2 is queued")
    assert await bench.jobs() == [
        "Update httpx to the newest major version of 3 days, dry: false", "Tidy",
    ]  # fmt: skip
    assert bench.slack.views(ANNA) == []


BAD_INPUT: list[tuple[str, str]] = [
    ("template bmp", "unknown template 'bmp'; did you mean bump? see: templates"),
    ("template bump package", "'package' is not a parameter: write NAME=VALUE"),
    ("template bump package=a package=b", "package is set twice"),
    ("template bump level=minor", "parameters of template bump: package: is required"),
    ("template bump package=a size=b", "unknown parameter 'size'"),
    ("template bump@2", "template bump has no version 2"),
    ("template bump@x", "a version is a number"),
]


async def test_bad_input_is_refused_in_a_line(bench: SlackBotHarness) -> None:
    await add(bench)
    for text, problem in BAD_INPUT:
        ack = await bench.slack.command(ANNA, bench.general, text)
        assert problem in ack.body["text"]
        assert "\n" not in ack.body["text"]
        assert ack.body["response_type"] == "ephemeral"
    assert await bench.jobs() == []


async def test_only_people_with_the_role_run_templates(bench: SlackBotHarness) -> None:
    await add(bench)
    view = await opened(bench)
    for user, refusal in (
        (MALLORY, "is not linked to a person"),
        (DAVE, "may not submit (needs the role invoker)"),
    ):
        for text in ("template bump", "run bump package=a"):
            ack = await bench.slack.command(user, bench.general, text)
            assert refusal in ack.body["text"]
            assert ack.body["response_type"] == "ephemeral"
        assert bench.slack.views(user) == []
    people = bench.rt.policy.people
    bench.rt.policy.people = {name: who for name, who in people.items() if name != "anna"}
    await bench.slack.submit(ANNA, view["id"], {block(view, "package"): "a"})
    assert "not linked to a person" in (await errors(bench))["package"]
    assert await bench.jobs() == []


async def test_list_has_a_button_for_each_template(bench: SlackBotHarness) -> None:
    ack = await bench.slack.command(ANNA, bench.general, "templates")
    assert ack.body["text"].startswith("No templates yet.")
    await add(bench, description="Update <a> dependency")
    await add(bench, "tidy", None)
    ack = await bench.slack.command(ANNA, bench.general, "templates")
    assert ack.body["text"] == "Templates: bump, tidy"
    message = bench.slack.ephemerals(bench.general, ANNA)[-1]
    assert message["blocks"][0]["text"]["text"] == (
        "*bump* Update &lt;a&gt; dependency\npackage, level, days, dry"
    )
    await bench.slack.press(ANNA, bench.general, message["ts"], f"{ids.TEMPLATE}:template/bump")
    await bench.ctx.background.idle()
    (view,) = bench.slack.views(ANNA)
    await bench.slack.submit(ANNA, view["id"], {block(view, "package"): "httpx"})
    await bench.slack.press(
        ANNA, bench.general, message["ts"], f"{ids.TEMPLATE}:template/tidy", copies=2
    )
    assert [job[:12] for job in await bench.jobs()] == ["Update httpx", "Tidy"]
    ack = await bench.slack.command(ANNA, bench.general, "templates DEPEND")
    assert ack.body["text"] == "Templates: bump"
    ack = await bench.slack.command(ANNA, bench.general, "templates none")
    assert ack.body["text"] == "No template contains none."


async def test_long_list_fits_in_a_message(bench: SlackBotHarness) -> None:
    names = [f"{n:02}{'x' * 61}" for n in range(MAX_LISTED + 3)]
    schema: Any = {"properties": {"p" * 30 + str(n): {} for n in range(9)}}
    for name in names:
        await add(bench, name, schema, text="Do it", description="&" * 500)
    ack = await bench.slack.command(ANNA, bench.general, "templates")
    assert ack.body["text"].endswith("3 more; to search: `/draftsman templates TEXT`")
    assert len(ack.body["blocks"]) == MAX_LISTED + 1


async def test_message_gets_a_button_that_opens_the_form(bench: SlackBotHarness) -> None:
    await add(bench)
    ack = await bench.slack.say(ANNA, bench.general, f"<@{bench.slack.bot_user}> run bump")
    await bench.ctx.background.idle()
    (message,) = bench.slack.ephemerals(bench.general, ANNA)
    assert message["text"] == "bump has parameters."
    await bench.slack.press(ANNA, bench.general, message["ts"], f"{ids.TEMPLATE}:template/bump")
    await bench.ctx.background.idle()
    (view,) = bench.slack.views(ANNA)
    await bench.slack.submit(ANNA, view["id"], {block(view, "package"): "httpx"})
    assert len(await bench.jobs()) == 1
    assert ack.ts


async def test_button_of_a_removed_template_is_not_active(bench: SlackBotHarness) -> None:
    await add(bench)
    await bench.slack.command(ANNA, bench.general, "templates")
    (message,) = bench.slack.ephemerals(bench.general, ANNA)
    await bench.rt.templates.remove("bump", bench.make.owner)
    await bench.slack.press(ANNA, bench.general, message["ts"], f"{ids.TEMPLATE}:template/bump")
    assert (await bench.ephemeral_texts(ANNA))[-1] == "This is no longer active."


async def test_forms_that_two_people_submit_at_once_and_twice_are_a_job_each(
    bench: SlackBotHarness,
) -> None:
    await add(bench)
    erin = await bench.linked("erin")
    views = {user: await opened(bench, user=user) for user in (ANNA, erin)}
    await asyncio.gather(
        *(
            bench.slack.submit(user, view["id"], {block(view, "package"): "httpx"}, copies=3)
            for user, view in views.items()
        )
    )
    jobs = [await bench.rt.read_model.job(job.number) for job in await bench.rt.read_model.jobs()]
    assert sorted(job.invoker_id for job in jobs) == ["anna", "erin"]
    assert {job.idempotency_key for job in jobs} == {
        f"slack:view:{view['id']}" for view in views.values()
    }
