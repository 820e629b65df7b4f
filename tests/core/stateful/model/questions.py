"""Questions are asked, answered and extended; jobs are canceled."""

from __future__ import annotations

from dataclasses import replace

from draftsman.questions.question import Decision
from tests.core.stateful.model.people import ModelActor, named
from tests.core.stateful.model.runs import RunModel
from tests.core.stateful.model.state import TERMINAL, Job, Question, RecordedAnswer, Refusal, Token

CHOICES = ("red", "blue")
Verdict = tuple[bool, bool, bool, str]
"""Accepted, resolved, seen before, and the status of the job then."""


class QuestionModel(RunModel):
    def ask(self, job: Job, item: Question, expires_in: float | None) -> int | None:
        """Ask and park; return the question's ordinal, None for a job to be canceled."""
        if job.cancel:
            self.end(job, "canceled", "canceled")
            return None
        for old in job.questions:
            is_told = old.on_changes == "tell" and old.outcome == "changes_requested"
            if old.key == item.key and old.status in ("answered", "expired") and not is_told:
                old.status = "superseded"
                old.outcome = "superseded"
        expires = None if expires_in is None else self.now + expires_in
        job.questions.append(replace(item, asked=self.now, expires=expires))
        job.questions[-1].timed(self.now)
        kind = "waiting_for_input" if item.kind == "input" else "waiting_for_approval"
        self.end(job, kind, "parked")
        return len(job.questions)

    def answer(self, place: int, number: int, event: str, text: str, actor: ModelActor) -> Verdict:
        """Record an answer to a question."""
        job = self.jobs[place]
        item = self.jobs[place].questions[number - 1]
        if (before := _seen(job, number, event)) is not None:
            return before.accepted, item.status != "open", True, job.status
        if item.kind != "input":
            raise Refusal("UsageError")
        chosen = next((choice for choice in CHOICES if choice == text.lower()), None)
        chosen = CHOICES[int(text) - 1] if text in ("1", "2") else chosen
        if chosen is None and not (item.freeform and text) and item.status == "open":
            raise Refusal("UsageError")
        allowed = actor.has("responder", job.invoker) or actor.person in named(item.approvers)
        recorded = RecordedAnswer(number, event, actor.voter, allowed, text=chosen or text)
        if self._keep(job, item, recorded):
            self._resolve(job, item, recorded, "answered", (actor.voter,))
        return recorded.accepted, item.status != "open", False, job.status

    def decide(
        self,
        place: int,
        number: int,
        event: str,
        decision: Decision,
        actor: ModelActor,
        token: int | None = None,
    ) -> Verdict:
        """Take an approval, a denial or a request for changes, with a token or without."""
        job = self.jobs[place]
        item = self.jobs[place].questions[number - 1]
        if (before := _seen(job, number, event)) is not None:
            return before.accepted, item.status != "open", True, job.status
        is_request = decision is Decision.REQUEST_CHANGES
        if item.kind == "input" or (is_request and item.on_changes == "refuse"):
            raise Refusal("UsageError")
        allowed = actor.decides(item.approvers, job.invoker)
        voter = actor.voter
        minted = None if token is None else self.tokens[token]
        if minted is not None:
            allowed = allowed and (minted.job, minted.question) == (place, number)
            allowed = allowed and actor.person == minted.approver
            allowed = allowed and not minted.used and not minted.replaced
        votes = [
            answer.voter
            for answer in job.responses
            if answer.question == number and answer.accepted
        ]
        answer = RecordedAnswer(number, event, voter, allowed)
        is_repeated = decision is Decision.APPROVE and voter in votes
        if not self._keep(job, item, answer, is_repeated=is_repeated):
            return False, item.status != "open", False, job.status
        decided = decision is not Decision.APPROVE or len(votes) + 1 >= item.quorum
        if not decided:
            job.job_events.append("vote_received")
        if minted is not None:
            minted.used = True
            job.job_events.append("token_redeemed")
        if decided:
            voters = (*votes, voter) if decision is Decision.APPROVE else (voter,)
            self._resolve(job, item, answer, decision.outcome, voters)
        return True, item.status != "open", False, job.status

    def extend(
        self, place: int, number: int, seconds: float | None, actor: ModelActor
    ) -> float | None:
        """Extend the expiry of a question."""
        job = self.jobs[place]
        item = self.jobs[place].questions[number - 1]
        if not actor.has("operator", job.invoker):
            raise Refusal("NotPermitted")
        if item.status != "open" or self._over(item):
            raise Refusal("QuestionClosed")
        if item.expires is None:
            raise Refusal("Refused")
        start = max(item.expires, self.now)
        item.expires = None if seconds is None else start + seconds
        item.timed(self.now)
        job.job_events.append("question_extended")
        return item.expires

    def mint(self, place: int, number: int, approver: str, actor: ModelActor) -> int:
        """Create an approval token of an approver."""
        job = self.jobs[place]
        item = self.jobs[place].questions[number - 1]
        allowed = actor.person == approver and approver in named(item.approvers)
        if item.status == "open":
            allowed = allowed and actor.decides(item.approvers, job.invoker)
        if not allowed:
            job.job_events.append("token_refused")
            raise Refusal("NotPermitted")
        key = (place, number, approver)
        older = [one for one in self.tokens if (one.job, one.question, one.approver) == key]
        if item.status != "open" or any(one.used for one in older):
            raise Refusal("QuestionClosed")
        for token in older:
            token.replaced = True
        self.tokens.append(Token(*key))
        job.job_events.append("token_minted")
        return len(self.tokens) - 1

    def cancel(self, place: int, actor: ModelActor, *, force: bool) -> tuple[str, bool]:
        """End a job, or ask its worker to; return its status and whether it was only asked."""
        job = self.jobs[place]
        if not actor.has("operator", job.invoker):
            raise Refusal("NotPermitted")
        if job.status in TERMINAL:
            raise Refusal("Refused")
        if job.status == "running" and not force:
            job.job_events += [] if job.cancel else ["cancel_requested"]
            job.cancel = True
            return "running", True
        job.cancel = True
        if job.status == "running":
            job.runs[-1] = "canceled"
        if (item := job.open) is not None:
            item.status = "canceled"
            item.outcome = "canceled"
        job.move("canceled")
        return "canceled", False

    def _over(self, item: Question) -> bool:
        return self._late(item) and not self._escalates(item)

    def _escalates(self, item: Question) -> bool:
        return self._late(item) and item.on_expire == "escalate" and not item.escalated

    def _late(self, item: Question) -> bool:
        return item.expires is not None and item.expires <= self.now

    def _keep(
        self, job: Job, item: Question, answer: RecordedAnswer, *, is_repeated: bool = False
    ) -> bool:
        """Record a response; return whether it is accepted."""
        answer.late = answer.accepted and (item.status != "open" or self._over(item))
        answer.accepted = answer.accepted and not answer.late and not is_repeated
        job.responses.append(answer)
        if not answer.accepted:
            job.job_events.append("answer_refused")
        return answer.accepted

    def _resolve(
        self, job: Job, item: Question, answer: RecordedAnswer, outcome: str, by: tuple[str, ...]
    ) -> None:
        item.status = "answered"
        item.outcome = outcome
        item.by = by
        job.job_events.append("answer_received")
        if outcome == "changes_requested" and item.on_changes == "tell":
            job.job_events.append("message_sent")
        if outcome == "denied" and item.on_deny == "fail":
            job.error = "DENIED"
            job.move("failed")
        else:
            job.move("resumed")


def _seen(job: Job, number: int, event: str) -> RecordedAnswer | None:
    return next(
        (answer for answer in job.responses if (answer.question, answer.event) == (number, event)),
        None,
    )
