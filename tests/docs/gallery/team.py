"""A realistic database: 200 jobs of a team, with 45 open questions in six repositories.

python -m tests.docs.gallery.team CONFIG
"""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from typing import Any, Final

from draftsman.agent_runs.activity.activity import Activity, ActivityKind
from draftsman.errors import Failure
from draftsman.jobs.job import Source
from draftsman.jobs.runs.outcome import Done
from draftsman.jobs.runs.quota import QuotaLimit
from draftsman.jobs.runs.run import ClaimedJob
from draftsman.people.actor import Actor
from draftsman.people.policy import ROLES
from draftsman.questions.question import QuestionKind
from draftsman.questions.question_spec import QuestionSpec
from draftsman.runtime import open_runtime
from draftsman.settings import load
from draftsman_testing.factories import Factory
from tests.docs.gallery.past import Past
from tests.docs.gallery.resources import add_resources, add_workers

REPOS: Final = ("shop", "pay", "stock", "site", "ledger", "mail")
PEOPLE: Final = ("anna", "bruno", "carol", "dora", "emil")
TASKS: Final = (
    "Round each refund once, and keep the sum of an order equal to the sum of its items",
    "Show prices with taxes",
    "Upgrade the build image",
    "Fix the flaky test of the payment gateway, which fails on the first of each month",
    "Import the orders of the old shop",
    "Add an option for gift wrapping",
    "Münzen zählen 数える",
    "Remove the deprecated API of the mailer",
)
NAMING: Final = "Which name should the option have?"
COMPLETED: Final = 84
"""Jobs that were completed before the open questions were asked."""
RECENT: Final = 8
"""Jobs that were completed after that."""
QUESTIONS: Final = 45
LONG: Final = 12
"""The question of the job with a long story."""
PATCH: Final = """diff --git a/src/{name}/prices.py b/src/{name}/prices.py
--- a/src/{name}/prices.py
+++ b/src/{name}/prices.py
@@ -1,7 +1,{total} @@
 import decimal
 CENT = decimal.Decimal("0.01")
-def total(items):
-    return sum(item.price for item in items)
+def total(items: list[Item]) -> Decimal:
+    \"\"\"Return the sum, rounded once.\"\"\"
+    return round(sum(item.price for item in items), 2)
 SIGN = 1
 RATE = 19
 LIMIT = 100
{added}diff --git a/tests/test_prices.py b/tests/test_prices.py
new file mode 100644
--- /dev/null
+++ b/tests/test_prices.py
@@ -0,0 +1,4 @@
+from {name}.prices import total
+
+def test_total() -> None:
+    assert total([]) == 0
"""


