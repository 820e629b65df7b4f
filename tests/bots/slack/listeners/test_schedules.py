"""Schedules: a proposal with its next times, confirmed once, and the list with its buttons."""

from __future__ import annotations

import asyncio
import json
from datetime import datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from draftsman.jobs.runs.run import LeaderTerm
from draftsman.people.policy import Person
from draftsman.repos.repo_catalog import Repo
from draftsman.repos.repo_profile import profile
from draftsman.repos.repo_url import parse
from draftsman.schedules.schedule import Schedule, ScheduleSpec
from draftsman.schedules.template import define
from draftsman_bots.slack import ids
from draftsman_bots.slack.schedules.schedules import MAX_LISTED, MAX_VALUE
from draftsman_testing.slack.faults import error
from tests.bots.slack.listeners.conftest import (
    ANNA,
    BEN,
    DAVE,
    MALLORY,
    SlackBotHarness,
)
from tests.support.clock import Clock

REQUEST = {"type": "http_request", "payload": {"url": "https://example.org/"}}


@pytest.fixture(autouse=True)
async def repository(bench: SlackBotHarness) -> None:
    """Register a repository: a schedule may not ask for it at each occurrence."""
    pay = Repo.at(parse("https://example.org/acme/pay"))
    await bench.rt.repos.add(pay, profile({"agent": "tidy"}), bench.make.owner)


async def proposed(bench: SlackBotHarness, text: str, user: str = ANNA) -> dict[str, Any]:
    """Propose a schedule; return the message."""
    ack = await bench.slack.command(user, bench.general, text)
    assert ack.body["text"].endswith("It is not saved yet."), ack.body["text"]
    message: dict[str, Any] = bench.slack.ephemerals(bench.general, user)[-1]
    return message


def shown(message: dict[str, Any]) -> dict[str, str]:
    """Return the lines of a proposal."""
    lines = message["blocks"][0]["text"]["text"].splitlines()
    return dict(line.removeprefix("*").split(":* ", 1) for line in lines[1:])


async def confirm(
    bench: SlackBotHarness, message: dict[str, Any], user: str = ANNA, copies: int = 1
) -> str:
    """Press the button; return the last reply."""
    await bench.slack.press(user, bench.general, message["ts"], ids.ADD_SCHEDULE, copies=copies)
    return (await bench.ephemeral_texts(user))[-1]


async def only(bench: SlackBotHarness) -> Schedule:
    (schedule,) = await bench.rt.schedules.all()
    return schedule


async def test_schedule_is_saved_when_it_is_confirmed(bench: SlackBotHarness, clock: Clock) -> None:
    text = "every weekday at 9 investigate --ref=main Is the *build* slow &amp; red?"
    message = await proposed(bench, text)
    assert await bench.rt.schedules.all() == []
    lines = shown(message)
    assert lines["Rule"] == "every weekday at 9 (`0 9 * * mon-fri`)"
    assert lines["Time zone"] == "Europe/Vienna (of your Slack profile)"
    star = "<!date^00000000^{_}|*>"
    assert lines["Submits"] == (f"Is the {star}build{star} slow &amp; red? (investigate, ref main)")
    times = [datetime.strptime(at, "%a %Y-%m-%d %H:%M %z") for at in lines["Next"].split(", ")]
    assert len(times) == 3
    assert {(at.hour, at.minute, at.weekday() < 5) for at in times} == {(9, 0, True)}
    heading = message["blocks"][0]["text"]["text"].splitlines()[0]
    assert heading == "Add the schedule *is-the-build-slow-red* as anna?"
    reply = await confirm(bench, message)
    assert " is added; next: " in reply
    schedule = await only(bench)
    assert (schedule.rule, schedule.timezone, schedule.created_by) == (
        "0 9 * * mon-fri", "Europe/Vienna", "anna",
    )  # fmt: skip
    assert schedule.due_at == times[0]
    await clock.forward((times[0] - await bench.rt.schedules.now()).total_seconds() + 1)
    assert await bench.rt.sweeps.run("schedules", LeaderTerm()) == 1
    job = await bench.rt.read_model.job(1)
    assert (job.agent_request.text, job.agent_request.mode, job.invoker_id, job.source) == (
        "Is the *build* slow & red?", "investigate", "anna", "schedule",
    )  # fmt: skip
    (target,) = await bench.rt.outbox.targets(1)
    assert (target.target, target.thread) == (bench.general, None)


