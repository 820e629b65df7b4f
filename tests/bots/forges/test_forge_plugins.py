"""Kinds of forges of other packages, from the push of a job to an event of its pull request."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any, Final

import pytest
from pydantic import ValidationError

from draftsman import plugins
from draftsman.database.database import Connection
from draftsman.errors import Failure
from draftsman.forges.api.connection import forge_of
from draftsman.runtime import Runtime
from draftsman.settings import Settings
from draftsman.settings.forges import ForgePlugin, ForgeSettings
from draftsman_testing.factories import Factory
from draftsman_testing.forges.conversation import SECRET, deliver
from draftsman_testing.forges.gitea import FakeGitea
from draftsman_tui.cli.setup.doctor_checks import packages
from tests.bots.forges.test_receipt import receiving, stored
from tests.core.agent_runs.test_pull_requests import WORKS, submit, worker
from tests.core.forges.api_contract import ForgeHarness, forge_harness
from tests.core.worker.workers import wait_for_end, wait_for_question
from tests.support.distributions import Distribution, installed

KIND: Final = """
from draftsman.settings.forges import ForgePlugin, ForgeSettings


class AcmeSettings(ForgeSettings):
    realm: str = "public"


FORGE = ForgePlugin(
    api="acme_api:Acme",
    webhooks="acme_api",
    settings=AcmeSettings,
    compare_url=lambda repository, base, branch: f"{repository}/new?from={branch}&to={base}",
    pull_page="changes/{number}",
)
"""
API: Final = """
from draftsman_bots.forge_kinds.gitea import Gitea
from draftsman.forges.forge_event import EventKind, ForgeEvent, Notification


class Acme(Gitea):
    async def account(self):
        assert self._settings.realm == "acme"
        return await super().account()


def project_of(payload):
    return payload.get("project", "")


def is_genuine(secret, headers, body):
    return headers.get("x-acme-key") == secret


def parse(headers, payload):
    kind = EventKind(headers["x-acme-event"])
    event = ForgeEvent(kind, payload["project"], 1, "n:1", author="anna", text=payload["note"])
    return Notification(payload["project"], (event,))
"""
TABLE: Final = {"kind": "acme", "realm": "acme", "url": "https://acme.example"}


def acme(**modules: str) -> Distribution:
    """Return the package with the kind, of which other modules replace its own."""
    return Distribution(
        "acme-forge",
        "2.1",
        {"acme": "acme_forge:FORGE"},
        {"acme_forge": KIND, "acme_api": API} | modules,
        group=plugins.FORGES,
    )


@pytest.fixture
def package(tmp_path: Path) -> Iterator[None]:
    with installed(tmp_path / "packages", acme()):
        yield


@pytest.fixture
async def site(
    package: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[ForgeHarness]:
    monkeypatch.setattr(FakeGitea, "kind", "acme")
    monkeypatch.setenv("WEBHOOK_SECRET", SECRET)
    monkeypatch.setenv("OWN_SECRET", SECRET)
    async with forge_harness("gitea", tmp_path, monkeypatch) as harness:
        yield harness


async def test_work_becomes_a_pull_request_and_its_comment_an_event(
    site: ForgeHarness, rt: Runtime, make: Factory, conn: Connection
) -> None:
    number = await submit(site, rt, make)
    async with worker(site, rt, WORKS, realm="acme"):
        await wait_for_question(rt, number)
        await make.answer(number, "red")
        job = await wait_for_end(rt, number)
    assert job.pr_url == f"{site.fake.world.base}/acme/pay/pulls/1", job.last_error
    body = json.dumps({"project": "acme/pay", "note": "Name it"}).encode()
    async with receiving(site, rt) as (_, url):
        for key, status in (("wrong", 401), (SECRET, 200)):
            sent = await deliver(url, body, {"X-Acme-Key": key, "X-Acme-Event": "comment"})
            assert sent[0] == status, sent
    assert await stored(conn) == [("comment", "anna", "Name it")]


def test_a_kind_has_its_own_keys_pages_and_numbers(package: None) -> None:
    forge = ForgeSettings.of(TABLE | {"token": {"env": "T"}})
    page = forge.plugin.compare_url("https://acme.example/a/b", "main", "draftsman/D-1")
    assert page == "https://acme.example/a/b/new?from=draftsman/D-1&to=main"
    assert forge.plugin.page_of(7, "5", is_pull=True) == "changes/7#issuecomment-5"
    assert forge.plugin.page_of(7, None, is_pull=False) == "issues/7"
    for table, problem in (
        (TABLE | {"relm": 1}, "relm\n.*not permitted"),
        ({"kind": "acme", "token": {"env": "T"}}, "url is required for the kind acme"),
        (TABLE, "token is required"),
    ):
        with pytest.raises(ValidationError, match=problem):
            ForgeSettings.of(table)


@pytest.mark.parametrize(
    ("modules", "problem"),
    [
        ({"acme_forge": "import nothing_of_this_name"}, "cannot be loaded: ModuleNotFoundError"),
        ({"acme_forge": "FORGE = 1"}, "cannot be used: acme_forge:FORGE is no ForgePlugin"),
        ({"acme_api": "1 / 0"}, "cannot be loaded: ZeroDivisionError"),
    ],
)
def test_a_broken_kind_is_named_and_harms_no_other_forge(
    tmp_path: Path, modules: dict[str, str], problem: str
) -> None:
    tables: dict[str, Any] = {
        "acme": TABLE | {"token": {"env": "T"}, "events": "poll"},
        "hub": {"kind": "github", "token": {"env": "T"}, "events": "poll"},
    }
    with installed(tmp_path, acme(**modules)):
        settings = Settings(forges=tables)
        with pytest.raises(Failure, match=r"acme: forge 'acme' of acme-forge 2\.1") as refused:
            forge_of(settings, "https://acme.example/acme/pay")
        assert problem in str(refused.value)
        assert forge_of(settings, "https://github.com/acme/pay") is not None
        is_declared = "acme_api" in modules
        assert list(settings.read_forges) == (["acme", "hub"] if is_declared else ["hub"])
        findings = [(item.name, item.status) for item in packages(settings)]
        assert findings == ([] if is_declared else [("package acme-forge", "fail")])


def test_the_kinds_of_draftsman_name_what_exists() -> None:
    for plugin in plugins.installed(plugins.FORGES):
        kind = plugins.load(plugin, ForgePlugin)
        assert isinstance(plugins.load_part(plugin, kind.api), type)
        formats = plugins.load_part(plugin, kind.webhooks or "")
        for name in ("project_of", "is_genuine", "parse"):
            assert callable(getattr(formats, name))
