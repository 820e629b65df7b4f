"""Rules: requests and retries."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import precondition, rule

from draftsman.jobs.requests.invocation import Invocation
from draftsman.jobs.requests.service.submissions import SubmittedJob, invocation
from tests.core.stateful.driver import Driver
from tests.core.stateful.model.people import EVERYBODY, ModelActor
from tests.core.stateful.model.state import TERMINAL, JobRequest
from tests.core.stateful.world import QUEUES, TYPES, UNHANDLED

pick = st.integers(0, 30)
"""Index in a list, from its newest item."""
sessions = st.integers(0, 1)
seldom = st.sampled_from([False, False, False, False, True])
people = st.sampled_from(
    [*EVERYBODY, *[who for who in EVERYBODY if who.owner or who.has("operator")] * 4]
)
invokers = st.sampled_from([*[who for who in EVERYBODY if who.has("invoker")] * 3, EVERYBODY[-1]])
requests = st.builds(
    JobRequest,
    type=st.sampled_from(["noop", *TYPES, UNHANDLED]),
    key=st.sampled_from([None, None, "a", "b", "c"]),
    content=st.integers(0, 1),
    queue=st.sampled_from(["one", *QUEUES]),
    priority=st.sampled_from([0, 0, 5, -5]),
    subject=st.sampled_from([None, None, None, "card"]),
    delay=st.sampled_from([None, None, None, 10.0, 60.0]),
    max_attempts=st.integers(1, 3),
    max_retries=st.integers(0, 2),
    on_lost=st.sampled_from(["retry", "resume", "fail", "new_job"]),
)


def invoked(item: JobRequest) -> Invocation:
    """Return the request of a channel."""
    return invocation(
        type=item.type,
        key=item.key,
        payload={"content": item.content},
        queue=item.queue,
        priority=item.priority,
        subject_key=item.subject,
        delay=item.delay,
        max_attempts=item.max_attempts,
        max_retries=item.max_retries,
        on_lost=item.on_lost,
    )


class IntakeRules(Driver):
    @rule(batch=st.lists(requests, min_size=1, max_size=3), actor=invokers, session=sessions)
    def submit(self, batch: list[JobRequest], actor: ModelActor, session: int) -> None:
        batch = _without_conflicts(batch)
        self.run_transaction(
            lambda: self.model.submit(batch, actor),
            lambda rt: rt.submissions.submit_many([invoked(item) for item in batch], actor.actor),
            lambda results: [self._made(item) for item in results],
            session=session,
        )

    @precondition(lambda self: self.model.jobs)
    @rule(
        n=pick,
        finished=st.sampled_from([True, True, True, False]),
        actor=people,
        fresh=st.booleans(),
        again=st.booleans(),
        late=seldom,
        session=sessions,
    )
    def retry(
        self,
        n: int,
        finished: bool,
        actor: ModelActor,
        fresh: bool,
        again: bool,
        late: bool,
        session: int,
    ) -> None:
        places = [
            place
            for place, job in enumerate(self.model.jobs)
            if not finished or job.status in TERMINAL
        ]
        if not places:
            return
        place = places[-1 - n % len(places)]
        late = late or any(answer.late for answer in self.model.jobs[place].responses)
        options = {"fresh": fresh, "again": again, "with_answer": late}
        self.run_transaction(
            lambda: self.model.retry(place, actor, **options),
            lambda rt: rt.job_control.retry(self.numbers[place], actor.actor, **options),
            self._made,
            session=session,
        )

    def _made(self, item: SubmittedJob) -> tuple[int, str]:
        return self.place(item.number), item.outcome


def _without_conflicts(batch: list[JobRequest]) -> list[JobRequest]:
    """Leave out requests with the key of an earlier one and other contents."""
    by_key: dict[Any, JobRequest] = {}
    for place, item in enumerate(batch):
        identity = (item.type, item.key) if item.key else place
        earlier = by_key.get(identity)
        if earlier is None or item == earlier:
            by_key[(place, identity) if earlier else identity] = item
    return list(by_key.values())
