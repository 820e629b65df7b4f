"""The question about files of the work that git leaves out, such as those of a repository in it."""

from __future__ import annotations

from typing import Final

from draftsman.agent_runs.clones.workspace import Snapshot
from draftsman.agent_runs.validation.commands import CommandResult
from draftsman.errors import Failure
from draftsman.formats.truncation import truncate
from draftsman.jobs.runs.quota import limit_failure
from draftsman.questions.question import Answered, NoAnswer, OnExpire
from draftsman.questions.question_spec import Choice, QuestionSpec

KEY: Final = "agent:left_out"
"""Key of the question."""
INCLUDE: Final = "include"
WITHOUT: Final = "without"
GO_ON: Final = "go on"
STOP: Final = "stop"
MAX_TEXT: Final = 2500
"""Maximum characters of the paths."""


def question_about(branch: str, snapshot: Snapshot) -> QuestionSpec:
    """Return the question what becomes of them; without an answer in time the job stops."""
    choices = [
        Choice(value=WITHOUT, label="Publish without them", description=f"{branch} has the rest"),
        Choice(value=GO_ON, label="Back to the agent", description="Another iteration"),
        Choice(value=STOP, label="Stop", description="The job fails; its patch is kept"),
    ]
    if snapshot.included:
        description = "As ordinary files, without the .git of their repositories"
        choices.insert(0, Choice(value=INCLUDE, label="Include", description=description))
    text = f"The work on {branch} has files that git leaves out: {_paths(snapshot)}."
    return QuestionSpec(
        key=KEY,
        text=f"{truncate(text, MAX_TEXT)} {_listed([choice.label for choice in choices])}?",
        choices=tuple(choices),
        on_expire=OnExpire.DEFAULT,
        default=STOP,
    )


def choice_of(answer: Answered | NoAnswer, snapshot: Snapshot) -> str:
    """Return INCLUDE, WITHOUT or GO_ON; raises Failure `limit:left_out` for STOP."""
    if answer.value not in (INCLUDE, WITHOUT, GO_ON):
        by = ", ".join(answer.by) if isinstance(answer, Answered) else ""
        stopped = f"stopped by {by}" if by else "stopped without an answer"
        raise failure(snapshot, stopped)
    return answer.value


def failure(snapshot: Snapshot, reason: str) -> Failure:
    """Return the failure of a job whose work is not published for the files it leaves out."""
    text = f"not published: the work has files that git leaves out: {_paths(snapshot)}; {reason}"
    return limit_failure("left_out", truncate(text, MAX_TEXT))


def for_agent(snapshot: Snapshot) -> CommandResult:
    """Return what the agent gets for its next iteration, as the result of a failed command."""
    lines = "\n".join((*snapshot.all_left_out, ""))
    text = (
        "git leaves these paths out of the work. Repositories are ordinary folders now, without"
        " their .git. Remove the files that do not belong to the work, or let git read them:\n"
    )
    return CommandResult("left_out", "git add --all", 1, 0, text + lines)


def _paths(snapshot: Snapshot) -> str:
    return ", ".join(snapshot.all_left_out)


def _listed(labels: list[str]) -> str:
    *first, last = labels
    words = [label[0].lower() + label[1:] for label in (*first[1:], last)]
    return f"{labels[0]}, {', '.join(words[:-1])}, or {words[-1]}"
