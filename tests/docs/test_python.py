"""The examples of docs/python.md run."""

from __future__ import annotations

import ast
import asyncio
import re
from pathlib import Path
from typing import Any

import psycopg
import pytest

from draftsman import Client, Draftsman, Request
from draftsman.jobs.runs.outcome import Done
from draftsman.processes.host import login
from draftsman.schedules.schedule import ScheduleSpec
from draftsman_testing.factories import Factory
from draftsman_testing.waits import background, until
from tests.docs.pages import DOCS
from tests.support.signatures import parameters

PAGE = (DOCS / "python.md").read_text()
BLOCKS = dict(re.findall(r"^## ([^\n]+)\n(?:(?!^## ).)*?^```python\n(.*?)^```", PAGE, re.M | re.S))
WAIT = re.findall(r"^```python\n(.*?)^```", PAGE, re.M | re.S)[2]


@pytest.fixture
def configured(tmp_path: Path, database_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Configure `Draftsman()` with the database of the test, and a role for its user."""
    config = tmp_path / "draftsman.toml"
    config.write_text(
        f'[people.me]\nlogin = "{login()}"\nroles = ["invoker", "operator"]\n'
        '[types]\n"report:weekly" = {}\n"ship:order" = {}\n"mail:customer" = {}\n'
    )
    monkeypatch.setenv("DRAFTSMAN_CONFIG", str(config))
    monkeypatch.setenv("DRAFTSMAN_DATABASE_URL", database_url)


def run(code: str, **names: Any) -> dict[str, Any]:
    exec(compile(code, "docs/python.md", "exec"), names)
    return names


def test_every_example_is_python() -> None:
    assert len(BLOCKS) == 10
    for code in (*BLOCKS.values(), WAIT):
        compile(code, "docs/python.md", "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)


@pytest.mark.usefixtures("configured")
async def test_jobs_logs_and_files(make: Factory, capsys: pytest.CaptureFixture[str]) -> None:
    async def are_submitted() -> bool:
        return len(await make.rt.read_model.jobs()) == 2

    async with background(asyncio.to_thread(run, BLOCKS["Jobs, logs and files"])) as script:
        await until(are_submitted, "both jobs")
        for number in (1, 2):
            work = await make.running(number)
            await make.rt.checkpoints.log(work.lease, 1, f"log of {number}")
            await make.rt.checkpoints.artifact(work.lease, f"{number}.txt", "file", b"data")
            await make.rt.settlement.outcome(work, Done())
        await script
    assert capsys.readouterr().out.splitlines() == [
        "D-1 completed log of 1",
        "1.txt 4 bytes",
        "D-2 completed log of 2",
        "2.txt 4 bytes",
        "2 None",
    ]


@pytest.mark.usefixtures("configured")
async def test_the_scripts(make: Factory, capsys: pytest.CaptureFixture[str]) -> None:
    await asyncio.to_thread(run, BLOCKS["A script"])
    await asyncio.to_thread(run, BLOCKS["A script"])
    assert capsys.readouterr().out == "D-1 created\nD-1 deduplicated\n"
    await make.rt.settlement.outcome(await make.running(1), Done({"pages": 3}))
    await asyncio.to_thread(run, WAIT)
    assert capsys.readouterr().out == "completed {'pages': 3}\n"


@pytest.mark.usefixtures("configured")
async def test_a_maintenance_script(make: Factory, capsys: pytest.CaptureFixture[str]) -> None:
    request = {"type": "http_request", "payload": {"url": "https://example.org/"}}
    spec = ScheduleSpec("nightly", "@daily", request=request)
    await make.rt.schedules.add(spec, make.owner)
    async with background(asyncio.to_thread(run, BLOCKS["Queues and schedules"])) as script:

        async def reserved() -> bool:
            return bool(await make.rt.reservations.all())

        await until(reserved, "the reserving job")
        (reservation,) = await make.rt.reservations.all()
        work = await make.running(reservation.job)
        await make.rt.settlement.outcome(work, Done({}))
        await script
    assert capsys.readouterr().out == "completed\n"
    fires = await make.rt.schedules.history("nightly")
    assert [(fire.status, fire.job) for fire in fires] == [("fired", reservation.job - 1)]


@pytest.mark.usefixtures("configured")
def test_many_requests(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    customers = "".join(f"{number},Customer {number}\n" for number in range(1500))
    (tmp_path / "customers.csv").write_text("customer,name\n" + customers)
    monkeypatch.chdir(tmp_path)
    assert run(BLOCKS["Many requests"])["count"] == 1500
    with Draftsman() as client:
        job = client.get(1500)
    assert job.payload == {"customer": "1499", "name": "Customer 1499"}
    assert job.idempotency_key == "june-1499"


@pytest.mark.usefixtures("configured")
def test_an_order_and_its_job(database_url: str) -> None:
    place_order = run(BLOCKS["In your own transaction"])["place_order"]
    with Draftsman() as client, psycopg.connect(database_url, autocommit=True) as connection:
        connection.execute("CREATE TABLE orders (number int PRIMARY KEY)")
        try:
            place_order(client, connection, 7)
            with pytest.raises(psycopg.errors.UniqueViolation):
                place_order(client, connection, 7)
        finally:
            connection.execute("DROP TABLE orders")
        assert client.get(1).payload == {"order": 7}
        follow = run(BLOCKS["Events"])["follow"]
        seen: list[Any] = []
        stored: list[Any] = []
        client.cancel(1)

        def handle(event: Any) -> None:
            if event.kind == "job_canceled":
                raise StopAsyncIteration
            seen.append(event.kind)

        with pytest.raises(StopAsyncIteration):
            follow(client, None, handle, stored.append)
        assert (seen, len(stored)) == (["job_created"], 1)


def test_the_test_of_a_handler() -> None:
    run(BLOCKS["Tests of handlers"])


def test_the_page_has_the_signature_of_each_method_and_every_field() -> None:
    table = PAGE.partition("\n## Methods\n")[2].partition("\n\nA job is named by")[0]
    cells = re.findall(r"^\| (`.*?`) \|", table, re.M)
    calls = [call for cell in cells for call in re.findall(r"`(\w+)\((.*?)\)`", cell)]
    documented = {name: parameters(eval(f"lambda self, {call}: 0")) for name, call in calls}
    assert documented == {
        name: parameters(getattr(Client, name)) for name in dir(Client) if name[0] != "_"
    }
    assert [name for name in Request.__annotations__ if f"`{name}`" not in PAGE] == []
