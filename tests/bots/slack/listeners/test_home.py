"""The App Home: open questions, own jobs, and its empty state."""

from __future__ import annotations

from draftsman.jobs.job import Source
from draftsman.people.actor import Actor
from draftsman_bots.slack import ids
from draftsman_bots.slack.home import modal_views
from draftsman_testing.factories import GATE
from tests.bots.slack.channel_fixtures import Json, actionable, shown, texts
from tests.bots.slack.listeners.conftest import ANNA, BEN, MALLORY, SlackBotHarness

ME = Actor("slack", ANNA, "anna")


async def _home(bench: SlackBotHarness, user: str) -> Json:
    await bench.slack.open_home(user)
    return await _drawn(bench, user)


async def _drawn(bench: SlackBotHarness, user: str) -> Json:
    await bench.ctx.background.idle()
    result = bench.slack.home(user)
    assert result is not None
    return result


def _buttons(home: Json) -> dict[str, str]:
    result = [block["accessory"] for block in home["blocks"] if "accessory" in block]
    return {item["value"]: item["text"]["text"] for item in result}


async def test_home_shows_open_questions_and_submits_answers(bench: SlackBotHarness) -> None:
    question, _ = await bench.asked(title="Report of <week> 31")
    gate, _ = await bench.asked(GATE)
    home = await _home(bench, BEN)
    assert f"*{question.name}* *Report of &lt;week&gt; 31*\nWhich one?" in shown(home)
    assert gate.name not in shown(home)
    await bench.slack.press_in_view(BEN, home["id"], "blue")
    assert await bench.answer(question) == ("blue", ("ben",))
    assert "No question waits for you." in shown(await _drawn(bench, BEN))


async def test_home_of_an_unlinked_user_explains_how_to_link(bench: SlackBotHarness) -> None:
    home = await _home(bench, MALLORY)
    assert "/draftsman link" in shown(home)
    assert "Your jobs" not in shown(home)
    assert actionable(home) == [ids.REFRESH]


async def test_home_without_jobs_explains_how_to_submit(bench: SlackBotHarness) -> None:
    await bench.make.queued()
    text = shown(await _home(bench, ANNA))
    assert "No question waits for you." in text
    assert "No jobs yet. Start one with `/draftsman fix TEXT`" in text


async def test_own_jobs_are_canceled_and_retried_in_the_home(bench: SlackBotHarness) -> None:
    await bench.make.completed(actor=ME, title="a <b> done")
    failed = await bench.make.failed(actor=ME)
    await bench.make.queued(title="somebody else's")
    live = await bench.make.queued(actor=Actor(Source.CLI, "anna", "Anna"), title="of a terminal")
    home = await _home(bench, ANNA)
    assert _buttons(home) == {f"j:{live}": "Cancel job", f"j:{failed}": "Retry"}
    text = [text for text in texts(home["blocks"]) if "*D-" in text]
    assert [item.split("*")[1] for item in text] == [f"D-{live}", f"D-{failed}", "D-1"]
    assert "queued" in text[0]
    assert "a &lt;b&gt; done" in text[2]
    assert "completed" in text[2]
    await bench.slack.press_in_view(ANNA, home["id"], f"{ids.CANCEL}:{live}")
    home = await _drawn(bench, ANNA)
    assert _buttons(home) == {f"j:{live}": "Retry", f"j:{failed}": "Retry"}
    await bench.slack.press_in_view(ANNA, home["id"], f"{ids.RETRY}:{live}")
    assert _buttons(await _drawn(bench, ANNA))[f"j:{live + 1}"] == "Cancel job"
    messages = bench.slack.messages(bench.slack.direct(ANNA))
    assert [item["text"] for item in messages] == [
        f"D-{live} canceled.", f"D-{live} retried as D-{live + 1}.",
    ]  # fmt: skip


async def test_home_shows_the_newest_jobs_and_that_there_are_more(bench: SlackBotHarness) -> None:
    for _ in range(modal_views.HOME_JOBS):
        await bench.make.queued(actor=ME)
    assert "Showing your newest" not in shown(await _home(bench, ANNA))
    await bench.make.queued(actor=ME)
    home = await _home(bench, ANNA)
    assert list(_buttons(home)) == [f"j:{n}" for n in range(11, 1, -1)]
    assert "Showing your newest 10 jobs." in shown(home)
