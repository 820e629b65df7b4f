"""`people import`, `set` and `remove`: people in the database of a server."""

from __future__ import annotations

from draftsman.runtime import Runtime
from draftsman_testing.factories import Factory
from tests.tui.cli.cli_runner import Cli


async def test_an_import_is_shown_before_it_is_written(cli: Cli, rt: Runtime) -> None:
    looked = await cli("people", "import", "--dry-run")
    assert looked.code == 0
    assert "add person carol: approver; cli carol; slack U-CAROL; trello T-CAROL" in looked.out
    assert "add group leads: carol, dave" in looked.out
    assert not await rt.people.directory()
    (await cli("people", "import")).refused(2, "use --yes (or --dry-run to preview)")
    assert (await cli("people", "import", "--yes")).code == 0
    assert (await rt.people.directory()).groups == {"leads": ("carol", "dave")}
    again = await cli("people", "import", "--yes")
    assert again.out == "people unchanged: the database is up to date\n"


async def test_the_database_decides_once_it_has_people(cli: Cli, make: Factory) -> None:
    first = await make.queued()
    two = await make.queued()
    assert "none in the database" in (await cli("doctor")).out
    assert (await cli("cancel", f"D-{first}", "--yes")).code == 0
    zoe = ("--role", "operator", "--login", "z", "--yes")
    assert (await cli("people", "set", "zoe", *zoe)).code == 0
    (await cli("cancel", f"D-{two}", "--yes")).refused(1, "may not cancel")
    listed = (await cli("people", "list")).out
    assert ["zoe", "operator", "login:z"] in [line.split() for line in listed.splitlines()]


async def test_a_person_is_set_changed_and_removed(cli: Cli, rt: Runtime) -> None:
    await cli("people", "import", "--yes")
    options = ("--role", "approver", "--account", "slack:U-DAVE", "--group", "leads", "--yes")
    changed = await cli("people", "set", "dave", *options)
    assert "change person dave" in changed.out
    (await cli("people", "set", "dave", "--quiet-hours", "late", "--yes")).refused(2, "quiet")
    hours = (
        "--group",
        "leads",
        "--working-hours",
        "Mon-Fri 09:00-17:00",
        "--holidays",
        "berlin",
        "--yes",
    )
    worked = (await cli("people", "set", "dave", *hours)).out
    assert "working hours Mon-Fri 09:00-17:00; holidays berlin" in worked
    users = ("pager:ops:PLH1HKV", "pager:grafana:Dave@example.org")
    pagers = [option for user in users for option in ("--account", user)]
    paged = await cli("people", "set", "dave", *pagers, *hours)
    assert "pager ops:plh1hkv; pager grafana:dave@example.org" in paged.out
    (await cli("people", "set", "dave", "--account", "pager:PLH1HKV", "--yes")).refused(
        2, "ops:PLH1HKV"
    )
    (await cli("people", "set", "dave", "--account", "fax:1", "--yes")).refused(2, "fax")
    (await cli("people", "set", "dave", "--working-hours", "9-5", "--yes")).refused(
        2, "days and hours"
    )
    removed = await cli("people", "remove", "carol", "--yes")
    assert "change group leads: carol, dave -> dave" in removed.out
    (await cli("people", "remove", "carol", "--yes")).refused(3, "unknown person")
    assert "carol" not in (await rt.people.directory()).people


async def test_migrate_imports_people_with_permission(cli: Cli, rt: Runtime) -> None:
    output = await cli("migrate")
    assert "people import" in output.err
    assert "add person anna" in (await cli("migrate", "--yes")).out
    assert "anna" in (await rt.people.directory()).people
    assert "people" not in (await cli("migrate")).err
    assert "privileges of the group roles granted" in (await cli("migrate", "--grant")).err


async def test_doctor_shows_where_permissions_are_enforced(cli: Cli) -> None:
    assert "only the programs enforce rights" in (await cli("doctor")).out
