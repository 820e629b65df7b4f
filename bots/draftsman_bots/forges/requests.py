"""Jobs that people request on a forge: by a label of an issue, or by a mention in a comment."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from draftsman.actions.action import Call
from draftsman.actions.jobs import tell
from draftsman.actions.requests import submit
from draftsman.deliveries.target import parse
from draftsman.errors import CORRECTABLE, IdempotencyConflict, RejectedField, UsageError
from draftsman.forges.forge_event import MAX_ISSUE, EventKind, plain
from draftsman.jobs.job import AGENT_TYPE, TERMINAL
from draftsman.jobs.requests.service.submissions import invocation
from draftsman.people.policy import unlinked
from draftsman.text import first_line
from draftsman_bots.conversation.requests import JobRequest
from draftsman_bots.forges.controls import jobs_here
from draftsman_bots.forges.replies import reply, reply_without_job

if TYPE_CHECKING:
    from draftsman.forges.forge_event import ForgeEvent
    from draftsman.forges.pull_request import IssueText
    from draftsman.jobs.requests.invocation import Invocation
    from draftsman.jobs.requests.service.submissions import SubmittedJob
    from draftsman.people.actor import Actor
    from draftsman_bots.conversation.parser import ParsedText
    from draftsman_bots.forges.context import EventContext

TITLE: Final = 300
"""Maximum characters of a title that is kept."""


async def request_job(context: EventContext, comment: ParsedText | None = None) -> str:
    """Submit a job for an issue, as its label or a comment asks.

    Return the outcome. A refusal is a reply; the same event requests a single job.
    """
    actor = await context.actor()
    if actor.person is None:
        await reply_without_job(context, str(unlinked(actor)))
        return "refused"
    comment_text = comment.literal if comment else ""
    if comment_text and (sent := await _follow_up(context, actor, comment_text)) is not None:
        return sent
    repo = await _registered(context)
    if repo is None:
        text = f"{context.event.project} is not registered: `draftsman repos add URL`"
        await reply_without_job(context, text)
        return "refused"
    try:
        issue = await context.discussion.issue()
        pinned = _as_labeled(context.event, issue)
        request = await _request(context, repo, pinned, comment)
        submitted = (await submit(Call(context.rt, actor), request)).value
    except CORRECTABLE as error:
        await reply_without_job(context, str(error))
        return "refused"
    except IdempotencyConflict:  # an earlier delivery of the event had another text
        return "submitted"
    if submitted.outcome == "joined":
        await _notify_joined(context, submitted)
    elif (pinned.title, pinned.body) != (first_line(plain(issue.title), TITLE), _text(issue)):
        await _notify_edited(context, submitted)
    return "submitted"


def _as_labeled(event: ForgeEvent, issue: IssueText) -> IssueText:
    """Return the issue with the text that it had at its label; a comment does not have it."""
    if event.kind is not EventKind.LABELED_ISSUE:
        return replace(issue, title=first_line(plain(issue.title), TITLE), body=_text(issue))
    return replace(issue, title=first_line(event.title, TITLE), body=event.text)


def _text(issue: IssueText) -> str:
    return plain(issue.body, MAX_ISSUE)


async def _follow_up(context: EventContext, actor: Actor, comment_text: str) -> str | None:
    """Follow up on the open pull request of the issue's last job; None without one."""
    jobs = [job for job in await jobs_here(context) if job.type == AGENT_TYPE]
    follow_ups = context.rt.forge_events.follow_ups
    if not jobs or jobs[0].status not in TERMINAL or not await follow_ups.is_open(jobs[0].number):
        return None
    number = jobs[0].number
    try:
        call = Call(context.rt, actor, context.key[-500:])
        sent = await tell(call, number, comment_text)
    except CORRECTABLE as error:
        await reply(context, number, str(error))
        return "refused"
    await reply(context, number, f"{sent}.")
    return "answered"


async def _registered(context: EventContext) -> str | None:
    """Return the URL of the registered repository of the issue."""
    return await context.rt.request_checks.registered_source(
        context.settings.url, context.event.project
    )


async def _request(
    context: EventContext, repo: str, issue: IssueText, comment: ParsedText | None
) -> Invocation:
    """Return the request of an issue; raises UsageError for options that are none here."""
    event = context.event
    comment_text = comment.literal if comment else ""
    options = dict[str, Any]()
    if comment is not None and comment.problem and comment.text:
        raise UsageError(comment.problem)
    if comment is not None and isinstance(comment.request, JobRequest):
        options = {"mode": comment.request.mode, **comment.request.options}
        if "repo" in options:
            raise UsageError("the repository is that of the issue, without --repo")
        comment_text = f"{comment.verb} {comment.request.text}"
    text = "\n\n".join(
        paragraph
        for paragraph in (issue.body, comment_text and _quoted(context, comment_text))
        if paragraph
    )
    request = invocation(
        key=context.key,
        subject_key=context.target,
        external_event_id=context.key[:500],
        repo=repo,
        title=issue.title or context.issue.target,
        text=text[:MAX_ISSUE] or issue.title,
        url=issue.url,
        payload={"issue": {"forge": context.forge, "project": event.project}},
        notify=(context.target,),
        **options,
    )
    if request.agent is None:
        with suppress(RejectedField):  # the run fails, or its repository has an agent
            agent = await context.rt.request_checks.agent(request)
            request = request.model_copy(update={"agent": agent})
    await context.rt.request_checks.check(request, origin="forge")
    return request


def _quoted(context: EventContext, comment_text: str) -> str:
    return f"{context.event.author} commented:\n{comment_text}"


async def _notify_edited(context: EventContext, job: SubmittedJob) -> None:
    """Reply that the job has the text of the label, and not of a later edit."""
    text = f"The issue was edited since it was labeled; {job.name} has the text of that time."
    key = f"edited:{context.event.key}"
    await context.rt.outbox.notice(job.number, key, text, at=parse(context.target))


async def _notify_joined(context: EventContext, job: SubmittedJob) -> None:
    """Reply that the issue already has a live job."""
    text = (
        f"{job.name} is still {job.status}. An issue has a single job at a time, so no other"
        " was started; the request was added to the history of the job. For its agent:"
        f" /draftsman tell {job.name} …"
    )
    at = parse(context.target)
    key = f"joined:{context.event.key}"
    await context.rt.outbox.notice(job.number, key, text, at=at, names_job=True)
