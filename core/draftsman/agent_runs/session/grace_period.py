"""The grace period of a question: the agent is kept running for a quick answer.

The question is stored first, and parks the run as every question does. An answer within the period
claims the job for this worker, whose agent continues as the job's next run. Otherwise, also if the
worker dies, the next run starts from the checkpoint.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence

from draftsman.agent_runs.protocol.agent_messages import ApproveMessage, AskMessage
from draftsman.handlers.worker_run import WorkerRun
from draftsman.questions.question import Answered, NoAnswer
from draftsman.questions.question_spec import QuestionSpec
from draftsman.sandbox.processes.process import AgentProcess


class GracePeriod:
    """The questions of a session whose answers are waited for."""

    def __init__(self, run: WorkerRun) -> None:
        self._run = run
        self._lease_held = asyncio.Event()
        self._lease_held.set()
        self.on_continue: Callable[[], Awaitable[None]] | None = None
        """Called when an answer has begun the next run of the job."""

    def seconds(self, message: AskMessage | ApproveMessage) -> float:
        """Return the length of the period of a question, 0 without one.

        An approval has none: the tree that people see must not change while they decide.
        """
        if isinstance(message, ApproveMessage) or self._run.stopping is not None:
            return 0
        settings = self._run.settings
        return min(message.grace, settings.questions.ask_grace, settings.worker.lease / 2)

    async def ask(
        self, process: AgentProcess, items: Sequence[QuestionSpec], seconds: float
    ) -> dict[str, Answered | NoAnswer]:
        """Ask, and wait for all answers; return them by key, none if the run stays parked."""
        self._lease_held.clear()
        try:
            answers = await self._run.ask_in_grace(items, seconds, process.is_alive)
        finally:
            self._lease_held.set()
        if answers is not None and self.on_continue is not None:
            await self.on_continue()
        return answers or {}

    async def may_write(self) -> bool:
        """Wait for the end of a period; return whether the run may write again.

        Output of the agent, messages for it and its calls of the model wait meanwhile.
        """
        await self._lease_held.wait()
        return not self._run.parked
