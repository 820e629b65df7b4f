"""Commands on permission rules."""

from __future__ import annotations

from draftsman.jobs.job import Source
from draftsman.people.actor import Actor
from draftsman.questions.permission_rules.permission_rule import RuleStatus
from draftsman.runtime import Runtime
from draftsman_testing.factories import Factory
from draftsman_testing.people import People
from draftsman_tui.dashboard.command_table import COMMANDS
from tests.support.permissions import ALLOW, decided
from tests.tui.dashboard.pilot import open_dashboard


async def test_a_rule_is_ratified_after_a_look_at_its_backtest_and_revoked(
    make: Factory, rt: Runtime, people: People, owner: Actor
) -> None:
    await decided(rt, make, ["pytest tests/a.py"] * 2, ALLOW, people.ben)
    rule = await rt.rules.propose("acme/shop", "pytest tests/**", owner)
    async with open_dashboard(rt, owner, view="rules", size=(120, 30)) as seen:
        await seen.see("proposed", "pytest tests/**", "for 30d")
        await seen.command("ratify 7d")
        await seen.dialog("ConfirmDialog")
        await seen.see(
            "Allow 'pytest tests/**' in git.example.org/acme/shop without a question?",
            "2  would have allowed, and people",
        )
        await seen.press("n")
        assert (await rt.rules.get(rule.id)).status is RuleStatus.PROPOSED
        await seen.command("ratify 7d")
        await seen.dialog("ConfirmDialog")
        await seen.press("y")
        await seen.wait_for_toast(f"Rule {rule.id} ratified by ")
        await seen.see("active", "in 7 d")
        await seen.command("ratify")
        await seen.wait_for_toast(f"rule {rule.id} is active")
        await seen.command("revoke too wide")
        await seen.wait_for_toast(f"Rule {rule.id} ended")
        await seen.see("revoked")
    assert (await rt.rules.get(rule.id)).end_reason == "too wide"


async def test_only_an_operator_changes_rules(rt: Runtime, people: People, owner: Actor) -> None:
    await rt.rules.propose("acme/shop", "pytest tests/**", owner)
    for name in ("ben", "olga"):
        async with open_dashboard(rt, people.on(Source.TUI, name), view="rules") as seen:
            await seen.see("proposed")
            allowed = name == "olga"
            for command in ("ratify", "revoke"):
                assert (seen.app.main.refusal(COMMANDS[command]) is None) == allowed
