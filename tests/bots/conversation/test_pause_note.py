"""The pause of a job in the reply to an answer."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from draftsman.actions.questions import answered
from draftsman.questions.answer import Verdict
from draftsman_bots.conversation.commands import Surface
from draftsman_bots.conversation.replies import Wording, said
from tests.support.cases import cases

ANSWERED = {"accepted": True, "resolved": True, "answer_text": "red", "job_status": "resumed"}


async def why(job: int) -> Any:
    """Return the reason of a single job, which is paused."""
    assert job == 7
    return SimpleNamespace(paused=True, text="paused by anna:\n<noon>")


RUNTIME: Any = SimpleNamespace(read_model=SimpleNamespace(why=why))


@cases(
    ("fields", "paused", "reply"),
    [
        (
            ANSWERED,
            True,
            (
                "D-7/1 answered: red; stored, but D-7 is paused by anna: <noon>."
                " To resume it: /draftsman resume D-7"
            ),
        ),
        (ANSWERED, False, "D-7/1 answered: red; job resumed."),
        (ANSWERED | {"duplicate": True}, True, "D-7/1 answered: red."),
    ],
)
async def test_an_accepted_answer_of_a_paused_job_names_the_pause(
    fields: dict[str, Any], paused: bool, reply: str
) -> None:
    result = await answered(RUNTIME, Verdict(7, 1, paused=paused, **fields))
    wording = Wording(Surface.SLACK, "/draftsman ")
    assert "".join(map(str, said(result, wording))) == reply