async def test_messages_propose_schedules_too(bench: SlackBotHarness) -> None:
    direct = bench.slack.direct(ANNA)
    await bench.slack.say(ANNA, direct, "every 90m Look")
    await bench.slack.say(
        ANNA, bench.general, f"<@{bench.slack.bot_user}> every weekday at 9 Look again"
    )
    await bench.ctx.background.idle()
    message = bench.slack.messages(direct)[-1]
    await bench.slack.press(ANNA, direct, message["ts"], ids.ADD_SCHEDULE)
    await confirm(bench, bench.slack.ephemerals(bench.general, ANNA)[-1])
    schedules = {item.name: item.request or {} for item in await bench.rt.schedules.all()}
    assert {name: request["notify"] for name, request in schedules.items()} == {
        "look": [f"slack:{ANNA}"],
        "look-again": [f"slack:{bench.general}"],
    }


async def test_repeated_confirmation_adds_one_schedule(bench: SlackBotHarness) -> None:
    message = await proposed(bench, "every 90m Look")
    assert " is added; " in await confirm(bench, message, copies=3)
    texts = await bench.ephemeral_texts(ANNA)
    assert ["is added" in text for text in texts].count(True) == 1, "copies of a press"
    assert " is added; " in await confirm(bench, message)
    payload = bench.slack.chosen(ANNA, bench.general, message["ts"], ids.ADD_SCHEDULE)
    await asyncio.gather(*(bench.slack.interactive(payload) for _ in range(3)))
    assert (await only(bench)).rule == "@every 90m"


async def test_a_name_in_use_is_numbered_or_refused(bench: SlackBotHarness) -> None:
    first = await proposed(bench, "every 90m Look")
    second = await proposed(bench, "every 2 hours Look")
    assert " is added; " in await confirm(bench, first)
    assert "schedule look exists" in await confirm(bench, second)
    third = await proposed(bench, "every 2 hours Look")
    assert " is added; " in await confirm(bench, third)
    assert [item.name for item in await bench.rt.schedules.all()] == ["look", "look-2"]


async def test_schedule_of_a_template(bench: SlackBotHarness) -> None:
    schema = {"required": ["x"], "properties": {"x": {"type": "string"}, "n": {"type": "integer"}}}
    await bench.rt.templates.add("bump", define(REQUEST | {"parameters": schema}), bench.make.owner)
    message = await proposed(bench, "every day at 9 UTC template bump x='a b' n=7")
    assert shown(message)["Submits"] == "template bump x=a b n=7"
    assert shown(message)["Time zone"] == "UTC"
    await bench.rt.templates.remove("bump", bench.make.owner)
    assert await confirm(bench, message) == "template bump was removed; see: templates"
    await bench.rt.templates.add("bump", define(REQUEST | {"parameters": schema}), bench.make.owner)
    await confirm(bench, message)
    schedule = await only(bench)
    assert (schedule.template, schedule.params, schedule.timezone) == (
        "bump", {"x": "a b", "n": 7}, "UTC",
    )  # fmt: skip


async def test_single_time_is_due_in_the_zone_of_the_profile(bench: SlackBotHarness) -> None:
    bench.slack.world.users[ANNA]["tz"] = "Asia/Tokyo"
    message = await proposed(bench, "tomorrow at 14:00 Release")
    now = (await bench.rt.schedules.now()).astimezone(ZoneInfo("Asia/Tokyo"))
    expected = (now + timedelta(days=1)).replace(hour=14, minute=0, second=0)
    assert shown(message)["Next"] == expected.strftime("%a %Y-%m-%d 14:00 +0900")
    await confirm(bench, message)
    due = (await only(bench)).due_at
    assert due is not None
    assert due == expected.replace(microsecond=0)


@pytest.mark.parametrize("problem", ["missing_scope", "user_not_found", "unknown zone"])
async def test_zone_of_the_configuration_is_the_default(
    bench: SlackBotHarness, problem: str
) -> None:
    if problem == "unknown zone":
        bench.slack.world.users[ANNA]["tz"] = "Mars/Base"
    elif problem == "missing_scope":
        bench.slack.world.scopes -= {"users:read"}
    else:
        bench.slack.faults.next("users.info", error(problem))
    message = await proposed(bench, "every day at 9 Look")
    hint = "; your profile's needs the scope users:read" if problem == "missing_scope" else ""
    assert shown(message)["Time zone"] == f"UTC (the default of the configuration{hint})"


