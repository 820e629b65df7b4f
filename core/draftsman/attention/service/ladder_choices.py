"""Which ladder a question has."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Final

from draftsman.database.database import Connection

if TYPE_CHECKING:
    from draftsman.attention.ladder import Ladder, LadderStep
    from draftsman.questions.question_spec import QuestionSpec
    from draftsman.settings.attention import LadderSettings
    from draftsman.settings.hours import LadderKind

CRITICAL: Final = "critical"
"""The kind of critical questions, before their own."""
OWNERS: Final = "@owners"


class LadderChoices:
    """The configured ladders, and which of them a question has."""

    def __init__(
        self,
        ladders: Callable[[], Mapping[str, LadderSettings]],
        choices: Callable[[], Mapping[LadderKind, str]],
    ) -> None:
        """`choices` are the names by kind of question; both are read when a question is asked."""
        self._ladders = ladders
        self._choices = choices

    async def of(self, conn: Connection, job: int, item: QuestionSpec) -> Ladder | None:
        """Return the ladder of a question; the profile of the repository comes first."""
        ladders = self._ladders()
        if not ladders:
            return None
        from draftsman.attention.ladder import Ladder
        from draftsman.attention.store import ladders as store

        choices = {str(kind): name for kind, name in self._choices().items()}
        choices |= await store.profile_ladders(conn, job)
        name = choices.get(CRITICAL) if item.critical else None
        name = name or choices.get(str(item.kind))
        settings = ladders.get(name or "")
        return None if name is None or settings is None else Ladder(name, _steps(settings))

    @property
    def uses_owners(self) -> bool:
        """Whether any ladder notifies the code owners."""
        ladders = self._ladders().values()
        return any(OWNERS in step.notify for ladder in ladders for step in ladder.steps)


def _steps(settings: LadderSettings) -> tuple[LadderStep, ...]:
    from draftsman.attention.ladder import LadderStep, WhenAway

    return tuple(
        LadderStep(step.notify, step.after, WhenAway(step.when_away), step.escalate)
        for step in settings.steps
    )
