"""Registered repositories: added once, mapped, removed, with permission."""

from __future__ import annotations

import asyncio
from functools import partial

import pytest

from draftsman.database.database import Connection
from draftsman.errors import Conflict, DraftsmanError, NotFound, NotPermitted, UsageError
from draftsman.people import visibility
from draftsman.repos.repo_catalog import AmbiguousRepo, Repo, RepoLocation, ResolvedRepo
from draftsman.repos.repo_profile import RepoProfile, profile
from draftsman.repos.repo_url import parse
from draftsman.runtime import Runtime, wire
from draftsman_testing.people import People
from tests.support.cases import cases

PAY = Repo.at(parse("https://github.com/acme/pay"))
SHOP = Repo.at(parse("git@github.com:acme/shop.git"))
TESTED = profile(
    {
        "profile_type": "make",
        "validation_commands": [{"name": "tests", "command": ["make", "test"], "timeout": 60}],
        "env": {"MODE": "ci"},
        "path_allowlist": ["src/"],
    }
)


async def test_a_repository_is_registered_once_for_all_forms_of_its_url(
    rt: Runtime, people: People
) -> None:
    repo = await rt.repos.add(PAY, TESTED, people.olga, commit="c1", checks=[{"name": "tests"}])
    assert (repo.id is not None, repo.full_name, repo.added_by) == (True, "acme/pay", "cli:olga")
    for url in ("ssh://git@GitHub.com/Acme/PAY.git", "https://github.com:443/acme/pay/"):
        with pytest.raises(Conflict, match="is already registered"):
            await rt.repos.add(Repo.at(parse(url)), TESTED, people.olga)
        assert await rt.repos.known(url) == repo
    [saved] = await rt.repos.profiles(repo)
    assert (saved.profile, saved.checked_commit, saved.checks) == (
        TESTED,
        "c1",
        [{"name": "tests"}],
    )
    other = await rt.repos.add(PAY, RepoProfile(path="services/api"), people.olga)
    assert other == repo
    assert [stored.profile.path for stored in await rt.repos.profiles(repo)] == ["", "services/api"]


async def test_concurrent_additions_create_one_repository(rt: Runtime, people: People) -> None:
    adding = [rt.repos.add(PAY, TESTED, people.olga) for _ in range(5)]
    results = await asyncio.gather(*adding, return_exceptions=True)
    assert sum(isinstance(result, Repo) for result in results) == 1
    assert {type(result) for result in results} == {Repo, Conflict}


async def test_labels_and_the_default(rt: Runtime, people: People) -> None:
    pay = await rt.repos.add(PAY, TESTED, people.olga)
    shop = await rt.repos.add(SHOP, TESTED, people.olga)
    await rt.repos.map(RepoLocation(shop), people.olga, label_id="L1", label="Money")
    await rt.repos.map(RepoLocation(pay), people.olga, label_id="L1", label="Money")
    resolved = await rt.repos.resolve(labels=[("L1", "Money")])
    assert isinstance(resolved, ResolvedRepo)
    assert (resolved.repo, resolved.method) == (pay, "label_id")
    await rt.repos.map(RepoLocation(shop), people.olga, label="money")
    unsure = await rt.repos.resolve(labels=[("L2", "MONEY")])
    assert isinstance(unsure, AmbiguousRepo)
    assert {place.repo for place in unsure.choices} == {pay, shop}
    assert await rt.repos.unmap("MONEY", people.olga, shop) == 1
    assert await rt.repos.unmap("L1", people.olga) == 1
    with pytest.raises(NotFound, match="no mapping of label 'L1'"):
        await rt.repos.unmap("L1", people.olga)
    for repo in (pay, shop):
        await rt.repos.set_default(repo, people.olga)
    resolved = await rt.repos.resolve()
    assert isinstance(resolved, ResolvedRepo)
    assert (resolved.repo.full_name, resolved.method, resolved.confidence) == (
        "acme/shop",
        "default",
        0.5,
    )
    await rt.repos.set_default(None, people.olga)
    with pytest.raises(NotFound, match="no default"):
        await rt.repos.set_default(None, people.olga)


