"""Events of the alerts of questions, and the acknowledgments that follow."""

from __future__ import annotations

from draftsman.attention.attention import ACKNOWLEDGED
from draftsman.attention.service.acknowledgments import Acknowledgments
from draftsman.database.database import Connection, Database
from draftsman.errors import DraftsmanError
from draftsman.formats.times import format_time
from draftsman.ids import question_name
from draftsman.people.actor import Actor
from draftsman_bots.pagers.records import store
from draftsman_bots.pagers.records.pager_event import PagerEvent


class PagerEvents:
    """Records what happened to alerts, and acknowledges their questions."""

    def __init__(self, db: Database, acknowledgments: Acknowledgments) -> None:
        self._db = db
        self._acknowledgments = acknowledgments

    async def record(self, event: PagerEvent, actor: Actor | None) -> str:
        """Record the event of a pager; return its outcome for the log.

        A new acknowledgment of a person, or a resolution, acknowledges the question for an hour,
        unless a newer event of the alert is known; an alert that is opened again ends that. `actor`
        is None for an event of no person.
        """

        async def work(conn: Connection) -> str:
            question = await store.question(conn, event.job, event.question)
            if question is None:
                return "ignored: no question of this database"
            if not await store.record(conn, *question, event):
                return "ignored: known, or older than another event of the alert"
            if event.kind == "reopened" or actor is None:
                return "recorded"
            hold = self._acknowledgments.hold
            try:
                held = await hold(conn, *question, actor=actor, seconds=ACKNOWLEDGED)
            except DraftsmanError as error:
                return f"recorded, without effect: {error}"
            name = question_name(*question)
            return f"{name}: {held.person} works on it until {format_time(held.expires_at)}"

        return await self._db.run_transaction(work)
