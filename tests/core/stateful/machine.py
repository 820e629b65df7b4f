"""All rules together: two processes, the people, the clock and the cuts."""

from __future__ import annotations

from hypothesis import strategies as st
from hypothesis.stateful import initialize, precondition, rule

from draftsman.questions.question import Decision
from tests.core.stateful.model.people import EVERYBODY, ModelActor
from tests.core.stateful.model.state import JobRequest, Question
from tests.core.stateful.rules_people import (
    PeopleRules,
    deciders,
    decisions,
    gates,
    inputs,
    texts,
    times,
)
from tests.core.stateful.rules_runs import ENDS, WRITES, RunRules
from tests.core.stateful.rules_submission import (
    IntakeRules,
    invokers,
    people,
    pick,
    requests,
    sessions,
)
from tests.core.stateful.rules_sweeps import SweepRules
from tests.support.server import Server

STAGES = ("queued", "claimed", "running", "input", "input", "gate", "gate", *ENDS)
"""Stages of the first jobs of an example, which save its first steps."""
waits = st.sampled_from([0.0, 0.0, 10.0, 600.0])
begun = st.tuples(requests, st.sampled_from(STAGES), inputs, gates, times)


class Machine(IntakeRules, RunRules, PeopleRules, SweepRules):
    """All rules in any order."""

    @rule(
        worker=sessions,
        on_lost=st.sampled_from(["resume", "retry"]),
        back=st.sampled_from(["settle", "settle", "ask", "write", "write"]),
        how=st.sampled_from(ENDS),
        action=st.sampled_from(WRITES),
        question=st.one_of(inputs, gates),
    )
    def take_over(
        self, worker: int, on_lost: str, back: str, how: str, action: str, question: Question
    ) -> None:
        """A worker counts as dead and the other continues; then the first continues too."""
        self.submit([JobRequest(on_lost=on_lost, priority=9)], EVERYBODY[0], worker)
        self.claim(worker, free=1, ahead=0)
        self.sweep("rescue", 0, 1 - worker, True)
        self.time_passes(60.0)
        self.sweep("promote", 0, 1 - worker, False)
        self.claim(1 - worker, free=3, ahead=0)
        if not self.leases(stale=True):
            return
        if back == "settle":
            self.settle(0, True, how, 1, worker)
        elif back == "ask":
            self.ask(0, True, question, 60.0, worker)
        else:
            self.write(0, True, action, worker)

    @rule(
        worker=sessions,
        lost=st.booleans(),
        question=inputs,
        late=st.sampled_from([0, 1, 2]),
        both=st.booleans(),
    )
    def return_late(
        self, worker: int, lost: bool, question: Question, late: int, both: bool
    ) -> None:
        """A run of a worker ends after it lost its lease, or after it was parked.

        Its job is claimed again, by the same worker or another, before the old result arrives;
        `both` runs may be in one batch.
        """
        self.submit([JobRequest(on_lost="resume", priority=9)], EVERYBODY[0], worker)
        self.claim(worker, free=1, ahead=0)
        if not (held := self.leases(stale=False)):
            return
        old = held[-1]
        if lost:
            self.sweep("rescue", 0, 1 - worker, True)
        else:
            self.ask(0, False, question, None, worker)
            if self.model.owner(old).open is not None:
                place = self.model.leases[old].job
                ordinal = len(self.model.owner(old).questions)
                self.respond(place, ordinal, {"text": "red"}, EVERYBODY[0], late, worker)
        if late < 2:
            self.claim(worker if late == 0 else 1 - worker, free=1, ahead=0)
        leases = self.leases_of_job(old)
        self.claim(worker, leases if both else [old], free=0, ahead=0)

    @precondition(lambda self: self.leases(stale=False))
    @rule(
        item=inputs,
        expires_in=times,
        late=waits,
        replies=st.lists(st.tuples(people, texts, pick), max_size=3),
        session=sessions,
    )
    def converse(
        self,
        item: Question,
        expires_in: float | None,
        late: float,
        replies: list[tuple[ModelActor, str, int]],
        session: int,
    ) -> None:
        """A run asks, people answer in time or too late, and a sweep closes expired questions."""
        self.ask(0, False, item, expires_in, session)
        self.time_passes(late)
        for actor, text, event in replies:
            if self.model.asked():
                self.answer(0, False, text, actor, event, session)
        self.sweep("expire", 0, session, False)

    @precondition(lambda self: self.leases(stale=False))
    @rule(
        item=gates,
        expires_in=times,
        late=waits,
        votes=st.lists(
            st.tuples(deciders, decisions, pick),
            min_size=1,
            max_size=4,
        ),
        session=sessions,
    )
    def vote(
        self,
        item: Question,
        expires_in: float | None,
        late: float,
        votes: list[tuple[ModelActor, Decision, int]],
        session: int,
    ) -> None:
        """A run waits for an approval, people decide in time or too late, and a sweep runs."""
        self.ask(0, False, item, expires_in, session)
        self.time_passes(late)
        for actor, decision, event in votes:
            if self.model.asked():
                self.decide(0, False, decision, actor, event, session)
        self.sweep("expire", 0, session, False)

    @initialize(beginnings=st.lists(begun, min_size=2, max_size=5), actor=invokers, worker=sessions)
    def begin(
        self,
        beginnings: list[tuple[JobRequest, str, Question, Question, float | None]],
        actor: ModelActor,
        worker: int,
    ) -> None:
        """Bring the first jobs to their stages."""
        for item, stage, question, gate, expires_in in beginnings:
            self.submit([item], actor, 0)
            if stage == "queued":
                continue
            self.claim(worker, free=int(stage != "claimed"), ahead=int(stage == "claimed"))
            if not self.leases(stale=False):
                continue
            if stage in ("input", "gate"):
                current = question if stage == "input" else gate
                self.ask(0, False, current, expires_in, worker)
            elif stage in ENDS:
                self.settle(0, False, stage, 1, worker)


def on(server: Server) -> type[Machine]:
    """Return the machine whose examples each get a database on this server."""

    class OnServer(Machine):
        def __init__(self) -> None:
            super().__init__(server)

    return OnServer
