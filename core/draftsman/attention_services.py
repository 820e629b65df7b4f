"""Services for the time of people, as a part of `Runtime`."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

from draftsman import configured

if TYPE_CHECKING:
    from draftsman.domain.people.policy import Policy
    from draftsman.services.attention.acknowledgments import Acknowledgments
    from draftsman.services.attention.digests import Digests
    from draftsman.services.attention.question_figures import QuestionFigures
    from draftsman.services.attention.rules import PermissionRules
    from draftsman.services.questions import Questions
    from draftsman.settings import Settings
    from draftsman.store.postgres.database import Database


class AttentionServices:
    """Services that make fewer questions, and measure the time that they take."""

    if TYPE_CHECKING:
        settings: Settings
        db: Database
        policy: Policy

        @property
        def questions(self) -> Questions:
            """Questions and answers."""

    @cached_property
    def acknowledgments(self) -> Acknowledgments:
        """Acknowledgments and snoozes of questions."""
        from draftsman.services.attention.acknowledgments import Acknowledgments

        return Acknowledgments(self.db, self.policy, self.questions)

    @cached_property
    def figures(self) -> QuestionFigures:
        """Views of questions, and figures of people's time."""
        from draftsman.services.attention.question_figures import QuestionFigures

        return QuestionFigures(self.db, self.policy, configured.default_quiet_hours(self.settings))

    @cached_property
    def digests(self) -> Digests:
        """Digests of questions."""
        from draftsman.services.attention.digests import Digests

        used = self.settings.questions.timezone, self.settings.sweeps.limit
        return Digests(self.db, self.policy, *used)

    @cached_property
    def rules(self) -> PermissionRules:
        """Permission rules."""
        from draftsman.services.attention.rules import PermissionRules

        used = self.settings.rules
        return PermissionRules(self.db, self.policy, used.propose_after, used.expires_in)
