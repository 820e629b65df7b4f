"""The people who own the changed code, by CODEOWNERS of the base commit."""

from __future__ import annotations

import subprocess
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from draftsman.agent_runs.policy_check import owners_of_changes

OWNERS = "* @org/all\n/pay/ @ben\n*.sql dba@example.org\n"
PEOPLE = {"@org/all": "leads", "@ben": "ben", "dba@example.org": "carol"}
PATCH = """\
diff --git a/pay/api.py b/pay/api.py
--- a/pay/api.py
+++ b/pay/api.py
@@ -1 +1 @@
-old
+new
diff --git a/schema/one.sql b/schema/one.sql
--- a/schema/one.sql
+++ b/schema/one.sql
@@ -1 +1 @@
-old
+new
"""


def _git(folder: Path, *args: str) -> str:
    identity = ("-c", "user.name=Test", "-c", "user.email=test@example.org")
    done = subprocess.run(
        ["git", *identity, *args], cwd=folder, check=True, capture_output=True, text=True
    )
    return done.stdout.strip()


@pytest.mark.parametrize(
    ("patch", "uses_owners", "owners"),
    [(PATCH, True, ["ben", "carol"]), ("", True, ["leads"]), (PATCH, False, [])],
)
async def test_owners_of_the_changes_or_of_all_files(
    tmp_path: Path, patch: str, uses_owners: bool, owners: list[str]
) -> None:
    (tmp_path / "CODEOWNERS").write_text(OWNERS, encoding="utf-8")
    _git(tmp_path, "init", "-q")
    _git(tmp_path, "add", ".")
    _git(tmp_path, "commit", "-qm", "owners")
    ladders = SimpleNamespace(uses_owners=uses_owners)
    services = SimpleNamespace(asking=SimpleNamespace(ladders=ladders))
    run = SimpleNamespace(services=services, settings=SimpleNamespace(codeowners=PEOPLE))
    workspace = SimpleNamespace(mirror=tmp_path, base_sha=_git(tmp_path, "rev-parse", "HEAD"))

    async def changes() -> bytes:
        return patch.encode()

    found = await owners_of_changes(cast(Any, run), cast(Any, workspace), changes)
    assert found == owners