class Team:
    """Makes the jobs of a team, in a database of its own."""

    def __init__(self, factory: Factory) -> None:
        self.make = factory
        self.past = Past(factory.rt)
        self.long = 0
        """Number of the job with a long story."""
        self._nth = 0

    def job(self, **fields: Any) -> dict[str, Any]:
        """Return the fields of the next job: repository, person, title."""
        nth = self._nth
        self._nth = self._nth + 1
        repo = REPOS[nth % len(REPOS)]
        person = PEOPLE[nth % len(PEOPLE)]
        actor = Actor(Source.CLI, person, person.title(), person, ROLES)
        request = {
            "type": "run_agent",
            "agent": ("coder", "tidy")[nth % 2],
            "repo": f"https://git.example/acme/{repo}",
            "queue": repo,
            "title": TASKS[nth % len(TASKS)],
            "text": f"{TASKS[nth % len(TASKS)]}.\n\nThe tests of {repo} have to pass.",
            "tags": ("nightly",) if nth % 7 == 0 else (),
        }
        return {**request, "actor": actor, **fields}

    async def fill(self) -> None:
        """Make all jobs, those that ended first, and the rows of the other tables."""
        await add_workers(self.make)
        await add_resources(self.make, REPOS)
        await self._ended()
        await self._questions()
        await self._waiting()
        for nth in range(8):
            work = await self.make.running(**self.job())
            await self.progress(work, nth)
            await self.past.wait(75 + 61 * (nth % 3))
        await self.past.apply()

    async def _ended(self) -> None:
        make = self.make
        for nth in range(COMPLETED):
            await self._completed(nth)
        for _ in range(6):
            await make.failed(**self.job())
            await self.past.wait(140)
        dead = [await make.dead(**self.job(notify=["log"], queue="default")) for _ in range(4)]
        await make.rt.job_control.retry(dead[0], make.owner)
        for _ in range(2):
            await make.canceled(**self.job())
        for _ in range(2):
            gate = QuestionSpec(
                key="gate", kind=QuestionKind.APPROVAL, text="Deploy to production?"
            )
            work = await make.asked(gate, **self.job())
            await self.past.wait(900)
            await make.decide(work.number, False, make.owner, reason="not before the sale")

    async def _completed(self, nth: int) -> None:
        """Run a job to its end; every fourth asks a question."""
        fields = self.job()
        number = await self.make.queued(**fields)
        await self.past.wait(3 + nth % 11)
        work = await self.make.running(number)
        await self.changed(work, 3 + nth % 40)
        await self.past.wait(45 + 13 * (nth % 17))
        if nth % 4 == 0:
            await self.make.rt.asking.ask(work.lease, self.question(work, 1))
            await self.past.wait(30 + 97 * (nth % 5))
            await self.make.answer(number, "wrap", fields["actor"], only=True)
            work = await self.make.running(number)
            await self.past.wait(70)
        cost = {"cost_usd": 0.11 * (1 + nth % 23), "input_tokens": 9000, "output_tokens": 700}
        await self.make.rt.model_calls.record(work.lease, cost, "model-1")
        summary = "Changed the rounding of prices, and added a test."
        await self.make.rt.settlement.outcome(work, Done({"summary": summary}))

    async def _waiting(self) -> None:
        make = self.make
        group = {"name": "release", "kind": "parallel"}
        for nth in range(9):
            more = {"group": group} if nth < 3 else {}
            await make.queued(**self.job(queue="default", **more))
        for _ in range(3):
            await make.retrying(**self.job())
        for _ in range(3):
            await make.scheduled(**self.job())
        paused = await make.queued(**self.job(queue="default"))
        await make.rt.job_control.pause(paused, make.owner, reason="until the release")
        parent = await make.queued(**self.job(queue="default"))
        await make.queued(**self.job(queue="default", after=(parent,)))

    async def _questions(self) -> None:
        """Ask 45 questions: approvals of pushes and commands, choices and free texts."""
        for nth in range(QUESTIONS):
            fields = self.job()
            if nth == LONG:
                await self._long(fields)
                continue
            work = await self.make.running(**fields)
            if nth % 3 == 0:
                await self.changed(work, 5 + 2 * nth)
            await self.past.wait(40 + 17 * (nth % 5))
            await self.make.rt.asking.ask(work.lease, self.question(work, nth))
            if nth % 2:
                await self._completed(nth)
        for nth in range(RECENT):
            await self._completed(4 * (nth % 2) + nth)

    async def _long(self, fields: dict[str, Any]) -> None:
        """Make a job with a long story: a question, a retry, and an approval that is open."""
        make = self.make
        past = self.past
        self.long = number = await make.queued(**fields)
        await past.wait(24)
        work = await make.running(number)
        await past.wait(190)
        await make.rt.asking.ask(work.lease, self.question(work, 1))
        await past.wait(2520)
        await make.answer(number, "gift_wrap", fields["actor"], only=True)
        await past.wait(6)
        work = await make.running(number)
        await past.wait(140)
        failure = Failure("the package index did not respond", http_status=503)
        await make.rt.settlement.failure(work, failure)
        await past.wait(48)
        await make.due(number)
        work = await make.running(number)
        await self.changed(work, 36)
        await self.progress(work, 2)
        await past.wait(410)
        await make.rt.asking.ask(work.lease, self.question(work, LONG))

    def question(self, work: ClaimedJob, nth: int) -> QuestionSpec:
        """Return the nth question of a job."""
        expires = {"expires_in": 240.0 + 1700.0 * nth} if nth % 5 else {"never_expires": True}
        if nth % 3 == 0:
            action = {"push": f"draftsman/{work.name}", "to": "origin"}
            if nth % 2:
                action = {"command": "pip install httpx==0.28"}
            approvers = ("carol",) if nth % 9 == 0 else None
            more = {"action": action, "approvers": approvers, **expires}
            return QuestionSpec(key="gate", kind=QuestionKind.APPROVAL, text="Go on?", **more)
        if nth % 3 == 1:
            choices = ("gift_wrap", "wrap", "packing")
            return QuestionSpec(key="name", text=NAMING, choices=choices, freeform=True, **expires)
        text = f"The test of {TASKS[nth % 8].lower()} fails without a network. What should it use?"
        return QuestionSpec(key="what", text=text, freeform=True, **expires)

    async def changed(self, work: ClaimedJob, lines: int) -> None:
        """Store a patch of a run."""
        added = "".join(f"+STEP_{nth} = {nth}\n" for nth in range(lines))
        text = PATCH.format(
            name=str(work.name).lower().replace("-", "_"), total=8 + lines, added=added
        )
        await self.make.rt.changes.store(work.lease, text.encode())

    async def progress(self, work: ClaimedJob, nth: int) -> None:
        """Give a run a plan, a line of its agent, changes and costs."""
        entries = [{"text": text, "state": "completed"} for text in ("read", "plan")[: nth % 3]]
        entries += [{"text": "write the tests", "state": "running"}, {"text": "validate"}]
        activity = [
            Activity(ActivityKind.PLAN, "", detail={"entries": entries}),
            Activity(ActivityKind.MESSAGE, "I add the tax to the cart, and check the imports."),
        ]
        rt = self.make.rt
        await rt.activity.append(work.lease, 1, activity, QuotaLimit(100, 1 << 20))
        await self.changed(work, 4 + nth)
        await rt.model_calls.record(work.lease, {"cost_usd": 0.27 * (nth + 1)}, "model-1")


async def main(config: Path) -> None:
    """Fill the database of a configuration."""
    async with open_runtime(load(config)) as rt:
        await Team(Factory(rt, await rt.actor(Source.CLI))).fill()


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1])))
