"""Long, malformed or secret input: bounded time, one clear line, and no secret in it."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest

from draftsman.agent_runs.validation.commands import SUMMARY_LINE
from draftsman.errors import ConfigError, DraftsmanError, UsageError
from draftsman.forges.body import find_issues
from draftsman.forges.checks import relevant_part
from draftsman.forges.project import Project
from draftsman.jobs.requests import payloads as job_payloads
from draftsman.log import redact
from draftsman.repos.repo_catalog import Catalog, resolve
from draftsman.repos.repo_url import (
    check_secret,
    find_repo_urls,
    is_folder,
    is_repo_url,
    parse,
)
from draftsman.settings import load, settings_model
from draftsman_bots.conversation import parser, requests
from draftsman_bots.slack.payloads import payloads as incoming_text
from tests.support.cases import cases


def named(text: str) -> None:
    """Look up a repository by an invalid name."""
    with pytest.raises(DraftsmanError) as refused:
        resolve(Catalog([]), explicit=text)
    assert len(str(refused.value)) < 400


READERS: dict[str, Callable[[str], object]] = {
    "a repository's name": named,
    "an address": lambda text: is_repo_url(text) or is_folder(text),
    "a secret in an address": lambda text: check_secret(f"/{text}".replace("@", "")),
    "mentions": lambda text: list(find_repo_urls(text)),
    "redact": redact,
    "a tally": SUMMARY_LINE.search,
    "a text for the bot": lambda text: parser.parse(text, parser.FORGE, name="draftsman"),
    "options": lambda text: requests.read_request("fix", f"it {text}"),
    "a picture": lambda text: parser._PICTURE.sub("", text),
    "issues": lambda text: find_issues(text, Project("a", "x", "https://a.example", True)),
    "a CI log": relevant_part,
    "a link": lambda text: incoming_text._URL.sub("", text),
}
PIECES = (
    *("a", "x@", " ", "![", "[](", "1 ", "1", "://", "a:", "<http:", "password=", "D-1/", "%"),
    *("a/", "\x1b]", "section_start:"),
)


@pytest.mark.parametrize("reader", READERS)
def test_time_grows_with_the_length_and_not_with_its_square(reader: str) -> None:
    read = READERS[reader]
    for piece in PIECES:
        short, long = (piece * (size // len(piece)) for size in (4_000, 64_000))
        limit = 0.02 + 64 * min(_seconds(read, short) for _ in range(3))
        # 16 times the text: quadratic is 256 times
        assert any(_seconds(read, long) < limit for _ in range(3)), piece


def _seconds(read: Callable[[str], object], text: str) -> float:
    began = time.process_time()
    read(text)
    return time.process_time() - began


SECRETS = [
    "https://u:s3cret%zz@h/a/b",
    "https://u:s3c/ret@h/a/b",
    "https://u:s3c#ret@h/a/b",
    "https://u:s3c?ret@h/a/b",
    "https://u:s3c ret@h/a/b",
    "https://u:s3c@ret@h/a/b",
    "https://u%3As3cret@h/a/b",
    "https:/u:s3cret@h/a",
    "https:///u:s3cret@h/a",
    "//u:s3cret@h/a/b",
    "ssh://u:s3c/ret@h/a/b",
    "u:s3cret%@h:a/b",
    "u:s3c ret@h:a/b",
]


@cases("url", SECRETS)
def test_no_spelling_of_a_password_is_stored(url: str) -> None:
    with pytest.raises(UsageError, match="may not contain a password"):
        check_secret(url)


@cases(
    "url",
    [
        "https://h:8443/a@b/c",
        "https://h/a@b",
        "https://[::1]:8443/a@b",
        "ssh://git@h:22/a/b",
        "git@h:a/b",
        "git@[::1]:a/b@c",
        "/home/a:b@c/pay",
        "./a@b",
    ],
)
def test_text_without_a_password_is_not_redacted(url: str) -> None:
    check_secret(url)


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://u:s3cret%zz@localhost/db",
        "postgresql://u:s3c%ret@localhost:1/db",
        "postgresql://u:s3c ret@localhost:1/db",
        "postgresql://u:s3c@ret@localhost:1/db",
        "postgresql://u:s3c/ret@localhost:1/db",
        "postgresql://localhost:1/db?password=s3c%zzret",
    ],
)
def test_a_database_url_that_is_not_encoded_is_refused_without_the_password(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DRAFTSMAN_DATABASE_URL", url)
    with pytest.raises(ConfigError, match="percent-encoded") as refused:
        load()
    assert "s3c" not in str(refused.value)
    assert "ret" not in str(refused.value).replace("secret", "")


@cases(
    "url",
    [
        "postgresql://u:s%2Fc@localhost/db",
        "postgresql://localhost/db?options=-c%20a=b",
        "postgresql://u@h1:1,h2:2/db",
        "postgresql:///db?host=/tmp/a@b",
        "host=localhost password='a b'",
    ],
)
def test_a_database_url_that_is_encoded_is_accepted(url: str) -> None:
    assert settings_model().model_validate({"database_url": url}).database_url is not None


def test_a_repository_url_is_parsed() -> None:
    assert parse("https://h:8443/acme/pay").host == "h:8443"


@cases(
    "text",
    [
        "cat: '/etc/passwd': Permission denied",
        "cannot open 'passwd': No such file",
        "[Errno 13] Permission denied: '/etc/passwd'",
        "unknown key 'token'; allowed: a",
        "it has 'secret' and 'password': both are wrong",
    ],
)
def test_text_that_only_mentions_a_secret_is_not_redacted(text: str) -> None:
    assert redact(text) == text


@cases(
    "text",
    [
        '{"db_password": "s3cret"}',
        "{'token': 's3cret', 'a': 1}",
        '"api-key" : "s3cret"',
        "password=s3cret",
        "passwd = 's3cret'",
        "postgresql://u:s3c'ret@h/db".replace("s3c'ret", "s3cret'x"),
        '{"secret": 331}'.replace("331", "3310"),
    ],
)
def test_a_secret_is_redacted(text: str) -> None:
    redacted = redact(text)
    assert "***" in redacted
    assert "s3cret" not in redacted


CREDENTIALS = """
    PRIVATE-TOKEN X-Api-Key Authorization Cookie X-Auth-Token Proxy-Authorization X-Vault-Token JWT
    X-GitHub-Token X-Secret X-Amz-Security-Token apikey X-Access-Key Ocp-Apim-Subscription-Key
    X-Session-Id X-CSRF-Token Job-Token X-Password
"""
PLAIN = "Accept Content-Type X-Request-Id X-Routing-Key If-Match X-Author X-Keyboard"


@cases("name", CREDENTIALS.split())
def test_a_header_with_a_credential_is_refused(name: str) -> None:
    with pytest.raises(UsageError, match=r"is stored and may not contain .*; use a credential"):
        job_payloads.parse("http_request", {"url": "https://h/", "headers": {name: "s3cret"}})


@pytest.mark.parametrize("value", ["Bearer abcdefghijkl", "ghp_abcdefghijkl", "https://u:p@h/"])
def test_a_credential_in_another_header_is_refused(value: str) -> None:
    with pytest.raises(UsageError, match="use a credential") as refused:
        job_payloads.parse("http_request", {"url": "https://h/", "headers": {"X-Other": value}})
    assert value not in str(refused.value)


@cases("name", PLAIN.split())
def test_other_headers_are_accepted(name: str) -> None:
    job_payloads.parse("http_request", {"url": "https://h/", "headers": {name: "a"}})
