"""`rules`: proposing, testing, ratifying and revoking permission rules."""

from __future__ import annotations

from draftsman.jobs.runs.run import LeaderTerm
from draftsman.runtime import Runtime
from draftsman_testing.factories import Factory
from draftsman_testing.people import People
from tests.support.permissions import ALLOW, DENY, asked, decided
from tests.tui.cli.cli_runner import Cli

FIVE = [f"pytest tests/test_{name}.py" for name in "abcde"]


async def test_a_proposed_rule_is_tested_ratified_used_and_revoked(
    cli: Cli, rt: Runtime, make: Factory, people: People
) -> None:
    assert "no rules; draftsman proposes" in (await cli("rules", "list")).err
    jobs = await decided(rt, make, FIVE, ALLOW, people.ben)
    (denied,) = await decided(rt, make, ["pytest src/x.py"], DENY, people.ben)
    await rt.rules.sweep(LeaderTerm())
    (rule,) = await rt.rules.all()
    listed = (await cli("rules", "list", "--repo", "shop")).out
    assert f"{rule.id}  proposed  git.example.org/acme/shop  pytest tests/*" in listed
    assert "for 30d" in listed
    shown = (await cli("rules", "show", rule.id)).out
    for text in (
        "proposed by system after 5 equal decisions",
        "allows nothing until a person ratifies it, then for 30d",
        "   5  would have allowed, and people allowed",
        f"{jobs[0].name}/1  pytest tests/test_a.py  (allowed by ben)",
        "   0  would have allowed, although people DENIED",
        f"{denied.name}/1  pytest src/x.py  (denied by ben)",
    ):
        assert text in shown

    refused = await cli("rules", "ratify", rule.id)
    assert (refused.code, "to confirm, use --yes" in refused.err) == (2, True)
    ratified = await cli("rules", "ratify", rule.id, "--for", "14d", "--yes")
    assert f"rule {rule.id} ratified by root: allows pytest tests/*" in ratified.out
    assert "expires in 14 d" in ratified.out or "expires in 13 d" in ratified.out
    again = await cli("rules", "ratify", rule.id, "--yes")
    assert (again.code, again.err) == (1, f"draftsman: rule {rule.id} is active\n")

    work = await asked(make, "pytest tests/test_f.py")
    cited = f"was answered by rule {rule.id} (pytest tests/*): allow once"
    assert cited in (await cli("show", work.number)).out
    assert f"Rule {rule.id} (" in (await cli("events", work.number)).out
    document = (await cli("rules", "show", rule.id, "--json")).json
    assert (document["uses"], len(document["backtest"]["allowed"])) == (1, 5)
    assert document["newest_uses"][0]["command"] == "pytest tests/test_f.py"

    ended = (await cli("rules", "revoke", rule.id, "--reason", "too wide")).out
    assert "too wide" in ended
    assert "revoked" in (await cli("rules", "list")).out


async def test_a_pattern_is_tried_before_it_is_proposed(
    cli: Cli, rt: Runtime, make: Factory, people: People
) -> None:
    await decided(rt, make, FIVE, ALLOW, people.ben)
    pattern = ("pytest tests/**", "--repo", "shop")
    tried = await cli("rules", "test", *pattern, "--command", "pytest tests/x.py")
    assert (tried.code, tried.out.splitlines()[-1]) == (0, "matches pytest tests/x.py")
    tried = await cli("rules", "test", *pattern, "--command", "pytest tests/x.py; ls")
    assert (tried.code, "does not match" in tried.out) == (1, True)
    proposed = await cli("rules", "propose", *pattern, "--for", "7d")
    assert "to make it active: draftsman rules ratify 1" in proposed.out
    await decided(rt, make, ["pytest tests/y.py"], DENY, people.ben)
    assert (await cli("rules", "test", *pattern)).code == 1
    refused = await cli("rules", "propose", *pattern)
    assert "ben denied 'pytest tests/y.py'" in refused.err
    wrong = await cli("rules", "propose", "sh -c ls", "--repo", "shop")
    assert (wrong.code, "use a plain command" in wrong.err) == (2, True)
    assert "DIR/* stands for a file" in wrong.err
    assert (await cli("rules", "show", 99)).code == 3
    (await cli("rules", "show", "abc")).refused(2, "'abc' is not a whole number")


async def test_a_repository_without_requests_is_pointed_out(
    cli: Cli, rt: Runtime, make: Factory, people: People
) -> None:
    await decided(rt, make, FIVE, ALLOW, people.ben)
    for command in ("test", "propose"):
        known = await cli("rules", command, "pytest tests/**", "--repo", "shop")
        unknown = await cli("rules", command, "pytest tests/**", "--repo", "shpo")
        assert (known.code, unknown.code) == (0, 0)
        assert "no agent has asked" not in known.err
        assert "no agent has asked for a command in a repository 'shpo'" in unknown.err


async def test_a_rule_is_revoked_without_a_reason(cli: Cli) -> None:
    await cli("rules", "propose", "pytest tests/**", "--repo", "shop")
    ended = await cli("rules", "revoke", 1)
    assert ended.out == "rule 1 ended by root: pytest tests/**\n"
    again = await cli("rules", "revoke", 1)
    assert (again.code, again.err) == (1, "draftsman: rule 1 is revoked\n")
