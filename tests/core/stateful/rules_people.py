"""Rules: runs ask; people answer, extend and cancel."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import precondition, rule

from draftsman.errors import LeaseLost
from draftsman.questions.answer import Verdict
from draftsman.questions.question import Decision
from draftsman.questions.question_spec import QuestionSpec
from draftsman.questions.response import Response
from draftsman.runtime import Runtime
from tests.core.stateful.driver import Driver
from tests.core.stateful.model.people import EVERYBODY, ModelActor, reachable
from tests.core.stateful.model.questions import CHOICES
from tests.core.stateful.model.state import TERMINAL, Question
from tests.core.stateful.rules_submission import people, pick, seldom, sessions

times = st.sampled_from([10.0, 10.0, 60.0, 600.0, None])
inputs = st.builds(
    Question,
    key=st.sampled_from(["pick", "pick", "name"]),
    kind=st.just("input"),
    freeform=st.booleans(),
    on_expire=st.sampled_from(["expire", "default", "continue", "escalate"]),
    text=st.sampled_from(["Which?", "Which one?"]),
)
gates = st.builds(
    Question,
    key=st.sampled_from(["gate", "gate", "other gate"]),
    kind=st.just("approval"),
    approvers=st.sampled_from([("carol", "dave"), ("leads",), ("erin", "leads"), ("carol",), ()]),
    quorum=st.sampled_from([1, 1, 2, 2, 3]),
    on_expire=st.sampled_from(["expire", "escalate"]),
    on_deny=st.sampled_from(["fail", "continue"]),
    on_changes=st.sampled_from(["refuse", "continue", "tell", "tell"]),
    text=st.sampled_from(["Deploy?", "Deploy now?"]),
).filter(reachable)
"""Others are refused when they are asked: `test_approvals.py`."""
deciders = st.sampled_from([who for who in EVERYBODY if who.has("approver")])
texts = st.sampled_from(["red", "BLUE", "2", "green", ""])
decisions = st.sampled_from(
    [Decision.APPROVE, Decision.APPROVE, Decision.APPROVE, Decision.DENY, Decision.REQUEST_CHANGES]
)
SOON = 8
"""Clicks and messages of an example: few, so that some are repeated."""


class PeopleRules(Driver):
    @precondition(lambda self: self.leases(stale=False))
    @rule(
        n=pick,
        stale=seldom,
        item=st.one_of(inputs, gates),
        expires_in=times,
        session=sessions,
    )
    def ask(
        self, n: int, stale: bool, item: Question, expires_in: float | None, session: int
    ) -> None:
        leases = self.leases(stale=stale)
        lease = leases[-1 - n % len(leases)]
        work = self.works[lease]
        self.run_transaction(
            lambda: self._asked(lease, item, expires_in),
            lambda rt: _ask(rt, work, item, expires_in),
            session=session,
        )

    @precondition(lambda self: self._questions(""))
    @rule(
        n=pick,
        closed=seldom,
        text=texts,
        actor=people,
        event=st.integers(0, SOON),
        session=sessions,
    )
    def answer(
        self, n: int, closed: bool, text: str, actor: ModelActor, event: int, session: int
    ) -> None:
        """A person writes to a question, or to an approval, which text never decides."""
        questions = self._questions("" if closed else "input") or self._questions("")
        place, number = questions[-1 - n % len(questions)]
        self.respond(place, number, {"text": text}, actor, event, session)

    @precondition(lambda self: self._questions("approval"))
    @rule(
        n=pick,
        closed=seldom,
        decision=decisions,
        actor=deciders,
        event=st.integers(0, SOON),
        session=sessions,
    )
    def decide(
        self, n: int, closed: bool, decision: Decision, actor: ModelActor, event: int, session: int
    ) -> None:
        questions = self._questions("approval")
        questions = self._questions("") if closed or not questions else questions
        place, number = questions[-1 - n % len(questions)]
        self.respond(place, number, _decided(decision), actor, event, session)

    @precondition(lambda self: self._questions("approval"))
    @rule(n=pick, actor=deciders, session=sessions)
    def mint_token(self, n: int, actor: ModelActor, session: int) -> None:
        questions = self._questions("approval")
        place, number = questions[-1 - n % len(questions)]
        approver = actor.person if n % 4 and actor.person else ("carol", "erin", "dave")[n % 3]
        secret = self.run_transaction(
            lambda: self.model.mint(place, number, approver, actor),
            lambda rt: rt.questions.mint_token(self.numbers[place], number, approver, actor.actor),
            lambda _: len(self.secrets),
            session=session,
            cuttable=False,
        )
        self.secrets += [secret] if secret else []

    @precondition(lambda self: self.secrets and self._questions("approval"))
    @rule(n=pick, m=pick, actor=deciders, decision=decisions, event=st.integers(0, SOON))
    def decide_by_token(
        self, n: int, m: int, actor: ModelActor, decision: Decision, event: int
    ) -> None:
        """A token decides its approval once, and only when its approver uses it."""
        token = len(self.secrets) - 1 - n % len(self.secrets)
        minted = self.model.tokens[token]
        questions = self._questions("approval")
        place, number = (
            (minted.job, minted.question) if m % 4 else questions[-1 - m % len(questions)]
        )
        self.respond(place, number, _decided(decision), actor, event, 0, token)

    @precondition(lambda self: self._questions(""))
    @rule(n=pick, seconds=times, actor=people, session=sessions)
    def extend(self, n: int, seconds: float | None, actor: ModelActor, session: int) -> None:
        questions = self._questions("")
        place, number = questions[-1 - n % len(questions)]
        self.run_transaction(
            lambda: self.model.extend(place, number, seconds, actor),
            lambda rt: rt.questions.extend(self.numbers[place], number, seconds, actor.actor),
            self.second,
            session=session,
        )

    @precondition(lambda self: self.model.jobs)
    @rule(n=pick, finished=seldom, actor=people, force=st.booleans(), session=sessions)
    def cancel(self, n: int, finished: bool, actor: ModelActor, force: bool, session: int) -> None:
        places = [
            place
            for place, job in enumerate(self.model.jobs)
            if finished or job.status not in TERMINAL
        ]
        if not places:
            return
        place = places[-1 - n % len(places)]
        self.run_transaction(
            lambda: self.model.cancel(place, actor, force=force),
            lambda rt: rt.job_control.cancel(self.numbers[place], actor.actor, force=force),
            lambda verdict: (str(verdict.status), verdict.requested),
            session=session,
        )

    def _questions(self, kind: str) -> list[tuple[int, int]]:
        """Return questions as (job, ordinal): open questions of this kind; all without a kind."""
        return [
            (place, ordinal)
            for place, job in enumerate(self.model.jobs)
            for ordinal, item in enumerate(job.questions, 1)
            if not kind or (item.kind == kind and item.status == "open")
        ]

    def _asked(self, lease: int, item: Question, expires_in: float | None) -> Any:
        if (job := self.model.holder(lease)) is None:
            return "lost"
        number = self.model.ask(job, item, expires_in)
        place = self.model.leases[lease].job
        return None if number is None else f"D-{self.numbers[place]}/{number}"

    def respond(
        self,
        place: int,
        number: int,
        fields: dict[str, Any],
        actor: ModelActor,
        event: int,
        session: int,
        token: int | None = None,
    ) -> None:
        secret = None if token is None else self.secrets[token]
        response = Response(source_event_id=f"event {event}", token=secret, **fields)
        key = (place, number, response.source_event_id)
        self.run_transaction(
            lambda: (
                self.model.answer(*key, fields["text"], actor)
                if "text" in fields
                else self.model.decide(*key, fields["decision"], actor, token)
            ),
            lambda rt: rt.questions.answer(self.numbers[place], number, response, actor.actor),
            _verdict,
            session=session,
        )


async def _ask(rt: Runtime, work: Any, item: Question, expires_in: float | None) -> str | None:
    fields: dict[str, Any] = {"key": item.key, "kind": item.kind, "text": item.text}
    fields |= {"expires_in": expires_in, "never_expires": expires_in is None}
    fields["on_expire"] = item.on_expire
    fields["escalate_to"] = "leads" if item.on_expire == "escalate" else None
    if item.kind == "input":
        fields |= {"choices": CHOICES, "freeform": item.freeform}
        fields["default"] = "blue" if item.on_expire == "default" else None
    else:
        fields |= {"approvers": item.approvers, "quorum": item.quorum, "on_deny": item.on_deny}
        fields["on_changes"] = item.on_changes
    try:
        return await rt.asking.ask(work.lease, QuestionSpec(**fields))
    except LeaseLost:
        return "lost"


def _decided(decision: Decision) -> dict[str, Any]:
    """Return the fields of a response with a decision."""
    asks = {"reason": "why?"} if decision is Decision.REQUEST_CHANGES else {}
    return {"decision": decision, **asks}


def _verdict(verdict: Verdict) -> tuple[bool, bool, bool, str]:
    return verdict.accepted, verdict.resolved, verdict.duplicate, str(verdict.job_status)
