"""Constraints of the tables of repositories."""

from __future__ import annotations

from typing import Final

import pytest

from draftsman.database.database import Connection
from tests.support.cases import cases
from tests.support.statements import CHECK, refused, run

REPOS: Final = [
    ({"name": "''"}, "repos_name_check"),
    ({"remote_url": "''"}, "repos_remote_url_check"),
    ({"default_branch": "''"}, "repos_default_branch_check"),
    ({"remote_url": "'ssh://ann:secret@git.example/acme/pay'"}, "repos_no_secret"),
    ({"remote_url": "'HTTPS://secret@git.example/acme/pay'"}, "repos_no_secret"),
]
MAPPINGS: Final = [
    ({"label_id": "NULL"}, "repo_mappings_label"),
    ({"label_id": "''"}, "repo_mappings_label_id_check"),
    ({"label_name": "''"}, "repo_mappings_label_name_check"),
]
PROFILES: Final = [
    ({"max_iterations": "0"}, "repo_profiles_max_iterations_check"),
    ({"max_runtime_seconds": "0"}, "repo_profiles_max_runtime_seconds_check"),
    ({"max_files_changed": "0"}, "repo_profiles_max_files_changed_check"),
    ({"max_loc_delta": "0"}, "repo_profiles_max_loc_delta_check"),
    ({"evidence": "'[]'"}, "repo_profiles_evidence_check"),
    ({"ladders": "'[]'"}, "repo_profiles_ladders_check"),
    ({"policy": "'[]'"}, "repo_profiles_policy_check"),
    ({"git": "'[]'"}, "repo_profiles_git_check"),
    ({"network": "'1'"}, "repo_profiles_network_check"),
    ({"agent_config": "'{}'"}, "repo_profiles_agent_config_check"),
    ({"check_files": "'{}'"}, "repo_profiles_check_files_check"),
    ({"ordinary_files": "'{}'"}, "repo_profiles_ordinary_files_check"),
    ({"left_out": "'never'"}, "repo_profiles_left_out_check"),
    ({"checked_at": "now()"}, "repo_profiles_checked"),
]
CATALOG: Final = [({"single": "false"}, "repo_catalog_single_check")]
TABLES: Final = (REPOS, MAPPINGS, PROFILES, CATALOG)
REPO: Final = {
    "name": "'pay'",
    "remote_url": "'https://git.example/acme/pay'",
    "added_by": "'anna'",
}


@cases(("wrong", "constraint"), REPOS)
async def test_a_repository_has_valid_columns(
    conn: Connection, wrong: dict[str, str], constraint: str
) -> None:
    async with refused(CHECK, f'"{constraint}"'):
        await run(conn, _insert("repos", REPO | wrong))


@pytest.mark.parametrize(("wrong", "constraint"), MAPPINGS)
async def test_a_label_mapping_has_valid_columns(
    conn: Connection, wrong: dict[str, str], constraint: str
) -> None:
    columns = {"label_id": "'L'", "added_by": "'anna'"} | wrong
    await _refused(conn, "repo_mappings", columns, constraint)


@pytest.mark.parametrize(("wrong", "constraint"), PROFILES)
async def test_a_profile_has_valid_columns(
    conn: Connection, wrong: dict[str, str], constraint: str
) -> None:
    await _refused(conn, "repo_profiles", {"updated_by": "'anna'"} | wrong, constraint)


@cases(("wrong", "constraint"), CATALOG)
async def test_the_catalog_has_one_version(
    conn: Connection, wrong: dict[str, str], constraint: str
) -> None:
    async with refused(CHECK, f'"{constraint}"'):
        await run(conn, _insert("repo_catalog", wrong))


async def _refused(conn: Connection, table: str, columns: dict[str, str], constraint: str) -> None:
    await run(conn, _insert("repos", REPO))
    columns |= {"repo": "(SELECT id FROM draftsman.repos)"}
    async with refused(CHECK, f'"{constraint}"'):
        await run(conn, _insert(table, columns))


def _insert(table: str, columns: dict[str, str]) -> str:
    names = ", ".join(columns)
    values = ", ".join(columns.values())
    return f"INSERT INTO draftsman.{table} ({names}) VALUES ({values})"
