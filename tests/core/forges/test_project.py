"""Repositories on forges, and states of checks."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from draftsman.forges.checks import CheckState, check_of, overall
from draftsman.forges.project import Project, find_project, is_page_of, web_url_of
from draftsman.settings import settings_model
from draftsman.settings.forges import ForgeSettings
from draftsman_bots.forge_kinds.gitea import Gitea
from draftsman_bots.forge_kinds.github import GitHub
from draftsman_bots.forge_kinds.gitlab import GitLab
from draftsman_bots.forge_kinds.plugin import GITHUB as GITHUB_KIND
from draftsman_bots.forge_kinds.plugin import GITLAB as GITLAB_KIND
from tests.support.cases import cases

GITHUB = "https://github.com"
PORT = "https://git.example.org:8443"
PREFIX = "https://example.org/gitea"


@cases(
    ("forge", "source", "path", "takes_token"),
    [
        (GITHUB, "https://github.com/acme/pay", "acme/pay", True),
        (GITHUB, "https://GitHub.com/acme/pay.git/", "acme/pay", True),
        (GITHUB, "http://github.com/acme/pay", "acme/pay", False),
        (GITHUB, "git@github.com:acme/pay.git", "acme/pay", False),
        (GITHUB, "ssh://git@github.com:2222/team/sub/pay", "team/sub/pay", False),
        (GITHUB, "https://github.com.example/acme/pay", None, False),
        (GITHUB, "https://github.com:8443/acme/pay", None, False),
        (GITHUB, "https://github.com/pay", None, False),
        (GITHUB, "/srv/github.com/acme/pay", None, False),
        (GITHUB, "nonsense::", None, False),
        (PORT, "https://git.example.org:8443/acme/pay", "acme/pay", True),
        (PORT, "https://git.example.org/acme/pay", None, False),
        (PORT, "git@git.example.org:acme/pay", "acme/pay", False),
        (PREFIX, "https://example.org/gitea/acme/pay", "acme/pay", True),
        (PREFIX, "https://example.org/acme/pay", None, False),
        (PREFIX, "https://example.org/gitea/pay", None, False),
        (PREFIX, "git@example.org:acme/pay", "acme/pay", False),
    ],
)
def test_a_repository_is_matched_by_its_host(
    forge: str, source: str, path: str | None, takes_token: bool
) -> None:
    found = find_project(forge, source)
    assert (found and found.path) == path
    assert (found is not None and found.takes_token) == takes_token


@cases(
    ("source", "url", "own"),
    [
        ("https://github.com/acme/pay", "https://github.com/acme/pay/pull/7", True),
        ("git@github.com:acme/pay.git", "https://GitHub.com/Acme/Pay/pull/7", True),
        ("https://git.example.org:8443/a/b/c", "https://git.example.org:8443/a/b/c/-/x", True),
        ("https://github.com/acme/pay", "https://github.com/acme/payment/pull/7", False),
        ("https://github.com/acme/pay", "https://github.com/acme/pay", False),
        ("https://github.com/acme/pay", "https://github.com.evil.example/acme/pay/pull/7", False),
        ("https://github.com/acme/pay", "https://github.com:444/acme/pay/pull/7", False),
        ("https://github.com/acme/pay", "https://github.com@evil.example/acme/pay/1", False),
        ("https://github.com/acme/pay", "https://github.com/acme/pay/../../evil/x", False),
        ("https://github.com/acme/pay", "https://github.com/acme/pay/%2e%2e/%2E%2E/evil", False),
        ("https://github.com/acme/pay", "https://github.com\\@evil.example/acme/pay/1", False),
        ("https://github.com/acme/pay", "javascript://github.com/acme/pay/1", False),
    ],
)
def test_a_page_of_a_repository_has_its_host_and_path(source: str, url: str, own: bool) -> None:
    assert is_page_of(web_url_of(source) or "", url) == own


def test_a_folder_has_no_pages() -> None:
    assert web_url_of("/srv/github.com/acme/pay") is None


def test_urls_of_apis_and_of_new_pull_requests() -> None:
    assert GitHub.api_url(GITHUB) == "https://api.github.com"
    assert GitHub.api_url("https://acme.ghe.com") == "https://api.acme.ghe.com"
    assert GitHub.api_url(PORT) == f"{PORT}/api/v3"
    assert GitLab.api_url(PORT) == f"{PORT}/api/v4"
    assert Gitea.api_url(PREFIX) == f"{PREFIX}/api/v1"
    project = Project("acme", "pay", GITHUB, takes_token=True).url
    assert GITHUB_KIND.compare_url(project, "main", "draftsman/D-1") == (
        "https://github.com/acme/pay/compare/main...draftsman/D-1"
    )
    assert GITLAB_KIND.compare_url(project, "main", "draftsman/D-1").endswith(
        "/-/merge_requests/new?merge_request%5Bsource_branch%5D=draftsman%2FD-1"
    )


@cases(
    ("word", "state"),
    [
        ("success", "passed"), ("neutral", "passed"), ("skipped", "passed"), (None, "pending"),
        ("queued", "pending"), ("running", "pending"), ("manual", "pending"),
        ("failure", "failed"), ("failed", "failed"), ("timed_out", "failed"),
        ("action_required", "no_result"), ("canceled", "no_result"), ("cancelled", "no_result"),
        ("canceling", "pending"), ("a new word", "failed"),
    ],
)  # fmt: skip
def test_an_unknown_state_of_a_check_is_not_green(word: str | None, state: str) -> None:
    assert check_of("x", word).state == state


def test_all_checks_have_to_pass() -> None:
    checks = [check_of(name, word) for name, word in (("a", "success"), ("b", "queued"))]
    assert overall(checks[:1]) == (CheckState.PASSED, "1 check passed")
    assert overall(checks) == (CheckState.PENDING, "b not finished")
    canceled = [check_of("c", "cancelled")]
    assert overall(checks + canceled) == (CheckState.NO_RESULT, "c ended without a result")
    failed = [check_of(f"c{number}", "failure") for number in range(5)]
    assert overall(checks + failed) == (CheckState.FAILED, "c0, c1, c2 and 2 more failed")


@cases(
    ("table", "problem"),
    [
        ({"kind": "bitbucket"}, "known: .*github"),
        ({"kind": "gitea", "token": {"env": "T"}}, "url is required for the kind gitea"),
        ({"kind": "github"}, "specify token, or app_id and private_key"),
        ({"kind": "github", "token": "ghp_1"}, "must be a reference"),
        ({"kind": "github", "app_id": 7}, "app_id requires private_key"),
        (
            {"kind": "gitlab", "app_id": 7, "private_key": {"env": "K"}},
            "app_id\n.*not permitted",
        ),
        (
            {"kind": "github", "token": {"env": "T"}, "installation": 5},
            "private_key and installation require app_id",
        ),
        ({"kind": "github", "token": {"env": "T"}, "reviewers": ["@anna"]}, "must be a login"),
        (
            {"kind": "github", "token": {"env": "T"}, "issue_label": "bug"},
            'issue_label needs events = "poll" or "webhook"',
        ),
        (
            {"kind": "github", "token": {"env": "T"}, "body": "{requst}"},
            "unknown field {requst}; fields: job, title, requester, draft, request",
        ),
    ],
)
def test_a_table_that_cannot_work_is_refused(table: dict[str, object], problem: str) -> None:
    with pytest.raises(ValidationError, match=problem):
        ForgeSettings.of(table)
    app = {"kind": "github", "app_id": 7, "private_key": {"env": "K"}}
    assert ForgeSettings.of(app).url == "https://github.com"


def test_the_names_of_forges_differ_in_more_than_case() -> None:
    """Logins of people name them in lower case: `Work:anna` would be the login of another forge."""
    forges = {
        name: {"kind": "gitea", "url": f"https://{name}.example", "token": {"env": "T"}}
        for name in ("work", "Work1")
    }
    with pytest.raises(ValidationError, match=r"forges\.Work1: use lower-case letters"):
        settings_model().model_validate({"forges": forges})
