"""Configured handlers, and errors of handlers that cannot be loaded."""

from __future__ import annotations

from pathlib import Path

import pytest

from draftsman.errors import ConfigError
from draftsman.handlers import registry
from draftsman.jobs.retries import BUILT_IN
from draftsman.runtime import Runtime
from draftsman_testing.factories import Factory
from tests.core.worker.workers import running_worker, runtime_with, wait_for_end
from tests.support.cases import cases

MODULE = """
from draftsman import Done, RunContext
async def greet(ctx: RunContext) -> Done:
    return Done({"hello": ctx.job.payload["name"]})
async def shadow(ctx): return Done({})
def plain(ctx): return Done({})
VALUE = 3
class Group:
    async def method(ctx): return Done({})
"""


@pytest.fixture(autouse=True)
def modules(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Put modules on the path: a valid module, and modules that cannot be imported."""
    (tmp_path / "my_handlers.py").write_text(MODULE)
    (tmp_path / "my_broken.py").write_text("raise RuntimeError('no\\nway')\n")
    (tmp_path / "my_typo.py").write_text("def (:\n")
    (tmp_path / "my_exit.py").write_text("import sys\nsys.exit('bye')\n")
    monkeypatch.syspath_prepend(tmp_path)


def test_built_in_types_need_no_configuration() -> None:
    assert registry.load({}).keys() == BUILT_IN.keys()


@cases("name", BUILT_IN)
async def test_a_built_in_handler_is_found_at_its_first_job(name: str) -> None:
    """Its module is imported then, and the handler gets the context, which is wrong here."""
    with pytest.raises(AttributeError, match="'NoneType' object has no attribute"):
        await registry.load({})[name](None)  # type: ignore[arg-type]


async def test_a_configured_handler_runs_its_type(rt: Runtime, make: Factory) -> None:
    handlers = registry.load({"greet:daily": "my_handlers:greet"})
    assert handlers.keys() == registry.BUILT_IN.keys() | {"greet:daily"}
    number = await make.queued(type="greet:daily", queue="default", payload={"name": "Anna"})
    async with running_worker(runtime_with(rt), handlers):
        assert (await wait_for_end(rt, number)).result == {"hello": "Anna"}


def test_a_built_in_type_may_be_replaced() -> None:
    replaced = registry.load({"run_agent": "my_handlers:shadow"})["run_agent"]
    assert replaced is not registry.BUILT_IN["run_agent"]


@cases(
    ("path", "expected"),
    [
        ("my_handlers", "'my_handlers' is not a handler path; use package.module:function"),
        ("my_handlers:", "'my_handlers:' is not a handler path; use package.module:function"),
        (":greet", "':greet' is not a handler path; use package.module:function"),
        ("no_such_module:f", "cannot import no_such_module:f: No module named"),
        ("my_handlers:nobody", "has no attribute 'nobody'"),
        ("my_broken:f", "cannot import my_broken:f: no way"),
        ("my_typo:f", "cannot import my_typo:f: "),
        ("my_exit:f", "cannot import my_exit:f: bye"),
        ("..my:f", "cannot import ..my:f: "),
        ("my_handlers:plain", "must be an async function with one parameter, the context"),
        ("my_handlers:VALUE", "must be an async function with one parameter, the context"),
        ("my_handlers:Group", "must be an async function with one parameter, the context"),
    ],
)
def test_an_invalid_handler_path_is_a_single_line_error(path: str, expected: str) -> None:
    with pytest.raises(ConfigError) as raised:
        registry.load({"report:weekly": path})
    message = str(raised.value)
    assert message.startswith("handlers.report:weekly")
    assert expected in message
    assert "\n" not in message
