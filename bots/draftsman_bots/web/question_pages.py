"""The inbox, and a question with its context, its changes and a form for the answer."""

from __future__ import annotations

import secrets
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

from markupsafe import Markup
from starlette.responses import PlainTextResponse, RedirectResponse

from draftsman.actions import questions
from draftsman.actions.action import Action, ActionResult, Call
from draftsman.actions.jobs import resume_hint, retry
from draftsman.agent_runs.changes.comment_parsing import ShownLines
from draftsman.agent_runs.changes.diff import is_diff
from draftsman.agent_runs.changes.shown_diff import ShownDiff, shown_diff
from draftsman.deliveries.action_text import action_text
from draftsman.deliveries.question_text import (
    approvals_text,
    has_saved_changes,
    holder_text,
    missing_diff,
)
from draftsman.entities.questions import INBOX
from draftsman.errors import FieldError, NotFound, UsageError
from draftsman.formats.amounts import COUNT_LIMIT, count_text
from draftsman.ids import job_name, job_number
from draftsman.jobs.details.sections.facts import facts
from draftsman.jobs.details.sections.questions import heading, remark_lines
from draftsman.jobs.details.sections.section import JobSection
from draftsman.jobs.job import Status
from draftsman.jobs.pending_decisions.pending_decision import PendingDecision
from draftsman.questions.answer import Verdict
from draftsman.questions.answer_kind import AnswerKind
from draftsman.questions.question import (
    OpenQuestion,
    Question,
    QuestionKind,
    QuestionStatus,
    replacement_of,
)
from draftsman.questions.rights import missing_approvals
from draftsman.text import capitalized, digest
from draftsman_bots.conversation.replies import refused
from draftsman_bots.web.access import OTHER_SESSION, client_address
from draftsman_bots.web.job_pages import controls_of
from draftsman_bots.web.list_pages import MAX_FILTER, UNFILTERED, examples
from draftsman_bots.web.pages import page, read_form, seconds_left, unfolded
from draftsman_bots.web.problems import PageProblem, error_text
from draftsman_bots.web.section_html import owner_of, page_reader, print_markdown
from draftsman_bots.web.undo_window import (
    apply_when_due,
    effect_of,
    entered_in,
    response_name,
    response_text,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from starlette.requests import Request
    from starlette.responses import Response

    from draftsman.jobs.details.job_details import JobDetails
    from draftsman.jobs.details.sections.section import Line, Reader
    from draftsman.people.actor import Actor
    from draftsman.runtime import Runtime
    from draftsman_bots.web.access import Visit
    from draftsman_bots.web.context import WebContext

MAX_QUESTIONS: Final = 200
"""Questions of the inbox."""
REVIEW_MEBIBYTES: Final = 4
"""Maximum size of a patch that a page shows."""
MAX_KEY: Final = 64
"""Characters of the random key of a form, which makes its answer count once."""
ENTRIES: Final = ("reason", "comments", "choice", "text", "only")
"""Fields of the form that keep what was entered."""
MAX_BAR_CHOICES: Final = 4
MAX_BAR_LABEL: Final = 24
"""Characters of a choice in the bar."""
TEXT_INPUTS: Final = {
    AnswerKind.INTEGER: Markup('type="number" step="1"'),
    AnswerKind.NUMBER: Markup('type="number" step="any"'),
    AnswerKind.DATE: Markup('type="date"'),
}
"""Attributes of the field of a free answer, by which phones choose their keys."""
ABOUT: Final = frozenset({"type", "repo", "requester", "ticket"})
"""Facts of the job that the page of a question has."""
ACTIONS: Final[dict[str, Action[questions.QuestionRow, ..., Any]]] = {
    "approve": questions.approve,
    "deny": questions.deny,
    "request-changes": questions.request_changes,
    "answer": questions.answer,
}
"""The actions of the form."""


async def inbox(context: WebContext, request: Request) -> Response:
    """Show the open questions, those for the person first."""
    visit = await context.visit(request)
    where = request.query_params.get("where", "").strip()[:MAX_FILTER]
    most = COUNT_LIMIT if where else MAX_QUESTIONS
    open_questions = await _open_questions(context, visit, most)
    counts = visit.tabs.questions
    now = await context.rt.checkpoints.now()
    hints = examples(INBOX, open_questions, now)
    problem = ""
    try:
        shown = INBOX.select(open_questions, now, search=where)
    except UsageError as error:
        problem = f"{error_text(error)} {UNFILTERED}"
        shown = open_questions
    is_capped = len(open_questions) == most or len(shown) > MAX_QUESTIONS
    shown = shown[:MAX_QUESTIONS]
    mine = [_row(question) for question in shown if question.for_viewer]
    others = [_row(question) for question in shown if not question.for_viewer]
    return page(
        "inbox",
        visit,
        live=True,
        active="questions",
        mine=mine,
        others=others,
        for_you=count_text(len(mine) if where else counts.for_you),
        for_others=count_text(len(others) if where else counts.open - counts.for_you),
        where=where,
        examples=hints,
        problem=problem,
        is_capped=is_capped,
    )


async def show(context: WebContext, request: Request) -> Response:
    """Show a question."""
    visit = await context.visit(request)
    question = await _question(context, request, visit)
    note = _recorded_note(request) if "recorded" in request.query_params else ""
    problem = ""
    if "held" in request.query_params:
        note, problem = await effect_of(context.rt, question, visit.actor)
    return await _question_page(context, visit, question, note=note, problem=problem)


async def answer(context: WebContext, request: Request) -> Response:
    """Submit an answer or a decision, then show its effect."""
    visit = await context.visit(request)
    fields = await read_form(request)
    context.limits.count_form(visit.session.id, client_address(request, context.settings))
    question = await _question(context, request, visit)
    if not context.access.is_form_of(visit, fields):
        return await _question_page(
            context, visit, question, status=403, problem=OTHER_SESSION, entered=fields
        )
    if fields.get("shown") != shown_digest(question):
        raise PageProblem(
            409,
            f"{question.name} is not the question that your page showed.",
            "Open the question again and check it before you answer.",
        )
    if place := fields.get("comment"):
        comments = fields.get("comments", "").rstrip("\n")
        fields["comments"] = f"{comments}\n{place}=".lstrip("\n")
        return await _question_page(context, visit, question, entered=fields)
    try:
        result = await _submitted(context, question, visit, fields)
    except UsageError as error:
        return await _question_page(
            context,
            visit,
            question,
            status=422,
            problem=error_text(error),
            problem_at=_field_of(error, question),
            entered=fields,
        )
    except questions.AnswerRefused as error:
        problem = "".join(map(str, refused(error.verdict).whole))
    else:
        verdict = result.value
        if isinstance(verdict, PendingDecision):
            window = context.rt.settings.questions.undo
            context.tasks.spawn(apply_when_due(context.rt, verdict, window))
            return RedirectResponse(f"{_path(question)}?held", 303)
        also = f"&also={len(verdict.also)}" if isinstance(verdict, Verdict) and verdict.also else ""
        return RedirectResponse(f"{_path(question)}?recorded{also}", 303)
    return await _question_page(
        context, visit, question, status=409, problem=problem, entered=fields
    )


async def undo(context: WebContext, request: Request) -> Response:
    """Undo an answer in its undo window, and show its form, filled in as before."""
    visit = await context.visit(request)
    fields = await read_form(request)
    context.access.check_form(visit, fields)
    question = await _question(context, request, visit)
    service = context.rt_of(visit).pending_decisions
    decision = await service.of_question(question.job, question.ordinal, visit.actor)
    if decision is None or not await service.undo(decision):
        raise PageProblem(
            409,
            f"Your answer to {question.name} can no longer be undone.",
            f"It counts since the end of its undo window: open {question.name} to see its effect.",
        )
    entered = entered_in(decision, question)
    note = "Undone: your answer does not count. Change it, or leave the question open."
    return await _question_page(context, visit, question, undone=note, entered=entered)


async def diff_file(context: WebContext, request: Request) -> Response:
    """Return the changes of a question as a text file."""
    visit = await context.access.required(request)
    question = await _question(context, request, visit)
    review = await context.rt_of(visit).changes.of_question(question)
    if review.patch is None:
        raise NotFound(f"{question.name} has no changes")
    return PlainTextResponse(review.patch.encode("utf-8", "surrogateescape"))


async def _open_questions(
    context: WebContext, visit: Visit, most: int = MAX_QUESTIONS
) -> Sequence[OpenQuestion]:
    """Return the open questions that the person may see, identical ones once."""
    rt = context.rt_of(visit)
    return await rt.questions.open(limit=most, fold_for=visit.actor)


def shown_digest(question: Question) -> str:
    """Return the digest of a question and its changes, to which an answer is bound."""
    return digest(
        [
            question.name,
            question.digest,
            question.patch_sha256,
            question.text,
            question.context_snippet,
            question.choices,
            question.action,
        ]
    )


async def _question_page(
    context: WebContext,
    visit: Visit,
    question: Question,
    *,
    status: int = 200,
    note: str = "",
    undone: str = "",
    problem: str = "",
    problem_at: str = "",
    entered: dict[str, str] | None = None,
) -> Response:
    rt = context.rt_of(visit)
    details = await rt.read_model.details(question.job)
    question = next(other for other in details.questions if other.ordinal == question.ordinal)
    live = next(
        (other for other in details.open_questions if other.ordinal == question.ordinal), None
    )
    if live is not None:
        await rt.figures.record_views([live], visit.actor)
    held = await rt.pending_decisions.of_question(question.job, question.ordinal, visit.actor)
    seconds = 0 if held is None else seconds_left(held, details.at)
    refusal = None if live is None else rt.figures.refusal(live, visit.actor)
    review = await rt.changes.of_question(question, most=REVIEW_MEBIBYTES)
    reader = page_reader(rt, details)
    about = (fact for fact in facts(details, reader) if fact.label in ABOUT)
    action = question.approved_action
    context_text = question.context_snippet or ""

    has_expired = question.status is QuestionStatus.EXPIRED
    controls = controls_of(context, visit, details) if has_expired else ()
    diff = shown_diff(review.patch) if review.patch else None
    is_live = status == 200 and entered is None
    entered = dict.fromkeys(ENTRIES, "") | (entered or {})
    commented = entered["comments"].splitlines()
    missing = missing_diff(question)
    response = page(
        "question",
        visit,
        status=status,
        live=is_live,
        active="questions",
        question=question,
        job=details.job,
        heading=heading(question, details, reader)[1:],
        facts=JobSection("about", "", parts=tuple(about)),
        remarks=[*remark_lines(question, details, reader)],
        is_approval=question.kind is QuestionKind.APPROVAL,
        is_open=live is not None,
        here=question.name,
        held="" if held is None else response_name(held),
        held_text="" if held is None else response_text(held, question),
        seconds=seconds,
        undone=undone,
        refusal="" if refusal is None else error_text(refusal),
        expired=_expired_line(question, details, reader),
        controls=[item for item in controls if item.name == retry.name],
        approved=_approved_line(rt, live, details, reader, visit.actor),
        action="" if action is None else action_text(action),
        asking=details.asking.get(question.ordinal),
        missing=missing,
        takes_changes=question.takes_changes,
        review=review,
        diff=diff,
        unfolded=() if diff is None else unfolded(diff) | _named(diff, commented),
        commentable=_commentable(review.patch) if review.patch and question.takes_changes else {},
        asked_again=replacement_of(question, details.questions),
        context_shown=print_markdown(context_text),
        context_diff=shown_diff(context_text) if is_diff(context_text) else None,
        since=shown_diff(review.since_patch) if review.since_patch else None,
        has_patch=has_saved_changes(question),
        note=await _note(context, question, note),
        problem=problem,
        problem_at=problem_at,
        entered=entered,
        wants_comment="comment" in entered,
        choices=_choices(question),
        choices_in_bar=_are_short(question),
        takes_text=_takes_text(question),
        text_input=TEXT_INPUTS.get(question.answer_kind, ""),
        shown=shown_digest(question),
        key=entered.get("key") or secrets.token_urlsafe(12),
        next_question=await _next_question(context, visit, question),
    )
    if held is not None:
        response.headers["refresh"] = f"{seconds + 1}; url={_path(question)}?held"
    return response


def _named(diff: ShownDiff, comments: Sequence[str]) -> set[str]:
    """Return the paths of the files that comments name."""
    return {
        shown.file.path
        for shown in diff.files
        if any(text.startswith(shown.file.path) for text in comments)
    }


def _commentable(patch: str) -> dict[str, set[int]]:
    """Return the lines of changed files that take comments, by path."""
    files = ShownLines(patch, "comments").files
    return {path: set(lines) for path, lines in files.items()}


def _recorded_note(request: Request) -> str:
    also = request.query_params.get("also", "")
    if not (also.isascii() and also.isdigit() and len(also) < 9 and int(also)):
        return "Your answer was recorded."
    return f"Your answer was recorded, also for {int(also):,} other job{'s' * (int(also) > 1)}."


async def _note(context: WebContext, question: Question, note: str) -> str:
    """Return the note after an answer, with the pause of the job if it is paused."""
    if not note:
        return ""
    pause = await questions.pause_of(context.rt, question.job)
    hint = str(resume_hint(question.job))
    return f"{note} {pause}. {capitalized(hint)}" if pause else note


async def _next_question(
    context: WebContext, visit: Visit, question: Question
) -> dict[str, Any] | None:
    """Return the open question for the person that follows in the inbox, or else the first."""
    open_questions = await _open_questions(context, visit)
    waiting = [
        other for other in open_questions if other.name != question.name and other.for_viewer
    ]
    later = [other for other in waiting if _inbox_order(other) > _inbox_order(question)]
    return next((_row(other) for other in (*later, *waiting)), None)


def _inbox_order(question: Question) -> tuple[datetime, int, int]:
    """Return the key by which the inbox sorts questions."""
    expires_at = question.expires_at or datetime.max.replace(tzinfo=UTC)
    return expires_at, question.job, question.ordinal


def _expired_line(question: Question, details: JobDetails, reader: Reader) -> Line:
    """Return what became of the job of an expired question; nothing for another question."""
    if question.status is not QuestionStatus.EXPIRED or question.expires_at is None:
        return ()
    job = details.job
    verb = "decided" if question.kind is QuestionKind.APPROVAL else "answered"
    effect = "expired" if job.status is Status.EXPIRED else "went on without it"
    new = details.wait_reason.retried_as
    retried = f", and was retried as {job_name(new)}" if new is not None else ""
    when = reader.clock(question.expires_at)
    return f"No person had {verb} it at ", when, f": {job.name} {effect}{retried}."


def _approved_line(
    rt: Runtime, live: OpenQuestion | None, details: JobDetails, reader: Reader, actor: Actor
) -> Line:
    """Return the vote of a person below the quorum, and who is still needed; else nothing."""
    if live is None or actor.voter not in live.approved_by:
        return ()
    approval = next(
        answer
        for answer in details.answers
        if (answer.question, answer.voter, answer.accepted) == (live.ordinal, actor.voter, True)
    )
    invoker = rt.policy.requester(live.requester)
    missing = missing_approvals(rt.policy, live, invoker=invoker, owner=owner_of(rt))
    return "You approved at ", reader.clock(approval.created_at), f"; {missing}."


def _choices(question: Question) -> list[dict[str, str]]:
    names = ("value", "label", "description")
    return [{name: str(choice.get(name) or "") for name in names} for choice in question.choices]


def _are_short(question: Question) -> bool:
    """Return whether the bar of the page has room for the answers that a question takes."""
    choices = _choices(question)
    return (
        not question.freeform_allowed
        and all(
            len(choice["label"]) <= MAX_BAR_LABEL and not choice["description"]
            for choice in choices
        )
        and 0 < len(choices) <= MAX_BAR_CHOICES
    )


def _takes_text(question: Question) -> bool:
    return question.freeform_allowed or not question.choices


def _field_of(error: UsageError, question: Question) -> str:
    """Return the field of the form that an error is about; "" for none that the page shows."""
    field = error.field.partition(".")[0] if isinstance(error, FieldError) else ""
    if question.kind is QuestionKind.APPROVAL:
        return (field or "reason") if field in ("", "reason", "comments") else ""
    if field == "choice" or not _takes_text(question):
        return "" if _are_short(question) else "choice"
    return "text"


def _row(question: OpenQuestion) -> dict[str, Any]:
    action = question.approved_action
    return {
        "question": question,
        "path": _path(question),
        "is_approval": question.kind is QuestionKind.APPROVAL,
        "action": "" if action is None else action_text(action),
        "details": [
            question.others and f"{len(question.others) + 1:,} jobs ask this",
            question.repo,
            question.requester and f"by {question.requester}",
            approvals_text(question),
            holder_text(question),
        ],
    }


def _path(question: Question) -> str:
    return f"/questions/{question.name}"


async def _question(context: WebContext, request: Request, visit: Visit) -> Question:
    """Return the question of a path that the person may see; raises NotFound."""
    job = job_number(request.path_params["job"])
    ordinal = request.path_params["ordinal"]
    if job is None or not (ordinal.isascii() and ordinal.isdigit() and len(ordinal) < 9):
        raise NotFound("there is no such question")
    return await context.rt_of(visit).questions.get(job, int(ordinal))


async def _submitted(
    context: WebContext, question: Question, visit: Visit, fields: dict[str, str]
) -> ActionResult[Any]:
    """Submit the answer or decision of a form; raises UsageError, AnswerRefused."""
    key = fields.get("key", "")
    if not 8 <= len(key) <= MAX_KEY:
        raise PageProblem(400, "The form is incomplete.", "Open the question again.")
    only = "only" in fields  # identical questions are left open
    event = f"web:{visit.session.id}:{question.name}:{key}"
    call = Call(context.rt_of(visit), visit.actor, event, context.rt.settings.questions.undo)
    row = (question.job, question.ordinal)
    if question.kind is QuestionKind.APPROVAL:
        decide = ACTIONS.get(fields.get("decision", ""))
        if decide is None or decide is questions.answer:
            changes = ", request changes" if question.takes_changes else ""
            raise FieldError(f"choose: approve{changes} or deny", field="decision")
        text = fields.get("reason", "").strip()
        comments = fields.get("comments", "").splitlines()
        if decide is questions.request_changes:
            return await questions.request_changes(call, row, text, comments=comments)
        if any(map(str.strip, comments)):
            problem = "comments on files are for a request for changes"
            raise FieldError(problem, field="comments")
        return await decide(call, row, text)
    choice = fields.get("choice", "")
    text = fields.get("text", "").strip()
    if choice and text:
        raise UsageError("choose an answer or write an answer, not both")
    if not choice and not text:
        choices = "choose an answer" if question.choices else ""
        writes = "write an answer" if _takes_text(question) else ""
        raise UsageError(" or ".join(filter(None, (choices, writes))))
    if choice and choice not in question.values():
        problem = f"{choice[:60]!r} is not a choice of {question.name}"
        raise FieldError(problem, field="choice")
    return await questions.answer(call, row, choice or text, only=only)
