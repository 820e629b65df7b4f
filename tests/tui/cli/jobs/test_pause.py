"""The `pause` and `resume` commands."""

from __future__ import annotations

from tests.factories import Factory
from tests.tui.cli.cli_runner import Cli
from tests.tui.cli.conftest import As


async def test_a_job_is_paused_explained_and_resumed(cli: Cli, make: Factory) -> None:
    work = await make.running()
    done = await cli("pause", work.name, "--reason", "the API is down")
    assert (done.code, done.err) == (0, "")
    assert done.out == (
        f"{work.name} paused; its worker parks it; to continue it: draftsman resume {work.name}\n"
    )
    assert "paused since" in (await cli("why", work.name)).out
    assert "the API is down" in (await cli("show", work.name)).out
    document = (await cli("resume", work.name, "--json")).json
    assert document == {"number": work.number, "status": "running"}
    (await cli("resume", work.name)).refused(1, f"{work.name} is not paused")


async def test_a_pause_needs_a_reason_and_the_role(cli: Cli, as_: As, make: Factory) -> None:
    number = await make.queued()
    (await cli("pause", number)).refused(2, "--reason")
    (await as_("ben")("pause", number, "--reason", "r")).refused(1, "may not pause or resume jobs")
