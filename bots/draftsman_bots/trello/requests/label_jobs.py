"""Jobs from labels on cards: record the label, submit the job, swap in the queued label.

Each step is recorded before the next begins and is idempotent, so any process can continue an
unfinished episode.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

from draftsman.actions.action import Call
from draftsman.actions.jobs import cancel
from draftsman.actions.requests import submit
from draftsman.deliveries.target import parse
from draftsman.errors import (
    Failure,
    IdempotencyConflict,
    NotFound,
    Refused,
    RejectedField,
    UsageError,
)
from draftsman.jobs.job import TERMINAL
from draftsman.jobs.requests.service.submissions import SubmittedJob, invocation
from draftsman.text import first_line
from draftsman_bots.trello.boards import board_reader
from draftsman_bots.trello.deliveries.error_text import error_text
from draftsman_bots.trello.ids import card_target
from draftsman_bots.trello.records.board import (
    BoardConfig,
    Episode,
    EpisodeStage,
    LabelRule,
    LabelSighting,
    card_subject_key,
)
from draftsman_bots.trello.records.service import boards_of
from draftsman_bots.trello.requests import attachments, card_ticket, requesters, template_jobs
from draftsman_bots.trello.requests.refusals import LabelRefused, comment_once
from draftsman_bots.trello.transport.cards import parse_card, read_card

if TYPE_CHECKING:
    from trello import Card

    from draftsman.jobs.requests.invocation import Invocation
    from draftsman.people.actor import Actor
    from draftsman_bots.trello.actions import Action
    from draftsman_bots.trello.context import BotContext


GONE_STATUSES: Final = (404, 410)
_log = logging.getLogger(__name__)
Json = dict[str, Any]


def is_on_board(board: BoardConfig, card: Card) -> bool:
    """Return whether a card is open, on this board and not in an ignored list."""
    return (
        card.idBoard == board.board_id
        and not card.closed
        and card.idList not in board.ignored_list_ids
    )


async def fetch(context: BotContext, card: str) -> Card | None:
    """Return a card, or None if it does not exist; raises Failure."""
    try:
        return await read_card(context.trello, card)
    except Failure as error:
        if error.http_status in GONE_STATUSES:
            return None
        raise


async def check_card(
    context: BotContext,
    board: BoardConfig,
    card: str,
    added: Mapping[str, Actor] = MappingProxyType({}),
) -> list[Episode]:
    """Compare a card's labels with the recorded labels; return new episodes. Raises Failure.

    `added` has the people who added labels, as far as they are known.
    """
    began = await boards_of(context.rt).clock()
    current = await fetch(context, card)
    if current is None:
        return []
    labels = set(current.idLabels)
    at = current.dateLastActivity
    recorded = {label for _, label in await boards_of(context.rt).present_on([card])}
    removed = [LabelSighting(card, label, at) for label in sorted(recorded - labels)]
    await boards_of(context.rt).end_episodes(removed, began)
    if not is_on_board(board, current):
        return []
    new_labels = (board.labels.keys() & labels) - recorded
    new = [LabelSighting(card, label, at, _member(added, label)) for label in sorted(new_labels)]
    episodes = await boards_of(context.rt).begin_episodes(board.board_id, new, began)
    return episodes + await named_episodes(context, card, added)


async def named_episodes(
    context: BotContext, card: str, added: Mapping[str, Actor]
) -> list[Episode]:
    """Record who added the labels of episodes that began without a member; return those."""
    named = [
        await boards_of(context.rt).name_member(card, label, by.id) for label, by in added.items()
    ]
    return [episode for episode in named if episode is not None]


def _member(added: Mapping[str, Actor], label: str) -> str:
    return added[label].id if label in added else ""


async def process_episode(
    context: BotContext, board: BoardConfig, episode: Episode, by: Actor | None = None
) -> None:
    """Continue an episode; `by` is the person who added the label. Raises Failure.

    The card is locked and the episode read again: the label may belong to the next episode now.
    """
    async with context.card_lock(episode.card):
        for due in await boards_of(context.rt).due_on(episode.card):
            if due.key == episode.key:
                await _continue(context, board, due, by)


async def _continue(
    context: BotContext, board: BoardConfig, episode: Episode, by: Actor | None
) -> None:
    if episode.stage is EpisodeStage.PENDING:
        if await requesters.waits_for_webhook(context, episode):
            return
        if not await _submit_job(context, board, episode, by):
            return
    was_removed = await _change_labels(context, board, episode, _swap(context, board, episode))
    if was_removed is None:
        return
    if was_removed and episode.stage is EpisodeStage.SUBMITTED:
        await _notify_label_removed(context, board, episode)
    await check_card(context, board, episode.card)  # the label may have been added again meanwhile


async def _change_labels(
    context: BotContext, board: BoardConfig, episode: Episode, change: Awaitable[bool]
) -> bool | None:
    """Return whether a label was removed, None if the bot may not; then the episode is done."""
    try:
        removed = await change
    except Failure as error:
        if error.http_status not in (401, 403) or error.retry_after is not None:
            raise
        text = f"board {board.name}: cannot swap labels: {error}"
        context.health.problem(f"swap:{board.board_id}", text)
        await boards_of(context.rt).settle(episode, EpisodeStage.DONE)
        return None
    context.health.clear(f"swap:{board.board_id}")
    return removed


async def cancel_removed_card(context: BotContext, board: BoardConfig, action: Action) -> str:
    """Cancel the jobs of a card if it is still archived or deleted; return the outcome.

    The member needs the permission to cancel them, unless the boards are open. Raises Failure.
    """
    card = action.card
    numbers = sorted({copy.job for copy in await context.rt.threads.place("trello", card)})
    if not numbers:
        return "ignored"
    current = await fetch(context, card)
    if current is not None and not current.closed:
        return "outdated"
    actor = await requesters.member_actor(context, action.member, action.name)
    if context.settings.is_open:
        actor = requesters.board_actor(board)
    outcome = "jobs_canceled"
    change = "deleted" if current is None else "archived"
    reason = f"its card was {change}" + (f" by {action.name}" if action.name else "")
    for number in numbers:
        job = await context.rt.read_model.job(number)
        if job.subject_key == card_subject_key(card) and job.status not in TERMINAL:
            try:
                await cancel(Call(context.rt, actor), number, reason)
            except Refused as error:
                _log.info("D-%s: %s", number, error)
                outcome = "rejected"
                if current is not None:  # nothing can be written on a deleted card
                    await _notify_not_canceled(context, action, job.number, error)
    return outcome


async def _notify_not_canceled(
    context: BotContext, action: Action, job: int, error: Refused
) -> None:
    """Reply, once per job and member, that the job of an archived card continues."""
    text = f"The job continues although its card was archived: {error_text(error)}"
    at = parse(card_target(action.card))
    key = f"not_canceled:{action.member}"
    await context.rt.outbox.notice(job, key, text, at=at, names_job=True)


async def _submit_job(
    context: BotContext, board: BoardConfig, episode: Episode, by: Actor | None
) -> bool:
    """Submit the job of an episode; return whether the episode has a job."""
    began = await boards_of(context.rt).clock()
    card = await _fetch_full_card(context, episode)
    if card is None or episode.label not in board.labels:
        await boards_of(context.rt).settle(episode, EpisodeStage.DONE)
        return False
    current = parse_card(context.trello, episode.card, card)
    if not is_on_board(board, current) or episode.label not in current.idLabels:
        await boards_of(context.rt).end_episodes(
            [LabelSighting(episode.card, episode.label)], began
        )
        return False
    try:
        actor = await requesters.requester(context, board, episode, by)
        submitted = await _submit(context, board, episode, card, actor)
    except LabelRefused as error:
        await comment_once(context, card, error.comment, error.once)
        await _change_labels(context, board, episode, _remove_label(context, episode))
        return False
    except (UsageError, NotFound) as error:
        text = f"label {board.labels[episode.label].name!r} of board {board.name}: {error}"
        context.health.problem(f"label:{episode.label}", text)
        await boards_of(context.rt).settle(episode, EpisodeStage.DONE)
        return False
    if submitted is not None and submitted.outcome == "joined":
        await _notify_joined(context, board, episode, submitted)
    await boards_of(context.rt).settle(
        episode, EpisodeStage.SUBMITTED, submitted.number if submitted else None
    )
    return True


async def _fetch_full_card(context: BotContext, episode: Episode) -> Json | None:
    try:
        return await card_ticket.fetch_card(context.trello, episode.card)
    except Failure as error:
        if error.http_status in GONE_STATUSES:
            return None
        raise


async def _submit(
    context: BotContext, board: BoardConfig, episode: Episode, card: Json, actor: Actor
) -> SubmittedJob | None:
    """Submit the job; return None if it exists already with an earlier version of the card."""
    rule = board.labels[episode.label]
    ticket = await card_ticket.ticket(context.trello, board.board_id, card)
    if rule.template is not None:
        request = await template_jobs.form_request(context, episode, rule.template, ticket)
    else:
        request = await _card_request(context, episode, rule, ticket)
    files = attachments.file_refs(card, context.me.id)
    request = request.model_copy(update={"attachments": files})
    try:
        submitted = (await submit(Call(context.rt, actor), request)).value
    except IdempotencyConflict:
        return None
    if files:
        context.downloads.wake()
    return submitted


async def _card_request(
    context: BotContext, episode: Episode, rule: LabelRule, ticket: Json
) -> Invocation:
    """Return the request to do what a card says."""
    request = invocation(
        key=episode.key,
        subject_key=card_subject_key(episode.card),
        mode=rule.mode,
        agent=rule.agent,
        source_type="ticket",
        external_event_id=episode.key,
        title=first_line(ticket["title"], 500) or episode.card,
        text=card_ticket.ticket_text(ticket) or episode.card,
        url=ticket["url"] or None,
        labels=tuple((label["id"], label["name"]) for label in ticket["labels"]),
        payload={"ticket": ticket | {"label": episode.label}},
        notify=(card_target(episode.card),),
    )
    if request.agent is None:
        with suppress(RejectedField):  # the run fails, or its repository has an agent
            agent = await context.rt.request_checks.agent(request)
            request = request.model_copy(update={"agent": agent})
    await context.rt.request_checks.check(request, origin="trello")
    return request


async def _notify_joined(
    context: BotContext, board: BoardConfig, episode: Episode, job: SubmittedJob
) -> None:
    """Reply that the card already has a live job."""
    name = board.labels[episode.label].name or "the label"
    text = (
        f"{job.name} is still {job.status}. A card can have only one job at a time, so {name!r}"
        " did not start another. The request was added to the job's history. To start a new job,"
        f" wait until {job.name} finishes or cancel it, then add the label again."
    )
    at = parse(card_target(episode.card))
    await context.rt.outbox.notice(job.number, f"joined:{episode.key}", text, at=at, names_job=True)


async def _notify_label_removed(context: BotContext, board: BoardConfig, episode: Episode) -> None:
    """Reply that a label was removed after its job finished.

    The process that submitted the job stopped before the swap, and Trello does not show whether
    the label was added again since.
    """
    if (
        episode.job is None
        or (job := await context.rt.read_model.job(episode.job)).status not in TERMINAL
    ):
        return
    name = board.labels[episode.label].name if episode.label in board.labels else ""
    text = (
        f"{job.name} has finished, and {name or 'its label'!r} was removed from this card. To start"
        " another job, add the label again."
    )
    at = parse(card_target(episode.card))
    await context.rt.outbox.notice(job.number, f"late:{episode.key}", text, at=at, names_job=True)


async def _swap(context: BotContext, board: BoardConfig, episode: Episode) -> bool:
    """Replace the label with the queued label; return whether the label was on the card."""
    trello = context.trello
    if board.queued_label_id is not None:
        card = trello.card(episode.card)
        try:
            await trello.write(card.add_label, trello.label(board.queued_label_id))
        except Failure as error:
            # already on the card, or the label was deleted
            if error.http_status not in (400, *GONE_STATUSES):
                raise
    return await _remove_label(context, episode)


async def _remove_label(context: BotContext, episode: Episode) -> bool:
    """Remove a label, which ends its episode; return whether it was on the card."""
    trello = context.trello
    removed = True
    try:
        await trello.write(trello.card(episode.card).remove_label, trello.label(episode.label))
    except Failure as error:
        if error.http_status not in (400, *GONE_STATUSES):  # already removed
            raise
        removed = False
    await boards_of(context.rt).end_swapped_episode(episode)
    return removed


# Preview of the jobs that a board's labels would create.


@dataclass(frozen=True, slots=True)
class LabelPreview:
    """A label with the number of its cards that would create a job.

    `known` cards had the label before or have their job; `ignored` cards are in ignored lists.
    """

    label: str
    name: str
    mode: str
    agent: str | None
    template: str | None
    jobs: int
    known: int
    ignored: int


async def preview_labels(context: BotContext, board: BoardConfig) -> list[LabelPreview]:
    """Compare a board's cards as the poller does, without recording anything; raises Failure."""
    cards = await board_reader.cards(context.trello, board.board_id)
    was_polled = await boards_of(context.rt).cursor(board.board_id) is not None
    recorded = await boards_of(context.rt).present_on(sorted(cards))
    previews = []
    for label, rule in board.labels.items():
        labeled = [id for id, card in cards.items() if label in card.idLabels]
        counted = [id for id in labeled if is_on_board(board, cards[id])]
        old = [id for id in counted if (id, label) in recorded]
        if not was_polled and not board.include_existing:
            old = counted
        previews.append(
            LabelPreview(
                label=label,
                name=rule.name,
                mode=str(rule.mode),
                agent=rule.agent,
                template=rule.template,
                jobs=len(counted) - len(old),
                known=len(old),
                ignored=len(labeled) - len(counted),
            )
        )
    return previews