async def test_a_repository_is_removed_with_its_labels_and_profiles(
    rt: Runtime, people: People, conn: Connection
) -> None:
    pay = await rt.repos.add(PAY, TESTED, people.olga)
    await rt.repos.map(RepoLocation(pay), people.olga, label="pay")
    await rt.repos.remove(pay, people.olga)
    for table in ("repos", "repo_mappings", "repo_profiles"):
        rows = await (await conn.execute(f"SELECT count(*) FROM draftsman.{table}")).fetchone()
        assert rows == (0,), table
    for removed_call in (rt.repos.remove(pay, people.olga), rt.repos.set_default(pay, people.olga)):
        with pytest.raises(NotFound, match="is no longer registered"):
            await removed_call
    with pytest.raises(NotFound, match="unknown repository 'acme/pay'; known: none"):
        await rt.repos.place("acme/pay")


async def test_only_operators_can_change_repositories(rt: Runtime, people: People) -> None:
    pay = await rt.repos.add(PAY, TESTED, people.olga)
    for actor in (people.anna, people.mallory):
        for change in (
            rt.repos.add(SHOP, TESTED, actor),
            rt.repos.save_profile(pay, TESTED, actor),
            rt.repos.checked(pay, "", "c", [], actor),
            rt.repos.map(RepoLocation(pay), actor, label="x"),
            rt.repos.unmap("x", actor),
            rt.repos.set_default(pay, actor),
            rt.repos.remove(pay, actor),
        ):
            with pytest.raises(NotPermitted, match="may not change repositories"):
                await change


@pytest.mark.parametrize(
    "url", ["https://t0ken@github.com/a/b", "https://u:pw@github.com/a/b", "ssh://git:pw@host/a/b"]
)
async def test_the_database_stores_no_secret(
    rt: Runtime, people: People, conn: Connection, url: str
) -> None:
    with pytest.raises(UsageError, match="may not contain a password"):
        await rt.repos.add(Repo(None, "github.com", "a", "b", url), TESTED, people.olga)
    insert = "INSERT INTO draftsman.repos (name, remote_url, added_by) VALUES ('b', %s, 'x')"
    with pytest.raises(Exception, match="repos_no_secret"):
        await conn.execute(insert, (url,))


def _evidence(**fields: object) -> dict[str, object]:
    return {"evidence": {"test": ["jest", "{files}"], **fields}}


@cases(
    ("fields", "message"),
    [
        ({"path": "../x"}, "a folder inside the repository"),
        ({"path": "/etc"}, "a folder inside the repository"),
        ({"path": "a/.git/hooks"}, "a folder inside the repository"),
        ({"env": {"GITHUB_TOKEN": "x"}}, "GITHUB_TOKEN looks like a secret"),
        ({"env": {"a b": "x"}}, "is not a variable name"),
        ({"validation": []}, "unknown key; allowed: "),
        ({"validation_commands": [{"name": "x", "command": "make test"}]}, "command"),
        ({"validation_commands": [{"name": "x", "command": ["a"]}] * 2}, "the same name"),
        ({"max_iterations": 0}, "max_iterations"),
        ({"budget": {"cost_usd": -1}}, "budget.cost_usd"),
        ({"evidence": {"test": ["jest"]}}, "evidence.test: must have the word {files}"),
        (_evidence(tests=1), "evidence.tests: unknown key; allowed: test, files, support"),
        (_evidence(coverage={"command": ["c"], "report": "../x"}), "a path in the folder"),
        (
            _evidence(coverage={"command": ["c"], "min": 1}),
            "evidence.coverage.min: unknown key; allowed: command, report, minimum, timeout",
        ),
    ],
)
def test_an_invalid_profile_is_refused_in_one_line(fields: dict[str, object], message: str) -> None:
    with pytest.raises(UsageError) as refused:
        profile(fields)
    assert message in str(refused.value)
    assert "\n" not in str(refused.value)


