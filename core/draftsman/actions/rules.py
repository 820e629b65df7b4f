"""Actions on permission rules."""

from __future__ import annotations

from typing import TYPE_CHECKING

from draftsman.actions.action import About, ActionResult, Call, Surface, action
from draftsman.actions.jobs import TERMINALS
from draftsman.deliveries.documents.document import LABELS
from draftsman.deliveries.documents.document import Action as Control
from draftsman.durations import parse_duration
from draftsman.people.policy import Verb
from draftsman.questions.permission_rules.permission_rule import ENDED, RATIFIED

if TYPE_CHECKING:
    from draftsman.questions.permission_rules.permission_rule import PermissionRule


def parse_time(text: str) -> dict[str, float | None]:
    """Parse how long a rule is active; raises UsageError."""
    return {"seconds": parse_duration(text) if text else None}


@action(
    About.RULE,
    right=Verb.RULES,
    fits=RATIFIED,
    arguments="[30d]",
    question="Allow {} without a question?",
    consequence="Agents may run it until the rule expires.",
    guarded=True,
    parse=parse_time,
    surfaces=TERMINALS | {Surface.CONTROLS},
)
async def ratify(
    call: Call, rule: int, seconds: float | None = None
) -> ActionResult[PermissionRule]:
    """Make a proposed rule active, after a look at its backtest."""
    active = await call.rt.rules.ratify(rule, call.actor, seconds)
    detail = (f" by {active.ratified_by}: allows {active.text} in {active.repo}",)
    return ActionResult(f"rule {rule}", "ratified", active, detail)


@action(
    About.RULE,
    label=LABELS[Control.DECLINE],
    right=Verb.RULES,
    fits=ENDED,
    arguments="[REASON]",
    parse=lambda text: {"reason": text},
    surfaces=TERMINALS | {Surface.CONTROLS},
)
async def revoke(call: Call, rule: int, reason: str = "") -> ActionResult[PermissionRule]:
    """End a proposed or active rule at once."""
    ended = await call.rt.rules.revoke(rule, call.actor, reason)
    return ActionResult(f"rule {rule}", "ended", ended, (f" by {ended.ended_by}: {ended.text}",))
