"""Buttons and selects of actions: their ids, and the row and the text of a click."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from draftsman.actions import jobs, questions
from draftsman.errors import NotFound, UsageError
from draftsman.ids import job_name
from draftsman.questions.question import QuestionStatus
from draftsman_bots.slack import ids
from draftsman_bots.slack.deliveries.blocks import Block, button

if TYPE_CHECKING:
    from draftsman.actions.action import Action
    from draftsman_bots.slack.context import BotContext
    from draftsman_bots.slack.payloads.payloads import BlockAction

CONTROLS: Final[dict[str, Action[Any, ..., Any]]] = {
    ids.ANSWER: questions.answer,
    ids.CHOOSE: questions.answer,
    ids.APPROVE: questions.approve,
    ids.ACKNOWLEDGE: questions.acknowledge,
    ids.SNOOZE: questions.snooze,
    ids.DELEGATE: questions.delegate,
    ids.CANCEL: jobs.cancel,
    ids.RETRY: jobs.retry,
}
"""The actions that a click takes, by the kind of the control."""
_IDS: Final = {action: kind for kind, action in CONTROLS.items()}


def job_button(action: Action[int, ..., Any], job: int, suffix: str = "") -> Block:
    """Return the button of an action on a job; `suffix` makes its id unique in a view."""
    confirm = f"{action.asks([job_name(job)])} {action.consequence}" if action.destroys else None
    style = "danger" if action.destroys else None
    value = ids.job_value(job)
    return button(action.label, f"{_IDS[action]}{suffix}", value, style=style, confirm=confirm)


async def row_and_text(
    ctx: BotContext, click: BlockAction, kind: str
) -> tuple[int | tuple[int, int], str]:
    """Return what a click is about, and the text of its action; raises NotFound, UsageError."""
    if kind in (ids.CANCEL, ids.RETRY):
        job = ids.parse_job(click.value)
        if job is None:
            raise NotFound("job not found")
        return job, ""
    is_person = kind == ids.DELEGATE
    ref = ids.parse_attention_block(click.block) if is_person else ids.parse_answer(click.value)
    if ref is None:
        raise NotFound("question not found")
    row = (ref.job, ref.question)
    if CONTROLS[kind] is not questions.answer:
        return row, click.value if is_person else ""
    question = await ctx.rt.questions.get(*row)
    values = question.values()
    if ref.choice is not None and ref.choice <= len(values):
        return row, values[ref.choice - 1]
    if question.status is QuestionStatus.OPEN:  # its buttons stay
        raise UsageError(f"{question.name} has no such choice; use its buttons")
    raise NotFound(f"{question.name} has no such choice")