async def test_a_name_of_several_is_refused_with_their_hosts(rt: Runtime, people: People) -> None:
    await rt.repos.add(PAY, TESTED, people.olga)
    await rt.repos.add(Repo.at(parse("https://git.corp/acme/pay")), TESTED, people.olga)
    with pytest.raises(DraftsmanError, match=r"git\.corp/acme/pay, github\.com/acme/pay"):
        await rt.repos.place("pay")
    assert (await rt.repos.place("git.corp/acme/pay")).repo.host == "git.corp"


async def test_a_change_is_seen_at_once_here_and_by_a_second_look_elsewhere(
    rt: Runtime, people: People
) -> None:
    elsewhere = wire(rt.settings, rt.db, False).repos
    olga = people.olga
    pay = await rt.repos.add(PAY, TESTED, olga)
    for change in (
        partial(rt.repos.add, SHOP, TESTED, olga),
        partial(rt.repos.save_profile, pay, RepoProfile(path="a"), olga),
        partial(rt.repos.checked, pay, "", "c2", [], olga),
        partial(rt.repos.map, RepoLocation(pay), olga, label_id="L1"),
        partial(rt.repos.unmap, "L1", olga),
        partial(rt.repos.set_default, pay, olga),
        partial(rt.repos.remove, pay, olga),
    ):
        known = await rt.repos.catalog(age=60)
        before = await elsewhere.catalog(age=60)
        await change()
        assert await rt.repos.catalog(age=60) is not known, change
        assert await elsewhere.catalog(age=60) is before, change
        now = await elsewhere.catalog(age=0)
        assert now is not before, change
        assert now == await rt.repos.catalog(), change


async def test_an_unchanged_catalog_is_not_read_again(rt: Runtime, people: People) -> None:
    await rt.repos.add(PAY, TESTED, people.olga)
    catalog = await rt.repos.catalog()
    assert await rt.repos.catalog(age=0) is catalog


async def test_a_name_is_looked_up_again_before_it_is_refused(rt: Runtime, people: People) -> None:
    elsewhere = wire(rt.settings, rt.db, False).repos
    await elsewhere.catalog()
    pay = await rt.repos.add(PAY, TESTED, people.olga)
    assert (await elsewhere.place("pay")).repo == pay


async def test_each_viewer_sees_the_changes_of_another_at_once(rt: Runtime, people: People) -> None:
    viewers = [rt.seen_by(actor).repos for actor in (people.olga, people.anna)]
    pay = await rt.repos.add(PAY, TESTED, people.olga)
    assert [(await viewer.catalog(age=60)).repos for viewer in viewers] == [[pay]] * 2
    await viewers[0].remove(pay, people.olga)
    assert [(await viewer.catalog(age=60)).repos for viewer in viewers] == [[]] * 2


async def test_a_viewer_sees_no_hidden_repository_in_the_common_catalog(
    rt: Runtime, people: People, monkeypatch: pytest.MonkeyPatch
) -> None:
    pay = await rt.repos.add(PAY, TESTED, people.olga)
    shop = await rt.repos.add(SHOP, TESTED, people.olga)
    monkeypatch.setattr(
        visibility, "visible_repos", lambda viewer: ["pay"] if viewer == people.anna else None
    )
    assert (await rt.seen_by(people.anna).repos.catalog()).repos == [pay]
    assert {*(await rt.seen_by(people.olga).repos.catalog()).repos} == {pay, shop}


async def test_requests_that_meet_read_the_catalog_once(rt: Runtime, people: People) -> None:
    await rt.repos.add(PAY, TESTED, people.olga)
    first, *others = await asyncio.gather(*(rt.repos.catalog() for _ in range(20)))
    assert all(catalog is first for catalog in others)
