"""Buttons and selects of actions: their ids, and the row and the text of a click."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from draftsman.actions import jobs, questions, requests, rules, schedules
from draftsman.actions.action import About, name_of
from draftsman.errors import NotFound
from draftsman_bots.slack import ids
from draftsman_bots.slack.deliveries.blocks import Block, button
from draftsman_bots.slack.ids import AnswerValue

if TYPE_CHECKING:
    from draftsman.actions.action import Action
    from draftsman.schedules.schedule import Schedule
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
    ids.DISMISS: jobs.dismiss,
    ids.RATIFY_RULE: rules.ratify,
    ids.DECLINE_RULE: rules.revoke,
    ids.PAUSE_SCHEDULE: schedules.pause,
    ids.RESUME_SCHEDULE: schedules.resume,
    ids.REMOVE_SCHEDULE: schedules.remove,
}
"""The actions that a click takes, by the kind of the control."""
DIALOGS: Final[dict[str, Action[Any, ..., Any]]] = {
    ids.FREE: questions.answer,
    ids.DENY: questions.deny,
    ids.REQUEST_CHANGES: questions.request_changes,
}
"""The actions of controls that open a dialog for their text."""
FORMS: Final[dict[str, Action[Any, ..., Any]]] = {
    ids.NEW_JOB: requests.submit,
    ids.REVISE: requests.revise,
    ids.TEMPLATE: schedules.run_template,
    ids.ADD_SCHEDULE: schedules.add,
}
"""The actions of controls that open a form, or confirm what one has."""
ABOUT: Final[dict[str, str]] = {
    **{kind: action.about for kind, action in (CONTROLS | DIALOGS).items()},
    ids.REVISE: About.JOB,
    ids.TEMPLATE: "template",
}
"""What a control is about, by its kind."""
DECLINED: Final = "declined in Slack"
_IDS: Final = {action: kind for kind, action in CONTROLS.items()}


def job_button(action: Action[int, ..., Any], job: int, suffix: str = "") -> Block:
    """Return the button of an action on a job; `suffix` makes its id unique in a view."""
    return _button(action, job, ids.job_value(job), suffix)


def schedule_button(action: Action[str, ..., Any], schedule: Schedule) -> Block:
    """Return the button of an action on a schedule."""
    return _button(action, schedule.name, ids.schedule_value(schedule.id), f":{schedule.id}")


def _button(action: Action[Any, ..., Any], row: Any, value: str, suffix: str) -> Block:
    question = action.question.format(name_of(action.about, row))
    confirm = f"{question} {action.consequence}" if action.destroys else None
    style = "danger" if action.destroys else None
    return button(action.label, f"{_IDS[action]}{suffix}", value, style=style, confirm=confirm)


def parse_ref(click: BlockAction) -> AnswerValue | int | str | None:
    """Return the question, the number of a job, rule or schedule, or the template of a control.

    None for a control that is about none of them; raises NotFound for an invalid value.
    """
    ref: AnswerValue | int | str | None
    match ABOUT.get(click.kind):
        case None:
            return None
        case About.QUESTION if click.kind == ids.DELEGATE:
            ref = ids.parse_attention_block(click.block)
        case About.QUESTION:
            ref = ids.parse_answer(click.value)
        case About.RULE:
            ref = ids.parse_rule(click.value)
        case About.SCHEDULE:
            ref = ids.parse_schedule(click.value)
        case About.JOB:
            ref = ids.parse_job(click.value)
        case _:
            ref = ids.parse_template(click.value)
    if ref is None:
        raise NotFound(f"{ABOUT[click.kind]} not found")
    return ref


async def row_and_text(ctx: BotContext, click: BlockAction, ref: Any) -> tuple[Any, str]:
    """Return the row of a click's action, and its text; raises NotFound."""
    match ref:
        case AnswerValue():
            return (ref.job, ref.question), click.value if click.kind == ids.DELEGATE else ""
        case _ if CONTROLS[click.kind].about is About.SCHEDULE:
            return await _schedule(ctx, ref), ""
        case _:
            return ref, DECLINED if click.kind == ids.DECLINE_RULE else ""


async def _schedule(ctx: BotContext, number: int) -> str:
    """Return the name of a schedule; raises NotFound."""
    for schedule in await ctx.rt.schedules.all():
        if schedule.id == number:
            return schedule.name
    raise NotFound("schedule not found")
