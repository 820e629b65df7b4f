"""The answer to the question at a budget that is used up, applied at the start of the next run."""

from __future__ import annotations

from draftsman.costs import budgets
from draftsman.handlers.question_mapping import to_answer
from draftsman.handlers.worker_run import WorkerRun
from draftsman.questions.question import BUDGET_KEY, Answered


async def apply_answer(run: WorkerRun) -> None:
    """Raise the budget by the amount that a person answered, once.

    Raises Failure `limit:budget` if the answer is to stop.
    """
    question = await run.wait(run.services.questions.of_key, run.job.number, BUDGET_KEY)
    answer = None if question is None else to_answer(question)
    if question is None or not isinstance(answer, Answered):
        return
    if answer.value == budgets.STOP:
        state = budgets.state_of(question.action or {})
        use, by = budgets.use_text(state, run.job.name), ", ".join(answer.by)
        raise budgets.budget_failure(f"{use}; stopped by {by}")
    amount = budgets.parse_added(answer.value or answer.text or "")
    await run.wait(run.services.model_calls.raise_budget, run.job.lease, question.ordinal, amount)