BAD_INPUT: list[tuple[str, str]] = [
    ("every weekend at 9 Look", "examples: every weekday at 9, every 90m, tomorrow at 14:00"),
    ("every day at 9 and 17 Look", "'and' is not understood"),
    ("today at 0:00 Look", "is past"),
    ("every day at 9", "the text is missing: every day at 9 TEXT"),
    ("every day at 9: fix", "the text is missing: fix TEXT"),
    ("every day at 9 --speed=11 Look", "unknown option --speed"),
    ("every day at 9 cancel D-7", "it cannot run the command cancel"),
    ("every day at 9 list", "it cannot run the command list"),
    ("every day at 9: every day at 9 Look", "it cannot run the command every"),
    ("every day at 9 template bmp", "unknown template 'bmp'"),
    ("every day at 9 --repo=/etc Look", "use a name or a URL"),
    ("every day at 9 --agent=none Look", "unknown agent 'none'"),
    ("every day at 9 " + "x" * 2000, "; from Slack at most 2000: use a template"),
]


async def test_bad_input_is_refused_in_a_line(bench: SlackBotHarness) -> None:
    for text, problem in BAD_INPUT:
        ack = await bench.slack.command(ANNA, bench.general, text)
        assert problem in ack.body["text"]
        assert "\n" not in ack.body["text"]
        assert ack.body["response_type"] == "ephemeral"
        assert "blocks" not in ack.body or ack.body["blocks"] is None


async def test_longest_text_fits_in_the_button(bench: SlackBotHarness) -> None:
    message = await proposed(bench, "every day at 9: " + "x" * 1800)
    excess = MAX_VALUE - len(message["blocks"][1]["elements"][0]["value"])
    message = await proposed(bench, "every day at 9: " + "x" * (1800 + excess))
    assert len(message["blocks"][1]["elements"][0]["value"]) == MAX_VALUE
    ack = await bench.slack.command(ANNA, bench.general, "every day at 9: " + "x" * (1801 + excess))
    assert "the schedule has 2001 characters" in ack.body["text"]
    await confirm(bench, message)
    request = (await only(bench)).request
    assert request is not None
    assert request["text"] == "x" * (1800 + excess)


async def test_only_people_with_the_role_add_schedules(bench: SlackBotHarness) -> None:
    message = await proposed(bench, "every day at 9 Look")
    for user, refusal in ((MALLORY, "not linked to a person"), (DAVE, "(needs the role invoker)")):
        ack = await bench.slack.command(user, bench.general, "every day at 9 Look")
        assert refusal in ack.body["text"]
        assert ack.body["response_type"] == "ephemeral"
    without = Person("anna", frozenset({"responder"}), bench.rt.policy.people["anna"].ids)
    bench.rt.policy.people = {**bench.rt.policy.people, "anna": without}
    assert "(needs the role invoker)" in await confirm(bench, message)
    assert await bench.rt.schedules.all() == []


async def test_forged_button_is_not_active(bench: SlackBotHarness) -> None:
    forged = ["", "{", "[]", "{}", '{"name": "a", "rule": "@every 90m"}']
    forged += ['{"name": 1, "rule": 2, "zone": 3}', "[" * 1900]
    for nth, value in enumerate(forged, 1):
        message = await proposed(bench, "every day at 9 Look")
        payload = bench.slack.chosen(ANNA, bench.general, message["ts"], ids.ADD_SCHEDULE)
        payload["actions"][0]["value"] = value
        await bench.slack.interactive(payload)
        texts = await bench.ephemeral_texts(ANNA)
        assert texts[-1] == "This is no longer active.", value
        assert texts.count(texts[-1]) == nth, value


async def test_forged_definition_is_checked_like_a_command(bench: SlackBotHarness) -> None:
    message = await proposed(bench, "every day at 9 Look")
    payload = bench.slack.chosen(ANNA, bench.general, message["ts"], ids.ADD_SCHEDULE)
    base = json.loads(payload["actions"][0]["value"])
    for changes, problem in (
        ({"name": "a b"}, "name 'a b'"),
        ({"rule": "* * *"}, "fields, not 5"),
        ({"zone": "Mars/Base"}, "unknown time zone"),
        ({"mode": "destroy"}, "mode"),
        ({"options": {"repo": "/etc"}}, "use a name or a URL"),
    ):
        payload["actions"][0]["value"] = json.dumps(base | changes)
        await bench.slack.interactive(payload)
        assert problem in (await bench.ephemeral_texts(ANNA))[-1]
    assert await bench.rt.schedules.all() == []


