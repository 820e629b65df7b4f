"""When reminders are sent: a simulated month, and examples."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from random import Random

from draftsman.attention.attention import PingAudience, PingPlan, PingRecipient, plan_ping
from draftsman.people.hours import parse
from tests.support.cases import cases

NOON = datetime(2026, 3, 10, 12, tzinfo=UTC)
HOUR = timedelta(hours=1)
ANNA = PingRecipient("anna", parse("20:00-08:00", "Europe/Berlin"))
BEN = PingRecipient("ben", parse("22:00-07:00", "America/New_York"))
CAROL = PingRecipient("carol", None)
PEOPLE = {"U0ANNA": ANNA, "U0BEN": BEN, "U0CAROL": CAROL}
BOTH = PingAudience([ANNA, BEN], {"U0ANNA": ANNA})


def at(hour: int) -> datetime:
    return NOON.replace(hour=hour)


@cases(
    ("now", "audience", "plan"),
    [
        (at(13), BOTH, PingPlan(None)),
        (at(23), BOTH, PingPlan(None, frozenset({"U0ANNA"}))),
        (at(3), BOTH, PingPlan(at(7))),
        (at(13), replace(BOTH, acknowledged_until=at(15)), PingPlan(at(15))),
        (at(3), replace(BOTH, acknowledged_until=at(5)), PingPlan(at(7))),
        (at(13), replace(BOTH, snoozed={"anna": at(14)}), PingPlan(None, frozenset({"U0ANNA"}))),
        (at(13), replace(BOTH, snoozed={"anna": at(15), "ben": at(14)}), PingPlan(at(14))),
        (at(13), replace(BOTH, shared=False, snoozed={"anna": at(14)}), PingPlan(at(14))),
        (at(23), replace(BOTH, shared=False), PingPlan(at(7) + 24 * HOUR)),
        (at(13), replace(BOTH, approved_by=["anna"]), PingPlan(None, frozenset({"U0ANNA"}))),
        (at(3), replace(BOTH, approved_by=["ben"]), PingPlan(at(7))),
        (at(23), replace(BOTH, approved_by=["ben"]), PingPlan(at(7) + 24 * HOUR)),
        (at(3), PingAudience([], default=ANNA.quiet), PingPlan(at(7))),
        (at(3), PingAudience([]), PingPlan(None)),
    ],
)
def test_a_reminder_waits_for_the_first_person_whom_it_may_interrupt(
    now: datetime, audience: PingAudience, plan: PingPlan
) -> None:
    assert plan_ping(now, audience) == plan


def simulate(random: Random) -> Iterator[tuple[datetime, int, str, PingAudience]]:
    """Yield each ping of a question that is asked in the month in which clocks are set forward.

    As in the database, reminders are due at half and at 90 % of the time, at most three are sent,
    and a reminder that waits past the deadline is dropped. People acknowledge and snooze at random.
    """
    asked = NOON + timedelta(minutes=random.randrange(30 * 24 * 60))
    expires = asked + timedelta(hours=random.choice([1, 6, 24, 100]))
    direct = {t: person for t, person in PEOPLE.items() if random.random() < 0.5}
    shared = not direct or random.random() < 0.5
    responders = random.sample(list(PEOPLE.values()), random.randint(1, 3))
    snoozed: dict[str, datetime] = {}
    acknowledged: datetime | None = None
    due: datetime | None = asked + (expires - asked) / 2
    sent = 0
    while due is not None and due < expires:
        now = due + timedelta(seconds=random.choice([0, 1, 60]))
        if random.random() < 0.4:
            acknowledged = now + random.choice([1, 4]) * HOUR
        for name in ("anna", "ben"):
            if random.random() < 0.3:
                snoozed[name] = now + random.choice([0.5, 2, 9]) * HOUR
        audience = PingAudience(responders, direct, shared, dict(snoozed), acknowledged)
        plan = plan_ping(now, audience)
        if plan.later is not None:
            assert plan.later > now
            due = plan.later
            continue
        sent += 1
        for target in ({"C0TEAM"} if shared else set()) | direct.keys() - plan.silent:
            yield now, sent, target, audience
        late = asked + (expires - asked) * 0.9
        due = late if late > now and sent < 3 else None


@cases("seed", range(20))
def test_nobody_is_pinged_twice_or_in_quiet_hours_in_a_month(seed: int) -> None:
    random = Random(seed)
    pings = 0
    for _ in range(50):
        seen: Counter[tuple[int, str]] = Counter()
        for now, reminder, target, audience in simulate(random):
            pings += 1
            seen[reminder, target] += 1
            assert audience.acknowledged_until is None or audience.acknowledged_until <= now
            reached = [PEOPLE[target]] if target in PEOPLE else audience.responders
            assert any(audience.free_at(now, person) == now for person in reached), (now, target)
        assert set(seen.values()) <= {1}
        assert len({reminder for reminder, _ in seen}) <= 3
    assert pings > 20
