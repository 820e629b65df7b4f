"""Questions that runs ask, with the answers that are known at once."""

from __future__ import annotations

import contextlib
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Final, Protocol

from draftsman.database.database import Connection, Database
from draftsman.errors import UsageError
from draftsman.ids import question_name
from draftsman.jobs.job import Source
from draftsman.jobs.runs.run import Lease, lease_lost
from draftsman.people.actor import Actor
from draftsman.people.policy import Person, Policy
from draftsman.questions.asked_question import AskedQuestion, QuestionLadder
from draftsman.questions.question import BUDGET_KEY, OnExpire, QuestionKind
from draftsman.questions.question_spec import QuestionSpec, shown_choices
from draftsman.questions.response import build_response
from draftsman.questions.service.questions import Questions
from draftsman.questions.store import questions as store

MAX_TIMEOUT: Final = 86_400.0 * 366
AnswerByRule = Callable[[Connection, int, int, Sequence[str]], Awaitable[None]]
"""Records the command of a question of this transaction, and allows it if a rule matches."""


class Ladders(Protocol):
    """The ladders of questions."""

    async def of(self, conn: Connection, job: int, item: QuestionSpec) -> QuestionLadder | None:
        """Return the ladder of a question."""

    @property
    def uses_owners(self) -> bool:
        """Whether any ladder notifies the code owners."""


class Asking:
    """Asking of questions, which parks their run."""

    def __init__(
        self,
        *,
        db: Database,
        policy: Policy,
        questions: Questions,
        expires_in: float | None,
        escalate_to: str | None,
        ladders: Ladders,
        answer_by_rule: AnswerByRule,
    ) -> None:
        self.ladders = ladders
        self.eligible_approvers = policy.eligible_approvers
        self._db = db
        self._policy = policy
        self._questions = questions
        self._expires_in = expires_in
        self._escalate_to = escalate_to
        self._answer_by_rule = answer_by_rule

    @property
    def people(self) -> Mapping[str, Person]:
        """The people of the directory, by name."""
        return self._policy.people

    def check(self, item: QuestionSpec, invoker: str) -> str | None:
        """Return the group or person that a question escalates to, None without escalation.

        Raises UsageError for a missing or unknown name, for a quorum that cannot be reached, and
        for a question for a person if there is none.
        """
        shown_choices(item, self.people)
        escalate_to = self._escalation_target(item)
        if item.kind is QuestionKind.APPROVAL:
            self._check_quorum(item, escalate_to, invoker)
        return escalate_to

    def _check_quorum(self, item: QuestionSpec, escalate_to: str | None, invoker: str) -> None:
        names = self._approvers(item)
        if escalate_to:
            names.append(escalate_to)
        eligible = set(self._policy.eligible_approvers(names, invoker))
        if self._policy.owner is not None:
            eligible.add(self._policy.owner)
        if len(eligible) < item.quorum:
            approvers = ", ".join(sorted(eligible)) or "none"
            raise UsageError(
                f"question {item.key!r} cannot reach its quorum of {item.quorum} with these"
                f" approvers: {approvers}; add approvers, or lower the quorum"
            )

    def _escalation_target(self, item: QuestionSpec) -> str | None:
        if item.on_expire is not OnExpire.ESCALATE:
            return None
        name = item.escalate_to or self._escalate_to
        if name is None:
            raise UsageError(
                f"question {item.key!r} has no escalation target; set escalate_to, or configure"
                " [questions] escalate_to"
            )
        if self._policy.people and not self._policy.knows(name):
            known_names = ", ".join(sorted({*self._policy.groups, *self._policy.people}))
            raise UsageError(
                f"question {item.key!r}: escalate_to {name!r} is not a group or person;"
                f" known: {known_names}"
            )
        return name

    async def ask(
        self,
        lease: Lease,
        item: QuestionSpec,
        *,
        answer: str | None = None,
        invoker: str = "",
        grace: float = 0,
        owners: Sequence[str] = (),
    ) -> str | None:
        """Ask a question and park the run, as `ask_all`; return its name, None if canceled."""
        questions = [AskedQuestion(item, answer)]
        names = await self.ask_all(lease, questions, invoker=invoker, grace=grace, owners=owners)
        return names[0] if names else None

    async def ask_all(
        self,
        lease: Lease,
        questions: Sequence[AskedQuestion],
        *,
        invoker: str = "",
        grace: float = 0,
        owners: Sequence[str] = (),
    ) -> Sequence[str]:
        """Ask questions and park the run; return their names, none for a canceled job.

        The timeouts start with this transaction. An answer that was submitted with the request is
        recorded in the invoker's name in the same transaction. It never applies to an approval; an
        answer that does not fit is dropped, and the question waits for people. With `grace`, in
        seconds, an answer in this time claims the job for the same worker. `owners` are the people
        who own the changed code, for the ladders. Raises LeaseLost, UsageError.
        """
        escalations = [self.check(question.item, invoker) for question in questions]

        async def work(conn: Connection) -> Sequence[int] | None:
            new = [
                await self._prepare(conn, lease.job, question, escalate_to)
                for question, escalate_to in zip(questions, escalations, strict=True)
            ]
            ordinals = await store.ask(conn, lease, new, grace=grace, owners=owners)
            for ordinal, question in zip(ordinals or (), questions, strict=False):
                await self._answer_at_once(conn, lease.job, ordinal, question, invoker)
            return ordinals

        ordinals = await self._db.run_transaction(work)
        if ordinals is None:
            raise lease_lost(lease)
        return [question_name(lease.job, ordinal) for ordinal in ordinals]

    async def _prepare(
        self, conn: Connection, job: int, question: AskedQuestion, escalate_to: str | None
    ) -> store.NewQuestion:
        item = question.item
        return store.NewQuestion(
            item,
            approvers=self._approvers(item),
            expires_in=None if item.never_expires else item.expires_in or self._expires_in,
            escalate_to=escalate_to,
            ladder=await self.ladders.of(conn, job, item),
            alternative_to=question.alternative_to,
            choices=shown_choices(item, self.people),
        )

    async def _answer_at_once(
        self, conn: Connection, job: int, ordinal: int, question: AskedQuestion, invoker: str
    ) -> None:
        """Record the answer of the request, or that of a permission rule."""
        if question.answer is not None:
            await self._answer_from_request(conn, job, ordinal, question.answer, invoker)
        elif question.item.command_words is not None:
            await self._answer_by_rule(conn, job, ordinal, question.item.command_words)

    async def _answer_from_request(
        self, conn: Connection, job: int, ordinal: int, text: str, invoker: str
    ) -> None:
        """Record the answer that was submitted with the request."""
        person = Actor(Source.INTERNAL, invoker, invoker, person=invoker)
        with contextlib.suppress(UsageError):
            response = build_response(f"request:{question_name(job, ordinal)}", text=text)
            await self._questions.record(conn, job, ordinal, response, self._policy.resolve(person))

    def _approvers(self, item: QuestionSpec) -> list[str]:
        role = "operator" if item.key == BUDGET_KEY else "approver"
        if item.kind is not QuestionKind.APPROVAL and role == "approver":
            return []
        if item.approvers is not None:
            return list(item.approvers)
        people = self._policy.people.items()
        return sorted(name for name, person in people if role in person.roles)