async def _added(bench: SlackBotHarness, name: str, **fields: Any) -> None:
    spec = ScheduleSpec(name, "0 9 * * *", "Europe/Berlin", request=REQUEST)
    await bench.rt.schedules.add(spec, fields.get("actor", bench.make.owner))


async def listed(bench: SlackBotHarness, user: str) -> dict[str, Any]:
    await bench.slack.command(user, bench.general, "schedules")
    message: dict[str, Any] = bench.slack.ephemerals(bench.general, user)[-1]
    return message


async def test_author_and_operators_pause_resume_and_remove(bench: SlackBotHarness) -> None:
    ack = await bench.slack.command(ANNA, bench.general, "schedules")
    assert ack.body["text"].startswith("No schedules yet.")
    await confirm(bench, await proposed(bench, "every day at 9 Look"))
    schedule = await only(bench)
    message = await listed(bench, ANNA)
    assert message["blocks"][0]["text"]["text"].startswith(
        "*look* `0 9 * * *` Europe/Vienna · next"
    )
    assert [block["type"] for block in (await listed(bench, BEN))["blocks"]] == ["section"]

    async def press(kind: str, message: dict[str, Any]) -> str:
        name = f"{kind}:{schedule.id}"
        await bench.slack.press(ANNA, bench.general, message["ts"], name)
        return (await bench.ephemeral_texts(ANNA))[-1]

    assert await press(ids.PAUSE_SCHEDULE, message) == "Schedule look paused."
    assert await press(ids.PAUSE_SCHEDULE, message) == "schedule look is paused already, by anna"
    message = await listed(bench, ANNA)
    assert "paused by anna" in message["blocks"][0]["text"]["text"]
    assert (await press(ids.RESUME_SCHEDULE, message)).startswith("Schedule look resumed; next")
    assert await press(ids.REMOVE_SCHEDULE, message) == "Schedule look removed."
    assert await press(ids.REMOVE_SCHEDULE, message) == "This is no longer active."
    assert await bench.rt.schedules.all() == []


async def test_other_people_may_not_change_a_schedule(bench: SlackBotHarness) -> None:
    await _added(bench, "nightly")
    await confirm(bench, await proposed(bench, "every day at 9 Look"))
    message = await listed(bench, ANNA)
    kinds = [block["type"] for block in message["blocks"]]
    assert kinds == ["section", "actions", "section"]
    payload = bench.slack.chosen(
        ANNA, bench.general, message["ts"], message["blocks"][1]["elements"][0]["action_id"]
    )
    nightly = await bench.rt.schedules.get("nightly")
    for kind in (ids.PAUSE_SCHEDULE, ids.RESUME_SCHEDULE, ids.REMOVE_SCHEDULE):
        payload["actions"][0] |= {"action_id": kind, "value": ids.schedule_value(nightly.id)}
        await bench.slack.interactive(payload)
        reply = (await bench.ephemeral_texts(ANNA))[-1]
        assert "may not change schedules (needs the role operator)" in reply
    assert (await bench.rt.schedules.get("nightly")).paused_at is None


async def test_long_list_fits_in_a_message(bench: SlackBotHarness) -> None:
    for number in range(MAX_LISTED + 2):
        text = f"every day at 9: {number} {'&' * 1500}"
        await confirm(bench, await proposed(bench, text))
    ack = await bench.slack.command(ANNA, bench.general, "schedules")
    assert ack.body["text"].endswith("2 more; to search: `/draftsman schedules TEXT`")
    assert len(ack.body["blocks"]) == 2 * MAX_LISTED + 1
    ack = await bench.slack.command(ANNA, bench.general, "schedules 9")
    assert ack.body["text"] == "Schedules: 9"
    ack = await bench.slack.command(ANNA, bench.general, "schedules none")
    assert ack.body["text"] == "No schedule contains none."


async def test_two_people_who_confirm_the_same_schedule_at_once_get_one_schedule(
    bench: SlackBotHarness,
) -> None:
    """Both proposals have the free name; the person whose confirmation comes second is notified."""
    erin = await bench.linked("erin")
    messages = {user: await proposed(bench, "every day at 9 Look", user) for user in (ANNA, erin)}
    replies = await asyncio.gather(
        *(confirm(bench, message, user, copies=2) for user, message in messages.items())
    )
    author = (await only(bench)).created_by
    added = [reply.startswith("Schedule look is added; next: ") for reply in replies]
    assert added == [author == "anna", author == "erin"]
    assert replies[added.index(False)].startswith("schedule look exists; ")
