"""Actions on permission rules."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from draftsman.actions.action import (
    REASON,
    TERMINALS,
    About,
    ActionResult,
    Arguments,
    Call,
    Subject,
    Surface,
    action,
)
from draftsman.deliveries.documents.document import LABELS
from draftsman.deliveries.documents.document import Action as Control
from draftsman.durations import parse_duration
from draftsman.entities.permission_rules import backtest_lines, expiry_text, rule_data
from draftsman.errors import CommandHint
from draftsman.formats.invisible import one_line
from draftsman.people.policy import Verb
from draftsman.questions.permission_rules.permission_rule import ENDED, RATIFIED

if TYPE_CHECKING:
    from draftsman.questions.permission_rules.permission_rule import PermissionRule


def parse_time(text: str) -> dict[str, float | None]:
    """Parse how long a rule is active; raises UsageError."""
    return {"seconds": parse_duration(text) if text else None}


@action(About.RULE, right=Verb.RULES, surfaces={Surface.COMMANDS}, undo="revoke")
async def propose(
    call: Call, pattern: str, repo: str, seconds: float | None = None
) -> ActionResult[PermissionRule]:
    """Propose a rule. It allows nothing until a person ratifies it."""
    is_known = await call.rt.rules.is_known(repo)
    rule = await call.rt.rules.propose(repo, pattern, call.actor, seconds)
    unknown = f"no agent has asked for a command in a repository {one_line(repo)!r}"
    result = _result(rule, "proposed", f": would allow {rule.text} in {rule.repo}")
    return replace(
        result,
        then=CommandHint("rules ratify", str(rule.id), lead="to make it active"),
        warnings=() if is_known else (f"{unknown}; to list repositories: draftsman repos",),
    )


async def proposed(call: Call, rule: int, **_: object) -> Subject:
    """Return what a rule allows, and its backtest; raises Refused unless it is proposed."""
    details = await call.rt.rules.get(rule)
    RATIFIED.check(f"rule {rule}", details.status)
    lines = [*backtest_lines(await call.rt.rules.test(details.repo, details.pattern))]
    return Subject(f"{details.text!r} in {details.repo}", lines=lines)


@action(
    About.RULE,
    right=Verb.RULES,
    fits=RATIFIED,
    takes=Arguments("[30d]", parse_time),
    question="Allow {} without a question?",
    consequence="Agents may run it until the rule expires.",
    guarded=True,
    check=proposed,
    surfaces=TERMINALS | {Surface.CONTROLS},
    undo="revoke",
)
async def ratify(
    call: Call, rule: int, seconds: float | None = None
) -> ActionResult[PermissionRule]:
    """Make a proposed rule active, after a look at its backtest."""
    active = await call.rt.rules.ratify(rule, call.actor, seconds)
    detail = f" by {active.ratified_by}: allows {active.text} in {active.repo}"
    return _result(active, "ratified", f"{detail}, which expires {expiry_text(active)}")


@action(
    About.RULE,
    label=LABELS[Control.DECLINE],
    right=Verb.RULES,
    fits=ENDED,
    takes=REASON,
    surfaces=TERMINALS | {Surface.CONTROLS},
)
async def revoke(call: Call, rule: int, reason: str = "") -> ActionResult[PermissionRule]:
    """End a proposed or active rule at once."""
    ended = await call.rt.rules.revoke(rule, call.actor, reason)
    because = f" ({one_line(reason)})" if reason else ""
    return _result(ended, "ended", f" by {ended.ended_by}: {ended.text}{because}")


def _result(rule: PermissionRule, says: str, detail: str) -> ActionResult[PermissionRule]:
    return ActionResult(says, rule, (detail,), data=rule_data(rule), subject=f"rule {rule.id}")
