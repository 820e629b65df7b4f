"""Requests become jobs; finished jobs are retried."""

from __future__ import annotations

from collections.abc import Sequence

from tests.core.stateful.model.people import ModelActor
from tests.core.stateful.model.state import TERMINAL, Job, JobRequest, Refusal, State

CHAIN_LIMIT = 100


class SubmissionModel(State):
    def submit(self, batch: Sequence[JobRequest], actor: ModelActor) -> list[tuple[int, str]]:
        """Return the job of each request, and whether it was created, deduplicated or joined.

        Of several requests for a subject in a batch the first is created, and the others join it;
        numbers follow the order of the batch.
        """
        if not actor.has("invoker"):
            raise Refusal("NotPermitted")
        known = {place: self._known(item) for place, item in enumerate(batch)}
        fresh = [place for place, found in known.items() if found is None]
        keys = set[tuple[str, str]]()
        subjects = set[str]()
        winners = []
        for place in fresh:
            item = batch[place]
            if (item.key and (item.type, item.key) in keys) or item.subject in subjects:
                continue
            keys |= {(item.type, item.key)} if item.key else set()
            subjects |= {item.subject} if item.subject else set()
            winners.append(place)
        created = {place: self._create(batch[place], actor) for place in winners}
        answers = []
        conflict = False
        for place, item in enumerate(batch):
            existing = known[place]
            if place in created:
                answers.append((created[place], "created"))
                continue
            existing = existing if existing is not None else self._known(item)
            assert existing is not None
            same = item.key is not None and self._key(existing) == (item.type, item.key)
            conflict |= same and self.jobs[existing].request.content != item.content
            answers.append((existing, "deduplicated" if same else "joined"))
            if not same:
                self._join(existing, item, actor)
        if conflict:
            raise Refusal("IdempotencyConflict")
        return answers

    def retry(
        self, place: int, actor: ModelActor, *, fresh: bool, again: bool, with_answer: bool
    ) -> tuple[int, str]:
        """Return the retry of a finished job."""
        job = self.jobs[place]
        if not actor.has("operator", job.invoker):
            raise Refusal("NotPermitted")
        if job.status not in TERMINAL or (job.status == "completed" and not again):
            raise Refusal("Refused")
        answers: dict[str, str | None] | None = None
        if with_answer:
            late = [
                answer
                for answer in job.responses
                if answer.late
                and job.questions[answer.question - 1].status == "expired"
                and job.questions[answer.question - 1].kind == "input"
            ]
            if not late:
                raise Refusal("Refused")
            answers = {job.questions[late[-1].question - 1].key: late[-1].text}
        return self.successor(place, actor, fresh=fresh, answers=answers)

    def successor(
        self,
        place: int,
        actor: ModelActor,
        *,
        fresh: bool,
        answers: dict[str, str | None] | None = None,
    ) -> tuple[int, str]:
        """Return the next job after a finished job."""
        old = self.jobs[place]
        for other, job in enumerate(self.jobs):
            if job.retry_of == place:
                return other, "deduplicated"
        if old.chain >= CHAIN_LIMIT or self._live(old.request.subject) is not None:
            raise Refusal("Refused")
        retry = self._create(old.request, actor, planned=False)
        job = self.jobs[retry]
        job.retry_of = place
        job.chain = old.chain + 1
        job.answers = answers
        if not fresh:
            job.checkpoints = old.checkpoints[-1:]
        return retry, "created"

    def _create(self, item: JobRequest, actor: ModelActor, *, planned: bool = True) -> int:
        due = self.now + item.delay if planned and item.delay is not None else None
        status = "queued" if due is None else "scheduled"
        self.jobs.append(Job(item, actor.voter, status, item.priority, due=due))
        return len(self.jobs) - 1

    def _join(self, place: int, item: JobRequest, actor: ModelActor) -> None:
        """Record a request for an active subject, once for its key or for its person's text."""
        job = self.jobs[place]
        same = (item.type, item.content, actor.voter)
        if not {item.key or same, same} & job.joined:
            job.job_events.append("request_joined")
            job.joined |= {item.key or same, same}

    def _known(self, item: JobRequest) -> int | None:
        for place in range(len(self.jobs)):
            if item.key is not None and self._key(place) == (item.type, item.key):
                return place
        return self._live(item.subject)

    def _key(self, place: int) -> tuple[str, str | None]:
        job = self.jobs[place]
        return job.request.type, None if job.retry_of is not None else job.request.key

    def _live(self, subject: str | None) -> int | None:
        for place, job in enumerate(self.jobs):
            has_subject = subject is not None and job.request.subject == subject
            if has_subject and job.status not in TERMINAL:
                return place
        return None
