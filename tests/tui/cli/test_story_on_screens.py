"""The story of a job in a terminal and in the web inbox, in the words of the chats."""

from __future__ import annotations

import re
from collections.abc import Callable
from html import unescape
from typing import Final

from draftsman.jobs.runs.outcome import Done
from draftsman.questions.question_spec import QuestionSpec
from draftsman.runtime import Runtime
from draftsman_testing.channel.conversation_contract import AGAIN, GATE, REASON, REQUEST
from draftsman_testing.factories import QUESTION, Factory
from draftsman_testing.people import People
from tests.bots.web.web_side import serving
from tests.tui.cli.cli_runner import Cli

SENTENCES: Final = (
    REQUEST,
    "was answered by ben: red",
    "may not approve (needs the role approver); allowed: carol",
    f"was denied by carol: {REASON}",
    "was approved by carol",
    "Refunds are paid once.",
)
"""What `draftsman_testing.channel.conversation_contract.play` hears in every chat."""


def _text(page: str) -> str:
    """Return the words of a page, as a reader sees them."""
    body = unescape(re.sub(r"<[^>]+>", " ", page[page.index("<main") :]))
    return re.sub(r" ([,;])", r"\1", " ".join(body.split()))


async def test_a_terminal_and_the_web_inbox_tell_the_story_alike(
    rt: Runtime, make: Factory, as_: Callable[[str | None], Cli], people: People
) -> None:
    async def ask(spec: QuestionSpec) -> None:
        work = await make.running(1)
        await rt.asking.ask(work.lease, spec)

    refused = await as_(None)("submit", REQUEST, "--type", "noop")
    refused.refused(1, "may not submit")
    assert (await as_("anna")("submit", REQUEST, "--type", "noop")).code == 0
    await ask(QUESTION)
    assert (await as_("ben")("answer", "D-1/1", "red")).code == 0
    await ask(GATE)
    (await as_("ben")("approve", "D-1/2")).refused(1, SENTENCES[2])
    async with serving(rt) as inbox:
        carol = await inbox.visit(people.carol)
        await carol.answer("/questions/D-1/2", decision="deny", reason=REASON)
        await ask(AGAIN)
        await carol.answer("/questions/D-1/3", decision="approve")
        work = await make.running(1)
        await rt.settlement.outcome(work, Done({"summary": "Refunds are paid once."}))
        page = _text((await carol.get("/jobs/D-1")).text)
    shown = (await as_("anna")("show", "D-1")).out
    assert [text for text in SENTENCES if text not in shown] == []
    assert [text for text in SENTENCES if text not in page] == []
