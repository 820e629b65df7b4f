"""Components of a process, which start, stop and fail together."""

from __future__ import annotations

import asyncio

import pytest

from draftsman.processes.components import ComponentGroup, Routine
from draftsman.processes.lifecycle import StopSignal

FOREVER = float("inf")


class Recorder:
    """Components that record their stops and ends."""

    def __init__(self, expected: int = 0) -> None:
        self.expected = expected
        self.entries: list[str] = []
        self.running = 0
        self.all_run = asyncio.Event()
        self.one_ended = asyncio.Event()

    def component(self, name: str, *, work: asyncio.Event | None = None) -> Routine:
        """Return a component that ends when it is stopped and its work is done."""

        async def run(stop: StopSignal) -> None:
            self.running += 1
            if self.running == self.expected:
                self.all_run.set()
            await stop.wait(FOREVER)
            self.entries.append(f"{name} stops")
            if work is not None:
                await work.wait()
            self.entries.append(f"{name} ended")
            self.one_ended.set()

        return Routine(run)


async def _fail(_: StopSignal) -> None:
    raise LookupError("no such thing")


async def test_a_stage_stops_when_all_of_the_stage_before_it_have_ended() -> None:
    recorder = Recorder(4)
    work = asyncio.Event()
    first = [recorder.component("fast"), recorder.component("slow", work=work)]
    group = ComponentGroup(first, [recorder.component("sender")], [recorder.component("listener")])
    running = asyncio.create_task(group.run())
    await recorder.all_run.wait()
    group.stop.set()
    await recorder.one_ended.wait()
    for _ in range(10):
        await asyncio.sleep(0)
    assert recorder.entries == ["fast stops", "fast ended", "slow stops"]
    work.set()
    await running
    later = ["slow ended", "sender stops", "sender ended", "listener stops", "listener ended"]
    assert recorder.entries[3:] == later


async def test_the_stages_stop_when_the_first_ends_by_itself() -> None:
    recorder = Recorder()

    async def end(_: StopSignal) -> None:
        recorder.entries.append("worker ended")

    await ComponentGroup([Routine(end)], [recorder.component("listener")]).run()
    assert recorder.entries == ["worker ended", "listener stops", "listener ended"]


@pytest.mark.parametrize("stage", [0, 1])
async def test_all_stop_in_order_when_one_fails(
    stage: int, caplog: pytest.LogCaptureFixture
) -> None:
    recorder = Recorder()
    stages = [[recorder.component("worker")], [recorder.component("listener")]]
    stages[stage].append(Routine(_fail))
    with pytest.raises(LookupError, match="no such thing"):
        await ComponentGroup(*stages).run()
    assert recorder.entries == [
        "worker stops",
        "worker ended",
        "listener stops",
        "listener ended",
    ]
    assert "Routine failed: no such thing" in caplog.text


async def test_a_group_that_is_stopped_before_it_runs_ends() -> None:
    recorder = Recorder()
    inner = ComponentGroup([recorder.component("inner")])
    outer = ComponentGroup([inner, recorder.component("other")])
    outer.stop.set()
    await outer.run()
    assert sorted(recorder.entries) == sorted(
        ["inner stops", "inner ended", "other stops", "other ended"]
    )


async def test_a_canceled_group_cancels_its_components() -> None:
    recorder = Recorder(1)
    running = asyncio.create_task(ComponentGroup([recorder.component("worker")]).run())
    await recorder.all_run.wait()
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert recorder.entries == []


def test_a_stop_signal_calls_its_function_once() -> None:
    calls: list[bool] = []
    stop = StopSignal(lambda: calls.append(bool(stop)))
    stop.set()
    stop.set()
    assert calls == [True]
