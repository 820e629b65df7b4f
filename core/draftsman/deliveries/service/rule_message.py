"""The message about a proposed permission rule."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from draftsman.log import redact

if TYPE_CHECKING:
    from draftsman.database.database import Database
    from draftsman.deliveries.delivery import Message


async def with_rule(db: Database, message: Message) -> Message:
    """Return the message with the rule that its buttons decide on, as it is recorded.

    The sessions of workers write messages: the text of an operator's decision is not theirs. A
    rule that is not proposed any more has no buttons.
    """
    payload: dict[str, Any] = message.payload or {}
    rule = payload.get("rule")
    if rule is None:
        return message
    from draftsman.questions.permission_rules import store as rules
    from draftsman.questions.permission_rules.permission_rule import RuleStatus, proposal_text

    found = []
    if isinstance(rule, int) and 0 < rule < 2**63:
        async with db.connection() as conn:
            found = await rules.rules(conn, 1, id=rule)
    if not found:
        return replace(message, payload={key: payload[key] for key in payload if key != "rule"})
    recorded: dict[str, Any] = {"text": redact(proposal_text(found[0])), "names_job": True}
    if found[0].status is RuleStatus.PROPOSED:
        recorded["rule"] = found[0].id
    return replace(message, payload=recorded)
