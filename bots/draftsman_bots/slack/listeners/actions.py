"""Buttons and selects. What they carry is numbers; what these stand for is looked up now."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from draftsman.domain.question import QuestionStatus
from draftsman.errors import DraftsmanError, NotFound, NotPermitted, UsageError
from draftsman_bots.slack import asking, forms, ids, inbound
from draftsman_bots.slack.blocks import SELECT_MOST
from draftsman_bots.slack.ids import AnswerValue
from draftsman_bots.slack.listeners import answers, home, wishes
from draftsman_bots.slack.listeners.colleagues import recognize
from draftsman_bots.slack.listeners.people import admit, admit_known, check_opening, somebody
from draftsman_bots.slack.listeners.whisper import Place, Said, comes_again, refusal, whisper
from draftsman_bots.slack.listeners.windows import show

if TYPE_CHECKING:
    from slack_bolt.async_app import AsyncApp

    from draftsman.domain.answer import Response
    from draftsman_bots.slack.inbound import Press
    from draftsman_bots.slack.listeners.desk import Desk

GONE: Final = Said("That is no longer active.")
_CONTROLS: Final = frozenset({"actions", "input"})


def register(app: AsyncApp, desk: Desk) -> None:
    """Put everything that can be pressed on the app; what we do not know is acknowledged."""

    async def action(ack: Any, body: dict[str, Any]) -> None:
        await press(desk, body)
        await ack()

    async def options(ack: Any, body: dict[str, Any]) -> None:
        await ack(options=await suggest(desk, body))

    app.action(re.compile(""))(action)
    app.options(re.compile(""))(options)


async def press(desk: Desk, body: dict[str, Any]) -> None:
    """Do what a press means; raises what the person can try again."""
    found = inbound.press(body)
    if found is None:
        return
    place = Place(found.who.id, found.channel, found.thread, found.respond)
    try:
        said = await _route(desk, found, place)
    except NotFound:
        said = GONE
        _strip(desk, found)
    except DraftsmanError as error:
        if comes_again(error):
            raise
        said = refusal(error, found.who.id)
    if said is not None:
        whisper(desk, place, said)


async def suggest(desk: Desk, body: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the choices of a question that contain what was typed, as many as Slack takes."""
    found = inbound.lookup(body)
    named = ids.parse_answer(found.block) if found else None
    if found is None or named is None:
        return []
    try:
        await admit(desk, found.who)
        question = await desk.rt.questions.get(named.job, named.question)
    except DraftsmanError as error:
        if comes_again(error):
            raise
        return []
    typed = found.typed.strip().casefold()
    labels = [str(choice["label"]).casefold() for choice in question.choices]
    pairs = zip(asking.options(question), labels, strict=True)
    return [option for option, label in pairs if typed in label][:SELECT_MOST]


async def _route(desk: Desk, press: Press, place: Place) -> Said | None:
    kind = press.action.partition(":")[0]
    if kind in (ids.ANSWER, ids.CHOOSE):
        return await _choose(desk, press)
    if kind == ids.APPROVE:
        return await _approve(desk, press)
    if kind in (ids.FREE, ids.DENY):
        _open(desk, press, place, kind)
    elif kind in (ids.CANCEL, ids.RETRY):
        return await _operate(desk, press, kind)
    elif kind == ids.NEW_JOB:
        check_opening(desk, press.who)
        target = f"slack:{press.who.id}"
        show(desk, place, press.trigger, forms.new_job(desk.rt.settings.agent_names, target))
    elif kind == ids.REFRESH:
        home.publish(desk, press.who)
    return None


async def _choose(desk: Desk, press: Press) -> Said | None:
    named = _named(press)
    question = await desk.rt.questions.get(named.job, named.question)
    value = answers.chosen(question, named.choice)
    if value is None:
        if question.status is QuestionStatus.OPEN:  # its buttons stay
            raise UsageError(f"{question.name} has no such choice; press one of its buttons")
        raise NotFound(f"{question.name} has no such choice")
    return await _hand_in(desk, press, named, answers.response(press.key, text=value))


async def _approve(desk: Desk, press: Press) -> Said | None:
    given = answers.response(press.key, decision=True)
    return await _hand_in(desk, press, _named(press), given)


async def _hand_in(desk: Desk, press: Press, named: AnswerValue, given: Response) -> Said | None:
    verdict = await answers.hand_in_of(desk, press.who, named.job, named.question, given)
    if not press.channel:
        home.publish(desk, press.who)
    return answers.worded(verdict, press.who.id) if answers.is_news(verdict) else None


def _open(desk: Desk, press: Press, place: Place, kind: str) -> None:
    named = _named(press)
    desk.aside.begin(recognize(desk, press.who))  # the window does not say where it was opened
    if kind == ids.DENY:
        view = forms.denial(named.job, named.question)
    else:
        text = desk.aside.kept((press.who.account(*desk.own), named.job, named.question))
        view = forms.free_text(named.job, named.question, text)
    show(desk, place, press.trigger, view)


async def _operate(desk: Desk, press: Press, kind: str) -> Said:
    job = ids.parse_job(press.value)
    if job is None:
        raise NotFound("there is no such job")
    what, work = ("cancel", wishes.cancel) if kind == ids.CANCEL else ("retry", wishes.retry)
    try:
        said = await work(desk, await admit_known(desk, press.who), job)
    except NotPermitted as error:
        one = somebody(desk, press.who)
        await desk.rt.operate.refuse(job, what, press.key, one, str(error))
        raise
    if not press.channel:
        home.publish(desk, press.who)
    return said


def _named(press: Press) -> AnswerValue:
    named = ids.parse_answer(press.value)
    if named is None:
        raise NotFound("there is no such question")
    return named


def _strip(desk: Desk, press: Press) -> None:
    """Take away what can be pressed and stands for nothing any more."""
    if press.message is None or not press.channel or not press.ts:
        return
    found = press.message.get("blocks")
    blocks = [one for one in found if isinstance(one, dict)] if isinstance(found, list) else []
    kept = [one for one in blocks if one.get("type") not in _CONTROLS]
    text = inbound.text(press.message, "text") or GONE.text
    work = desk.client.chat_update(channel=press.channel, ts=press.ts, text=text, blocks=kept)
    desk.aside.begin(work)
