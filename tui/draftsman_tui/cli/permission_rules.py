"""The `rules` command group: permission rules, which allow commands of agents."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import click

from draftsman.actions import rules as actions
from draftsman.entities.filter_values import unknown_value
from draftsman.entities.permission_rules import RULES, backtest_lines, history_lines, rule_data
from draftsman.formats import times
from draftsman.formats.amounts import counted
from draftsman.formats.invisible import one_line
from draftsman.questions.permission_rules.permission_rule import (
    MEANINGS,
    Backtest,
    PermissionRule,
)
from draftsman_tui.cli.app import App, ListGroup, command_group
from draftsman_tui.cli.lists import print_list
from draftsman_tui.cli.perform import perform
from draftsman_tui.terminal import params
from draftsman_tui.terminal.colors import STYLES
from draftsman_tui.terminal.output import line, styled


@command_group(
    "rules",
    section="Questions",
    cls=ListGroup,
    examples=(
        "draftsman rules",
        "draftsman rules show 3",
        "draftsman rules ratify 3 --for 14d",
        "draftsman rules test 'pytest tests/**' --repo shop",
    ),
)
def rules() -> None:
    """List, test, ratify and revoke permission rules.

    A rule allows a command of agents in a repository without a question, until it expires.
    draftsman proposes a rule after equal decisions of people; it allows nothing until a person
    ratifies it, and ends when a person denies a command that it matches.
    """


repo_option = click.option(
    "--repo",
    type=params.TEXT,
    required=True,
    metavar="NAME",
    help="Name of the repository: shop, acme/shop, or with its host github.com/acme/shop.",
)
time_option = click.option(
    "--for",
    "seconds",
    type=params.DURATION,
    help="How long the rule allows commands; default: as configured, 30d.",
)


@rules.subcommand(
    "list",
    examples=("draftsman rules list", "draftsman rules list --repo shop --json"),
    lists=RULES,
)
@click.option("--repo", type=params.TEXT, metavar="NAME", help="Only rules of this repository.")
async def list_rules(app: App, repo: str | None) -> None:
    """List permission rules, newest first."""
    async with app.runtime(read_only=True) as rt:
        saved_rules = await rt.rules.all(repo)
        unknown = "" if saved_rules else await unknown_value(rt, {"repo": repo})
    print_list(app, RULES, saved_rules, unknown=unknown)


@rules.subcommand("show", examples=("draftsman rules show 3", "draftsman rules show 3 --json"))
@click.argument("rule", type=params.ROW)
async def show(app: App, rule: int) -> None:
    """Show a rule, the recorded decisions that it would have made, and its newest uses."""
    async with app.runtime(read_only=True) as rt:
        details = await rt.rules.get(rule)
        backtest = await rt.rules.test(details.repo, details.pattern)
        uses = await rt.rules.uses(rule)
    if app.json:
        newest = [asdict(use) | {"command": use.command} for use in uses]
        app.out.document(
            rule_data(details) | {"backtest": _counts(backtest), "newest_uses": newest}
        )
        return
    _print_rule(app, details)
    app.out.print(*backtest_lines(backtest))
    app.out.print(f"allowed {counted(details.uses, 'command')} without a question")
    for use in uses:
        app.out.print(f"          {use.name}  {one_line(use.command)}  {times.ago(use.at)}")


@rules.subcommand(
    "test",
    examples=(
        "draftsman rules test 'pytest tests/**' --repo shop",
        "draftsman rules test 'pytest tests/**' --repo shop --command 'pytest tests/a.py -x'",
    ),
)
@click.argument("pattern", type=params.TEXT)
@repo_option
@click.option(
    "--command", "tried", type=params.TEXT, metavar="COMMAND", help="Test this command as well."
)
async def test(app: App, pattern: str, repo: str, tried: str | None) -> None:
    """Show which recorded decisions a pattern would have made.

    A pattern has the words of a plain command; DIR/** stands for a path below a folder. Exit code 1
    if --command is not matched, or a person denied a command that is.
    """
    async with app.runtime(read_only=True) as rt:
        backtest = await rt.rules.test(repo, pattern)
        is_known = await rt.rules.is_known(repo)
        is_matched = None if tried is None else rt.rules.allows(pattern, tried)
    if app.json:
        app.out.document(_counts(backtest) | {"matches": is_matched})
    else:
        app.out.print(*backtest_lines(backtest))
        if tried is not None:
            verb = "matches" if is_matched else "does not match: people are asked about"
            app.out.print(f"{verb} {one_line(tried)}")
        _note_repository(app, repo, is_known=is_known)
    if backtest.denied or is_matched is False:
        raise click.exceptions.Exit(1)


@rules.subcommand(
    "propose",
    examples=("draftsman rules propose 'pytest tests/**' --repo shop --for 14d",),
    does=(actions.propose,),
)
@click.argument("pattern", type=params.TEXT)
@repo_option
@time_option
async def propose(app: App, pattern: str, repo: str, seconds: float | None) -> None:
    """Propose a rule. It allows nothing until a person ratifies it.

    It is refused if a person denied a command that it matches.
    """
    await perform(app, actions.propose, pattern, repo=repo, seconds=seconds)


@rules.subcommand(
    "ratify",
    examples=("draftsman rules ratify 3", "draftsman rules ratify 3 --for 14d -y"),
    does=(actions.ratify,),
)
@click.argument("rule", type=params.ROW)
@time_option
async def ratify(app: App, rule: int, seconds: float | None, yes: bool) -> None:
    """Make a proposed rule active, after a look at its backtest."""
    await perform(app, actions.ratify, rule, seconds=seconds, yes=yes)


@rules.subcommand(
    "revoke",
    examples=("draftsman rules revoke 3 --reason 'too wide'",),
    does=(actions.revoke,),
)
@click.argument("rule", type=params.ROW)
@click.option("--reason", type=params.TEXT, default="", help="Reason, kept with the rule.")
async def revoke(app: App, rule: int, reason: str) -> None:
    """End a proposed or active rule at once."""
    await perform(app, actions.revoke, rule, reason=reason)


def _note_repository(app: App, repo: str, *, is_known: bool) -> None:
    if not is_known:
        app.out.info(
            f"no agent has asked for a command in a repository {one_line(repo)!r};"
            " to list repositories: draftsman repos"
        )


def _print_rule(app: App, rule: PermissionRule) -> None:
    status = styled(rule.status, STYLES[MEANINGS[rule.status]])
    app.out.result(
        rule_data(rule),
        line(styled(f"rule {rule.id}", "bold"), "  ", status),
        f"  allows    {rule.text}",
        f"  in        {rule.repo}",
        *(f"  {text}" for text in history_lines(rule)),
    )


def _counts(test: Backtest) -> dict[str, Any]:
    return {
        name: [asdict(decision) | {"command": decision.command} for decision in decisions]
        for name, decisions in (
            ("allowed", test.allowed),
            ("denied", test.denied),
            ("asked", test.asked),
        )
    }
