"""Permission rules."""

from __future__ import annotations

from draftsman.entities.permission_rules import RULES
from draftsman.questions.permission_rules.permission_rule import (
    PermissionRule,
    RuleStatus,
)
from draftsman_tui.dashboard.tables.filter import FilterFields
from draftsman_tui.dashboard.tables.resource import ListedResource


class RulesResource(ListedResource[PermissionRule]):
    """The newest rules."""

    help = "Rules that allow commands of agents. A person ratifies or revokes them."
    statuses = tuple(map(str, RuleStatus))
    fields = ("status", "repo", "by", "age")
    entity = RULES

    def filter_fields(self, row: PermissionRule) -> FilterFields:
        return FilterFields(
            row.text,
            str(row.status),
            repo=row.repo,
            by=row.ratified_by or row.proposed_by,
            at=row.proposed_at,
        )
