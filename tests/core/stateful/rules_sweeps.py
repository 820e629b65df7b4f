"""Rules: time passes, two leaders sweep, connections die."""

from __future__ import annotations

from hypothesis import strategies as st
from hypothesis.stateful import rule

from draftsman.jobs.runs.run import LeaderTerm
from draftsman.runtime import Runtime
from tests.core.stateful.driver import Driver
from tests.core.stateful.model.sweeps import Term
from tests.core.stateful.rules_submission import seldom, sessions
from tests.core.stateful.world import CUTS, worker_id

REIGN = 20.0
"""Seconds of a leader's lease."""
STEPS = (1.0, 10.0, 10.0, 20.0, 30.0, 31.0, 60.0, 600.0, -1.0, -10.0, -60.0)
names = st.sampled_from(
    ["expire", "expire", "promote", "promote", "remind", "rescue", "deregister"]
)
overlapping = st.sampled_from(["expire", "promote"])
terms = st.sampled_from([0, 0, 0, 1, 1, 2, 3])
"""Terms of a sweep: by hand, of the leader, of its previous term, of another owner."""


class SweepRules(Driver):
    @rule(step=st.sampled_from(STEPS))
    def time_passes(self, step: float) -> None:
        """The clock of the database moves forward or back."""
        self.model.now += step
        self.world.set_clock(self.model.now)

    @rule(session=sessions, moment=st.sampled_from(CUTS))
    def cut(self, session: int, moment: str) -> None:
        """The connection of the session's next transaction dies at some point."""
        self.cuts[session] = moment

    @rule(
        step=st.sampled_from([0.0, 0.0, 10.0, 60.0, 600.0]),
        name=names,
        index=terms,
        session=sessions,
        process_ended=seldom,
    )
    def later_sweep(
        self, step: float, name: str, index: int, session: int, process_ended: bool
    ) -> None:
        self.time_passes(step)
        if index:
            self.lead(session, "acquire")
        self.sweep(name, index, session, process_ended)

    def sweep(self, name: str, index: int, session: int, process_ended: bool) -> None:
        """Run a sweep in both; with `gone`, the other worker is known to be dead."""
        term = self._term(index, session)
        dead = [1 - session] if process_ended and name == "rescue" else []
        self.run_transaction(
            lambda: self._swept(name, term, dead),
            lambda rt: _sweep(rt, name, term, dead),
            session=session,
            cuttable=name in ("expire", "promote", "remind"),
        )

    @rule(
        names=st.tuples(overlapping, st.one_of(overlapping, st.just("rescue"))),
        first=terms,
        second=terms,
    )
    def both_sweep(self, names: tuple[str, str], first: int, second: int) -> None:
        """A second leader sweeps before the first commits; either may be deposed."""
        terms = self._term(first, 0), self._term(second, 1)
        expected = [self._swept(name, term, []) for name, term in zip(names, terms, strict=True)]
        counts = self.world.overlap(
            lambda rt: _sweep(rt, names[0], terms[0], []),
            lambda rt: _sweep(rt, names[1], terms[1], []),
        )
        self.compare()
        assert list(counts) == expected, f"two leaders changed {counts}, the model says {expected}"

    @rule(session=sessions, action=st.sampled_from(["acquire", "acquire", "renew", "resign"]))
    def lead(self, session: int, action: str) -> None:
        owner = worker_id(session)
        term = (session, self.model.term)
        held = LeaderTerm(owner, self.model.term)
        match action:
            case "acquire":
                self.run_transaction(
                    lambda: self.model.acquire(session, REIGN),
                    lambda rt: rt.sweeps.acquire(owner, REIGN),
                    session=session,
                    cuttable=False,
                )
            case "renew":
                self.run_transaction(
                    lambda: self.model.renew(term, REIGN),
                    lambda rt: rt.sweeps.renew(held, REIGN),
                    session=session,
                )
            case _:
                self.run_transaction(
                    lambda: self.model.resign(term),
                    lambda rt: rt.sweeps.resign(held),
                    session=session,
                )

    def _term(self, index: int, session: int) -> Term:
        if index == 0:
            return None
        owner = session if self.model.leader is None else self.model.leader
        return (1 - owner, self.model.term) if index == 3 else (owner, self.model.term - index + 1)

    def _swept(self, name: str, term: Term, dead: list[int]) -> int:
        match name:
            case "expire":
                return self.model.expire(term)
            case "promote":
                return self.model.promote(term)
            case "remind":
                return self.model.remind(term)
            case "rescue":
                return self.model.rescue(term, dead)
        return self.model.deregister(term)


async def _sweep(rt: Runtime, name: str, term: Term, dead: list[int]) -> int:
    proof = LeaderTerm() if term is None else LeaderTerm(worker_id(term[0]), term[1])
    if dead:
        return await rt.dead_workers.rescue(proof, [worker_id(place) for place in dead])
    return await rt.sweeps.run(name, proof)
