"""`templates`: definitions of jobs, and jobs made from them."""

from __future__ import annotations

import json
from pathlib import Path

from draftsman.people.actor import Actor
from draftsman.runtime import Runtime
from tests.tui.cli.cli_runner import Cli


async def test_a_template_is_added_run_edited_compared_and_removed(
    cli: Cli, rt: Runtime, tmp_path: Path
) -> None:
    assert "no templates; to add a template" in (await cli("templates")).err
    added = await cli(
        *("templates", "add", "report", "--type", "noop", "--tag", "{level}"),
        *("--parameter", "days:integer=7", "--parameter", "level:low|high"),
        *("--payload", '{"days": "{days}"}', "Report of {days} days"),
    )
    assert added.out == "template report added: version 1\n"
    ran = await cli("templates", "run", "report", "--param", "level=low", "--unchecked")
    assert ran.out == "D-1 created\n"
    shown = json.loads((await cli("show", "D-1", "--json")).out)
    assert (shown["template"], shown["template_version"]) == ("report", 1)
    assert (shown["payload"], shown["tags"]) == ({"days": 7}, ["low"])
    assert "\n  template   report@1\n" in (await cli("show", "D-1")).out
    assert json.loads((await cli("jobs", "--json")).out)[0]["template_version"] == 1
    edited = await cli("templates", "edit", "report", "--priority", "5")
    assert edited.out == "template report changed: version 2\n"
    assert "\n+priority: 5\n" in (await cli("templates", "diff", "report")).out
    again = await cli("templates", "edit", "report", "--priority", "5")
    assert again.out == "template report unchanged: version 2\n"
    page = (await cli("templates", "show", "report")).out
    assert "days: integer, default 7" in page
    assert "level: low|high, required" in page
    assert "priority  5" in page
    listed = json.loads((await cli("templates", "list", "--json")).out)
    assert [(row["name"], row["version"]) for row in listed] == [("report", 2)]
    assert "template report removed" in (await cli("templates", "remove", "report")).out
    for name in ("report", "report@1"):
        (await cli("templates", "run", name)).refused(3, "template report was removed")
    assert (await cli("templates", "show", "report@1")).code == 0


async def test_a_file_of_a_template(cli: Cli, tmp_path: Path) -> None:
    file = tmp_path / "weekly.toml"
    file.write_text(
        'description = "Weekly"\ntype = "noop"\ntext = "{week}"\n'
        "[parameters.properties.week]\ntype = 'integer'\n"
    )
    await cli("templates", "add", "weekly", "--file", file, "--queue", "slow")
    data = json.loads((await cli("templates", "show", "weekly", "--json")).out)
    assert (data["definition"]["queue"], data["definition"]["text"]) == ("slow", "{week}")
    assert [version["version"] for version in data["versions"]] == [1]
    file.write_text("type = ")
    (await cli("templates", "add", "other", "--file", file)).refused(2, "invalid TOML")


async def test_bad_input_is_refused_in_one_line(cli: Cli, rt: Runtime, owner: Actor) -> None:
    add = ("templates", "add", "report", "--type", "noop")
    for arguments, problem in (
        ((*add, "--parameter", "n:whole"), "unknown type 'whole'; allowed: string, integer"),
        ((*add, "--parameter", "n:integer=x"), "the default is not a valid integer"),
        ((*add, "--parameter", "n", "--schema", "{}"), "cannot be combined"),
        ((*add, "{n}"), "unknown parameter {n}"),
        ((*add, "--override", "timout=3"), "unknown override timout; did you mean timeout"),
        (("templates", "add", "a b", "x"), "allowed: letters"),
        (("templates", "add", "a", "--schema", "["), "--schema: invalid JSON"),
        (("templates", "run", "a", "--param", "x"), "'x' is not key=value"),
        (("templates", "run", "a", "--timeout", "3s"), "--timeout requires --wait"),
    ):
        (await cli(*arguments)).refused(2, problem)
    await cli(*add, "--parameter", "n:integer", "n is {n}")
    (await cli("templates", "run", "report", "--param", "n=x")).refused(
        2, "n: must be a whole number, not 'x'"
    )
    (await cli("templates", "edit", "report")).refused(2, "needs a terminal, --file, or fields")
    (await cli("templates", "diff", "report", "4")).refused(3, "has no version 4; newest: 1")
    assert await rt.read_model.jobs() == []
