"""Every version that the changelog calls released is frozen here."""

from __future__ import annotations

import tomllib
from pathlib import Path

from draftsman.jobs.job import Status
from tests.docs.changelog import CHANGELOG, VERSION
from tests.upgrade.releases import UNFILLED, Release, checksums, releases

ROOT = Path(__file__).resolve().parents[2]
AGAIN = "python -m tests.upgrade.freeze VERSION --code, in a checkout of it"
CHANGED = """a migration of a released version must not change: add another; where the version is
not released yet: python -m tests.upgrade.freeze VERSION"""
UNNUMBERED = """changed functions need a new number: add a file, even one that only records itself;
where the version is not released yet: python -m tests.upgrade.freeze VERSION"""
LIMIT = 60_000
"""Maximum size of a release's data in bytes, since every clone contains it."""


def _headings() -> list[tuple[str, str]]:
    return VERSION.findall(CHANGELOG.read_text(encoding="utf-8"))


def test_every_released_version_of_the_changelog_is_frozen() -> None:
    released = {version for version, note in _headings() if note != "unreleased"}
    frozen = {r.version for r in releases() if (r.folder / "code.tar.xz").exists()}
    assert released - frozen == set(), AGAIN


def test_only_the_newest_version_is_unreleased_and_it_is_the_projects() -> None:
    versions = [version for version, _ in _headings()]
    assert [at for at, (_, note) in enumerate(_headings()) if note == "unreleased"] in ([], [0])
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    assert project["project"]["version"] == versions[0]


def test_a_migration_beyond_the_last_release_needs_an_unreleased_version() -> None:
    frozen = {name for release in releases() for name in release.manifest["migrations"]}
    new = checksums(functions=False).keys() - frozen
    assert not new or _headings()[0][1] == "unreleased", AGAIN


def test_released_migrations_are_unchanged(release: Release) -> None:
    now = checksums(functions=False)
    released = release.manifest["migrations"]
    assert {name: now.get(name) for name in released} == released, CHANGED


def test_the_data_has_every_status_and_every_table_and_is_small(release: Release) -> None:
    assert (release.folder / "data.tar.xz").stat().st_size < LIMIT
    head, *rows = release.tables["job_states"].decode().splitlines()
    at = head.split("\t").index("status")
    assert {row.split("\t")[at] for row in rows} >= set(Status)
    empty = {name for name, rows in release.tables.items() if rows.count(b"\n") < 2}
    assert empty == UNFILLED


def test_changed_functions_come_with_a_new_number(release: Release) -> None:
    """A program that does not know the number never replaces the functions of a newer one."""
    new = checksums(functions=False).keys() - release.manifest["migrations"].keys()
    assert new or checksums(functions=True) == release.manifest["functions"], UNNUMBERED
