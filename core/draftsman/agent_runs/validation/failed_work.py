"""The question about work whose required validators fail after the last iteration."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from draftsman.agent_runs.iteration import iterations_failure
from draftsman.agent_runs.policies.repo_policy import names
from draftsman.agent_runs.validation.commands import CommandResult
from draftsman.agent_runs.validation.validation import Validation
from draftsman.questions.question import Answered, NoAnswer, OnExpire
from draftsman.questions.question_spec import Choice, QuestionSpec
from draftsman.text import first_line

KEY: Final = "agent:iterations"
"""Key of the question."""
GO_ON: Final = "go on"
DRAFT: Final = "draft"
STOP: Final = "stop"
MAX_CONTEXT: Final = 12_000
"""Maximum characters of the output of all failed commands."""


def question_about(branch: str, reason: str, validation: Validation, more: int) -> QuestionSpec:
    """Return the question whether the agent goes on with failed work; `more` iterations then.

    Without an answer in time the job stops.
    """
    text = f"Required validators fail on {branch}: {first_line(reason, 1500)}."
    if validation.check_files:
        text += f" It changes check files: {names(validation.check_files)}."
    return QuestionSpec(
        key=KEY,
        text=f"{text} Go on, hand over as a draft, or stop?",
        choices=(
            Choice(value=GO_ON, label="Go on", description=f"Up to {more} more iterations"),
            Choice(value=DRAFT, label="Hand over as a draft", description=f"Publish {branch}"),
            Choice(value=STOP, label="Stop", description="The job fails; its patch is kept"),
        ),
        context="\n".join(_outputs(validation.failed)) or None,
        on_expire=OnExpire.DEFAULT,
        default=STOP,
    )


def choice_of(answer: Answered | NoAnswer, reason: str) -> str:
    """Return the choice GO_ON or DRAFT; raises Failure `limit:max_iterations` for STOP."""
    if answer.value not in (GO_ON, DRAFT):
        by = ", ".join(answer.by) if isinstance(answer, Answered) else ""
        stopped = f"stopped by {by}" if by else "stopped without an answer"
        raise iterations_failure(f"{reason}; {stopped}")
    return answer.value


def _outputs(failed: Sequence[CommandResult]) -> Iterator[str]:
    """Yield the failed commands with the end of the output of each."""
    share = MAX_CONTEXT // max(len(failed), 1)
    for item in failed:
        yield f"$ {first_line(item.command, 500)}"
        output = item.output.strip()
        yield output if len(output) <= share else f"…{output[-share:]}"
