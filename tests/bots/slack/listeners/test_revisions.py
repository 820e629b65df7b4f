"""Retry with changes: the form of a finished job's request, and the job after it."""

from __future__ import annotations

from typing import Any, Final

from draftsman.jobs.job import Condition, Job
from draftsman.jobs.requests.entered_form import EnteredForm
from draftsman.people.actor import Actor
from draftsman.repos.repo_catalog import Repo
from draftsman.repos.repo_profile import profile
from draftsman.repos.repo_url import parse
from draftsman.schedules.template import define
from draftsman_bots.slack import ids
from draftsman_bots.slack.deliveries.blocks import actions, button
from draftsman_bots.slack.home import modal_views
from draftsman_testing.people import People
from tests.bots.slack.listeners.conftest import ANNA, CAROL, SlackBotHarness

AGENT: Final[dict[str, Any]] = {"type": "run_agent", "text": "Tidy up", "mode": "investigate"}
BUMP: Final[dict[str, Any]] = {
    "type": "run_agent",
    "text": "Bump {package}",
    "parameters": {"properties": {"package": {"type": "string", "default": "httpx"}}},
}


async def finished(bench: SlackBotHarness, **fields: Any) -> tuple[int, str]:
    """Return a canceled job of an agent, and the ts of a message with its button."""
    number = await bench.make.queued(**AGENT | fields)
    await bench.rt.job_control.cancel(number, bench.make.owner)
    return number, await shown(bench, number)


async def shown(bench: SlackBotHarness, number: int) -> str:
    root = (await bench.post("a result"))["ts"]
    control = button("Retry with changes…", ids.REVISE, ids.job_value(number))
    posted = await bench.post("result", thread_ts=root, blocks=[actions([control])])
    return str(posted["ts"])


async def opened(bench: SlackBotHarness, user: str, ts: str, **options: Any) -> dict[str, Any]:
    await bench.slack.press(user, bench.general, ts, ids.REVISE, **options)
    await bench.ctx.background.idle()
    (view,) = bench.slack.views(user)
    return view


def initial(view: dict[str, Any], block: str) -> Any:
    (found,) = [item["element"] for item in view["blocks"] if item.get("block_id") == block]
    return found.get("initial_value") or (found.get("initial_option") or {}).get("value")


async def newest(bench: SlackBotHarness) -> Job:
    (job, *_) = await bench.rt.read_model.jobs()
    return await bench.rt.read_model.job(job.number)


async def test_the_changed_request_is_a_job_after_the_first(bench: SlackBotHarness) -> None:
    number, ts = await finished(bench)
    view = await opened(bench, ANNA, ts, copies=2)
    assert initial(view, modal_views.TEXT) == "Tidy up"
    assert initial(view, modal_views.MODE) == "investigate"
    values = {modal_views.TEXT: "Tidy up the tests", modal_views.MODE: "fix"}
    await bench.slack.submit(ANNA, view["id"], values, copies=3)
    job = await newest(bench)
    assert (job.agent_request.text, str(job.agent_request.mode), job.invoker_id) == (
        "Tidy up the tests",
        "fix",
        "anna",
    )
    (parent,) = await bench.rt.workflows.parents(job.number)
    assert (parent.number, parent.condition) == (number, Condition.ANY)
    assert len(await bench.rt.read_model.jobs()) == 2
    assert str(job.status) == "queued"
    (target,) = await bench.rt.outbox.all(job.number, limit=10)
    root = bench.slack.world.channels[bench.general].messages[ts]["thread_ts"]
    assert (target.target, target.thread) == (bench.general, root)


async def test_the_job_of_a_template_has_its_form_with_its_parameters(
    bench: SlackBotHarness,
) -> None:
    pay = Repo.at(parse("https://example.org/acme/pay"))
    await bench.rt.repos.add(pay, profile({"agent": "tidy"}), bench.make.owner)
    await bench.rt.templates.add("bump", define(BUMP), bench.make.owner)
    request = await bench.rt.templates.request("bump", EnteredForm({"package": "psycopg"}))
    first = await bench.rt.submissions.submit(request, bench.make.owner)
    await bench.rt.job_control.cancel(first.number, bench.make.owner)
    view = await opened(bench, ANNA, await shown(bench, first.number))
    assert initial(view, "parameter:0") == "psycopg"
    await bench.slack.submit(ANNA, view["id"], {"parameter:0": "aiohttp"}, copies=2)
    job = await newest(bench)
    assert (job.agent_request.text, job.template) == ("Bump aiohttp", "bump")
    (parent,) = await bench.rt.workflows.parents(job.number)
    assert parent.number == first.number
    await bench.rt.templates.remove("bump", bench.make.owner)
    await bench.rt.job_control.cancel(job.number, bench.make.owner)
    bench.slack.world.stacks[ANNA].clear()
    view = await opened(bench, ANNA, await shown(bench, job.number))
    assert initial(view, modal_views.TEXT) == "Bump aiohttp", "the template was removed"


async def test_a_long_request_keeps_its_text(bench: SlackBotHarness) -> None:
    _, ts = await finished(bench, text="x" * 4000)
    view = await opened(bench, ANNA, ts)
    assert initial(view, modal_views.TEXT) is None
    await bench.slack.submit(ANNA, view["id"], {modal_views.TEXT: "and test it"})
    text = (await newest(bench)).agent_request.text or ""
    assert text == "x" * 4000 + "\n\nChanges to this request:\nand test it"


async def test_its_files_are_those_of_the_first(bench: SlackBotHarness, people: People) -> None:
    actor = Actor("slack", ANNA, "Anna")
    files = [{"reference": {"file": "F1"}, "name": "a.txt"}]
    number = await bench.make.queued(**AGENT, actor=actor, attachments=files)
    await bench.rt.job_control.cancel(number, bench.make.owner)
    view = await opened(bench, ANNA, await shown(bench, number))
    await bench.slack.submit(ANNA, view["id"], {modal_views.TEXT: "again"})
    (item,) = await bench.rt.attachments.of_job((await newest(bench)).number)
    assert item.name == "a.txt"


async def test_only_people_who_may_submit_get_the_form(bench: SlackBotHarness) -> None:
    _, ts = await finished(bench)
    await bench.slack.press(CAROL, bench.general, ts, ids.REVISE)
    assert "needs the role invoker" in (await bench.ephemeral_texts(CAROL))[0]
    assert bench.slack.views(CAROL) == []


async def test_an_unfinished_job_or_another_type_has_no_form(bench: SlackBotHarness) -> None:
    running = await bench.make.running(**AGENT)
    other = await bench.make.queued()
    await bench.rt.job_control.cancel(other, bench.make.owner)
    for number in (running.number, other):
        await bench.slack.press(ANNA, bench.general, await shown(bench, number), ids.REVISE)
    first, second = await bench.ephemeral_texts(ANNA)
    assert "to change its work, reply in its thread" in first
    assert "is a job of type noop, which has no text" in second


async def test_an_empty_request_keeps_the_form(bench: SlackBotHarness) -> None:
    _, ts = await finished(bench)
    view = await opened(bench, ANNA, ts)
    await bench.slack.submit(ANNA, view["id"], {modal_views.TEXT: "  "})
    (view,) = bench.slack.views(ANNA)
    assert view["errors"] == {modal_views.TEXT: "Describe the work."}
