"""Failures that two people dismiss, or that one dismisses while another retries them."""

from __future__ import annotations

import pytest

from draftsman.database.database import Connection
from draftsman.errors import Refused
from draftsman.runtime import Runtime
from draftsman_testing.factories import Factory
from tests.core.worker.workers import event_kinds
from tests.support.races import FirstSession


async def test_a_dismissal_waits_for_the_retry_and_finds_nothing_to_dismiss(
    make: Factory, rt: Runtime, first: FirstSession, conn: Connection
) -> None:
    number = await make.dead()
    async with first.doing(first.rt.job_control.retry(number, make.owner)):
        with pytest.raises(Refused, match="was retried as D-2; nothing to dismiss"):
            await first.then(rt.job_control.dismiss(number, make.owner), conn)
    assert not any((await rt.read_model.invariants()).values())


async def test_a_retry_waits_for_the_dismissal_and_stands_for_the_failure(
    make: Factory, rt: Runtime, first: FirstSession, conn: Connection
) -> None:
    number = await make.dead()
    async with first.doing(first.rt.job_control.dismiss(number, make.owner)):
        retry = await first.then(rt.job_control.retry(number, make.owner), conn)
    assert retry.outcome == "created"
    assert await rt.read_model.jobs(failures=True) == []
    assert not any((await rt.read_model.invariants()).values())


async def test_a_retry_waits_for_the_end_of_the_dismissal(
    make: Factory, rt: Runtime, first: FirstSession, conn: Connection
) -> None:
    number = await make.dead()
    await rt.job_control.dismiss(number, make.owner)
    async with first.doing(first.rt.job_control.undismiss(number, make.owner)):
        await first.then(rt.job_control.retry(number, make.owner), conn)
    assert await rt.read_model.jobs(failures=True) == []
    assert not any((await rt.read_model.invariants()).values())


async def test_the_first_of_two_dismissals_counts(
    make: Factory, rt: Runtime, first: FirstSession, conn: Connection
) -> None:
    number = await make.dead()
    async with first.doing(first.rt.job_control.dismiss(number, make.owner, "the first")):
        again = await first.then(rt.job_control.dismiss(number, make.owner, "the second"), conn)
    assert (again.changed, str(again.dismissal)) == (False, "by root: the first")
    assert (await event_kinds(rt, number)).count("job_dismissed") == 1
