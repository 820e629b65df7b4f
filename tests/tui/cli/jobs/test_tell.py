"""The `tell` command, and the messages in `show`."""

from __future__ import annotations

from typing import Any, Final

from draftsman.runtime import Runtime
from draftsman_testing.factories import Factory
from tests.tui.cli.cli_runner import Cli
from tests.tui.cli.conftest import As

AGENT: Final[dict[str, Any]] = {"type": "run_agent", "title": "Do it"}


async def test_a_message_is_sent_once_for_its_key_and_shown(
    cli: Cli, make: Factory, rt: Runtime
) -> None:
    work = await make.running(**AGENT)
    done = await cli("tell", work.name, "use the", "v2 API")
    assert (done.code, done.err) == (0, "")
    assert done.out == (
        f"message 1 sent to {work.name}: the agent gets it between two turns,"
        " or with its next run\n"
    )
    keyed = ("tell", work.name, "--key", "k", "and test it", "--json")
    expected = {"number": work.number, "message": 2, "status": "running", "follow_up": None}
    expected |= {"review": None}
    assert (await cli(*keyed)).json == expected | {"created": True}
    assert (await cli(*keyed)).json == expected | {"created": False}
    (await cli(*keyed[:4], "or not")).refused(
        4, f"the key 'k' was used for message 2 to {work.name}, which has another text"
    )
    assert len(await rt.messages.of_job(work.number)) == 2
    await rt.run_messages.hand(work.lease, [1, 2])
    await rt.run_messages.deliver_with_checkpoint(work.lease, [1], {}, None)
    shown = (await cli("show", work.name)).out
    assert "Messages" in shown
    assert "delivered in run 1" in shown
    assert "given to run 1; delivered with its next checkpoint" in shown
    assert "     use the v2 API" in shown
    messages = (await cli("show", work.name, "--json")).json["messages"]
    assert [(item["text"], item["delivered_at"] is None) for item in messages] == [
        ("use the v2 API", False),
        ("and test it", True),
    ]
    await rt.job_control.cancel(work.number, make.owner, force=True)
    assert (
        "not delivered: the job ended before; a retry gets it" in (await cli("show", work.name)).out
    )


async def test_a_message_that_cannot_be_sent_says_what_to_do(
    cli: Cli, as_: As, make: Factory
) -> None:
    number = await make.queued(**AGENT)
    (await cli("tell", number)).refused(2, "MESSAGE is required")
    (await as_("carol")("tell", number, "x")).refused(1, "may not send messages to jobs")
    ended = await make.canceled(**AGENT)
    (await cli("tell", ended, "x")).refused(1, "is canceled", f"draftsman retry D-{ended}")
