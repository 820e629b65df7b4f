"""Budgets of tests."""

from __future__ import annotations

import json
from typing import Any

from draftsman.database.database import Connection
from draftsman.settings.budgets import BudgetsSettings
from tests.support.statements import value


async def set_budgets(conn: Connection, **scopes: Any) -> bool:
    """Replace the budgets, as the leader does; return whether they changed."""
    settings = BudgetsSettings.model_validate(scopes)
    return bool(
        await value(
            conn,
            "SELECT draftsman.set_budgets(%s::jsonb, %s, 'system')",
            (json.dumps(settings.rules()), settings.timezone),
        )
    )
