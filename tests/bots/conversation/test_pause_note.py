"""The pause of a job in the replies of chats to an answer."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from draftsman.questions.answer import Verdict
from draftsman_bots.slack.questions import answers
from tests.support.cases import cases

ANSWERED = {"accepted": True, "resolved": True, "answer_text": "red"}
NOTE = "D-7 is paused by anna: &lt;noon&gt;. To continue it: /draftsman resume D-7"


def context(paused: bool) -> Any:
    """Return the context of a bot with a single job."""

    async def why(job: int) -> Any:
        assert job == 7
        return SimpleNamespace(paused=paused, text="paused by anna:\n<noon>")

    read_model = SimpleNamespace(why=why)
    return SimpleNamespace(
        rt=SimpleNamespace(read_model=read_model), settings=SimpleNamespace(command="/draftsman")
    )


@cases(
    ("fields", "paused", "reply", "unshown"),
    [
        (ANSWERED, True, f"D-7/1 is answered: red. {NOTE}", NOTE),
        (ANSWERED, False, "D-7/1 is answered: red.", None),
        (ANSWERED | {"duplicate": True}, True, "D-7/1 is answered: red.", None),
        (
            {"accepted": False, "resolved": False, "reason": "no"},
            True,
            "Your answer was not accepted: it was rejected.",
            "Your answer was not accepted: it was rejected.",
        ),
    ],
)
async def test_an_accepted_answer_of_a_paused_job_names_the_pause(
    fields: dict[str, Any], paused: bool, reply: str, unshown: str | None
) -> None:
    ctx = context(paused)
    verdict = Verdict(7, 1, **fields)
    assert (await answers.reply_to(ctx, verdict)).text == reply
    other = await answers.unshown_reply(ctx, verdict)
    assert (other and other.text) == unshown
