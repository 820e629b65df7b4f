"""The contract of the events of forges: polls and webhooks give the same events."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from draftsman.errors import Failure
from draftsman.forges.checks import CheckState
from draftsman.forges.forge_event import EventKind, ForgeEvent
from draftsman.forges.webhooks import Webhooks
from draftsman_bots.forge_kinds import gitea as gitea_reader
from draftsman_testing.forges.conversation import (
    SECRET,
    GiteaPayloads,
    Payloads,
    gitea_webhook,
    github_webhook,
    gitlab_webhook,
)
from draftsman_testing.forges.event_routes import GitLabEvents
from tests.core.forges.api_contract import BRANCH, COMMITS, ForgeHarness, forge_harness

K = EventKind
LOG = (
    "2026-01-02T03:04:05.1234567Z ##[group]Run make\n" * 200
    + "2026-01-02T03:04:06.0000000Z E   assert 1 == 2\n"
    + "\x1b[31mFAILED tests/test_a.py::test_count\x1b[0m\n"
)


@pytest.fixture(params=["github", "gitlab", "gitea"])
async def site(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[ForgeHarness]:
    async with forge_harness(request.param, tmp_path, monkeypatch) as harness:
        yield harness


def sent(site: ForgeHarness, shown: Payloads) -> list[tuple[bytes, dict[str, str]]]:
    """Return the webhooks about all that people wrote."""
    talk = site.fake.world.talk
    kind = site.fake.kind
    found = []
    for item in talk.comments:
        if kind == "gitlab":
            note = GitLabEvents(site.fake).note(item)
            note |= {"note": note.pop("body"), "noteable_type": "MergeRequest"}
            note["author_id"] = site.fake.world.account_id(item.author)
            body: dict[str, Any] = {
                "object_attributes": note | {"discussion_id": f"{item.id:040x}"},
                "user": {
                    "id": site.fake.world.account_id(item.author),
                    "username": item.author,
                },
                "merge_request": {"iid": item.number},
                "project": {"path_with_namespace": "Acme/pay"},
            }
            found.append(gitlab_webhook("Note Hook", body))
            continue
        body = {"action": "created", "comment": shown.comment(item)}
        body["repository"] = shown.repository
        event = "pull_request_review_comment" if item.path else "issue_comment"
        about = "pull_request" if item.path else "issue"
        body |= {about: {"number": item.number} | ({} if item.path else {"pull_request": {}})}
        found.append((gitea_webhook if kind == "gitea" else github_webhook)(event, body))
    for review in talk.reviews if kind == "github" else ():
        body = {"action": "submitted", "review": shown.review(review, upper=False)}
        body |= {"pull_request": {"number": review.number}, "repository": shown.repository}
        found.append(github_webhook("pull_request_review", body))
    return found


def of(events: list[ForgeEvent], *kinds: EventKind) -> list[ForgeEvent]:
    """Return the events of these kinds."""
    return [event for event in events if event.kind in kinds]


async def test_polls_and_webhooks_report_the_same_events(
    site: ForgeHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gitea_reader, "CHECKING", 0.0)
    world = site.fake.world
    kind = site.fake.kind
    head = site.push()
    opened = await site.open(head)
    talk = world.talk
    number = opened.pull.number
    talk.comment(number, "anna", "/draftsman use red\r\nplease")
    if kind != "gitlab":  # where a review has no text of its own
        talk.review(number, "ben", "changes_requested", "Not yet", a_txt="Name it")
    else:
        talk.comment(number, "ben", "Name it", path="a.txt", line=1)
    world.checks.append({"name": "tests", "state": "failed", "commit": head})
    world.checks.append({"name": "lint", "state": "passed", "commit": head})
    no_result = "warning" if kind == "gitea" else "canceled"
    world.checks.append({"name": "e2e", "state": no_result, "commit": head})
    talk.logs[1] = LOG
    talk.conflicts.add(number)
    world.page = 1  # each list has several pages
    source = site.forge.events()
    seen = await source.pull(number)
    assert seen.head == head
    events = seen.events
    [comment] = of(events, K.COMMENT)
    assert comment.author_id == str(site.fake.world.account_id(comment.author))
    assert (comment.author, comment.text, comment.project) == (
        "anna",
        "/draftsman use red\nplease",
        "acme/pay",
    )
    [thread] = of(events, K.REVIEW_THREAD)
    assert (thread.path, thread.line, thread.text) == ("a.txt", 1, "Name it")
    reviews = [(event.verdict, event.text) for event in of(events, K.REVIEW)]
    assert reviews == ([] if kind == "gitlab" else [("changes_requested", "Not yet")])
    [check] = of(events, K.CHECK_FAILED)
    assert (check.title, check.commit) == ("tests", head)
    if kind != "gitea":  # whose statuses have no log
        assert check.text.endswith("E   assert 1 == 2\nFAILED tests/test_a.py::test_count")
        assert "\x1b" not in check.text
        assert len(check.text) < 6100
    assert [event.commit for event in of(events, K.CONFLICT)] == [head]
    read = len(site.fake.calls)
    assert (await source.pull(number)).events == events
    repeated = site.fake.calls[read:]
    if kind != "gitea":  # which has no ETags
        assert {call.status for call in repeated} == {304}
        assert "log" not in [call.operation for call in repeated]
    keys = set()
    webhooks = Webhooks.of(site.table(), SECRET, {})
    shown = (GiteaPayloads if kind == "gitea" else Payloads)(world)
    for body, headers in sent(site, shown):
        lower = {name.lower(): value for name, value in headers.items()}
        assert webhooks.is_genuine("acme/pay", lower, body)
        told = webhooks.content(lower, body)
        assert told is not None
        assert told.project == "acme/pay"
        assert told.events or told.changed
        keys |= {event.key for event in told.events}
    written = {event.key for event in of(events, K.COMMENT, K.REVIEW, K.REVIEW_THREAD)}
    assert keys == ({event.key for event in of(events, K.COMMENT)} if kind == "gitea" else written)
    edited = [item for item in talk.comments if item.author in ("anna", "ben")]
    for item in edited:  # by a maintainer, whom the API does not name
        item.body = "/approve D-1/1"
        item.edited = "2026-01-02T03:05:00Z"
    assert of((await source.pull(number)).events, K.COMMENT, K.REVIEW_THREAD) == []
    for item in edited:
        item.edited = "2026-01-02T03:04:05Z"
    world.page = 100
    for _ in range(99):
        talk.comment(number, "anna", "More")
    assert len(of((await source.pull(number)).events, K.COMMENT)) == 100
    talk.comment(number, "anna", "One more")
    assert len(of((await source.pull(number)).events, K.COMMENT)) == 101, (
        "a page after a full page is read"
    )


async def test_the_end_of_a_pull_request_is_an_event(site: ForgeHarness) -> None:
    opened = await site.open(site.push())
    [pull] = site.fake.world.pulls
    source = site.forge.events()
    for state, kind in (("closed", K.CLOSED), ("merged", K.MERGED)):
        pull.state = state
        [event] = (await source.pull(opened.pull.number)).events
        assert (event.kind, event.number) == (kind, opened.pull.number)
    label = {"name": "draftsman"}
    site.fake.world.issues.add("#9")
    site.fake.world.talk.issues.append(
        {"number": 9, "iid": 9, "title": "Count", "body": "x", "description": "x"}
        | {"labels": [label], "updated_at": "2026-01-02T03:04:04Z"}
    )
    [issue] = await source.labeled_issues("draftsman")
    assert (issue.kind, issue.number, issue.key) == (K.LABELED_ISSUE, 9, "label:9:draftsman:")
    site.fake.world.labelers += [("draftsman", "anna")]
    listed = site.fake.world.talk.issues[0]
    assert await source.labeled_issues("draftsman") == [issue], "it has not changed"
    listed["updated_at"] = "2026-01-02T03:04:05Z"
    [issue] = await source.labeled_issues("draftsman")
    assert (issue.key, issue.author) == ("label:9:draftsman:#1", "anna")
    assert issue.author_id == "7"
    site.fake.world.issues.clear()
    listed["updated_at"] = "2026-01-02T03:04:06Z"
    [issue] = await source.labeled_issues("draftsman")
    assert site.fake.kind == "gitlab" or issue.key == "label:9:draftsman:", "it was deleted"
    assert await source.labeled_issues("other") == []
    site.fake.world.talk.hooks.append("https://bots.example.org/forges/acme")
    assert await source.has_webhook("https://bots.example.org/forges/acme") is True
    assert await source.has_webhook("https://bots.example.org/forges/other") is False
    site.fake.world.talk.hooks_fail = True
    assert await source.has_webhook("https://bots.example.org/forges/acme") is False


async def test_issues_tell_who_labeled_them_and_their_comments(site: ForgeHarness) -> None:
    """Comments of pull requests and those before the time are not among them."""
    world = site.fake.world
    source = site.forge.events()
    world.labelers += [("Bug", "ben"), ("fix it", "ben"), ("fix it", ""), ("Fix it", "anna")]
    given = await source.labelings(7, "fix it")
    assert [(item.id, item.by, item.at) for item in given] == [
        ("2", "ben", datetime(2026, 1, 2, 3, 4, 2, tzinfo=UTC)),
        ("4", "anna", datetime(2026, 1, 2, 3, 4, 4, tzinfo=UTC)),
    ]
    assert await source.labelings(7, "never given") == []
    note = world.comment("#7", "@draftsman fix this", "anna")
    world.push(BRANCH, COMMITS[1])
    pull = await site.open(COMMITS[1])
    world.talk.comment(pull.pull.number, "ben", "feedback")
    world.issues.add("#8")
    world.comment("#8", "@draftsman and this", "anna")
    at = note.at
    world.notes[0].at = at - timedelta(days=9)
    (other,) = await source.issue_comments(at, [])
    assert (other.kind, other.number, other.text) == (K.ISSUE_COMMENT, 8, "@draftsman and this")
    world.notes[0].at = at
    found, other = await source.issue_comments(at, [])
    read = len(site.fake.calls)
    assert await source.issue_comments(at, [7]) == [found, other]
    if site.fake.kind == "gitlab":
        assert [call.status for call in site.fake.calls[read:]] == [200, 304, 304]
    assert (found.kind, found.number, found.author) == (K.ISSUE_COMMENT, 7, "anna")
    assert found.author_id == "7"
    assert (found.text, found.project) == ("@draftsman fix this", "acme/pay")
    issue = await site.forge.discussion(7, is_pull=False).issue()
    assert issue.title == "Refunds"
    assert issue.url.endswith("/issues/7")


async def test_a_check_for_conflicts_is_no_conflict(
    site: ForgeHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Gitea reports a pull request that it checks as unmergeable, as one with a conflict."""
    opened = await site.open(site.push())
    site.fake.world.talk.conflicts.add(opened.pull.number)
    source = site.forge.events()

    async def conflicts() -> int:
        return len(of((await source.pull(opened.pull.number)).events, K.CONFLICT))

    is_gitea = site.fake.kind == "gitea"
    assert await conflicts() == (0 if is_gitea else 1)
    if is_gitea:
        assert (await site.forge.get(opened.pull.number)).mergeable is CheckState.PENDING
    monkeypatch.setattr(gitea_reader, "CHECKING", 0.0)
    assert await conflicts() == 1
    site.fake.world.talk.conflicts.clear()
    assert await conflicts() == 0
    pull = await site.forge.get(opened.pull.number)
    assert pull.mergeable is CheckState.PASSED


async def test_every_page_of_a_list_is_read(site: ForgeHarness) -> None:
    """With the header of each forge: `Link`, or on Gitea also `X-Total-Count` alone."""
    world = site.fake.world
    source = site.forge.events()
    world.page = 1
    opened = await site.open(site.push(), labels=["backend"], reviewers=["anna"])
    assert opened.problems == ()
    assert world.pulls[0].labels == ["backend"]
    number = opened.pull.number
    for author in ("anna", "ben", "anna"):
        if site.fake.kind == "gitlab":
            world.talk.comment(number, author, "Name it", path="a.txt", line=1)
        else:
            world.talk.review(number, author, "commented", a_txt="Name it")
    written = await source.written(number)
    assert len(of(written, K.REVIEW_THREAD)) == 3
    assert len(of(written, K.REVIEW)) == (0 if site.fake.kind == "gitlab" else 3)
    for index in range(3):
        world.checks.append({"name": f"tests {index}", "state": "failed", "commit": "*"})
    failed = of((await source.pull(number)).events, K.CHECK_FAILED)
    assert [event.title for event in failed] == ["tests 0", "tests 1", "tests 2"]
    world.labelers += [("fix it", "ben"), ("bug", "ben"), ("fix it", "anna")]
    assert [item.by for item in await source.labelings(7, "fix it")] == ["ben", "anna"]
    first, *_ = [world.comment("#7", f"@draftsman {index}", "anna") for index in range(3)]
    texts = [event.text for event in await source.issue_comments(first.at, [])]
    assert sorted(texts) == [f"@draftsman {index}" for index in range(3)]
    since = await site.forge.discussion(7, is_pull=False).since(first.at - timedelta(seconds=1))
    assert len(since) == 3


async def test_an_unknown_label_finds_no_issues(site: ForgeHarness) -> None:
    """Gitea discards its name, and returns all open issues."""
    world = site.fake.world
    issue = {"number": 9, "iid": 9, "title": "Count", "updated_at": "2026-01-02T03:04:04Z"}
    world.talk.issues.append(issue | {"labels": [{"name": "backend"}]})
    assert await site.forge.events().labeled_issues("never made") == []


async def test_a_deleted_issue_is_gone(site: ForgeHarness) -> None:
    """Gitea answers 500 but for the issue itself."""
    discussion = site.forge.discussion(7, is_pull=False)
    site.fake.world.issues.clear()
    with pytest.raises(Failure) as refused:
        await discussion.post("Done")
    assert refused.value.http_status == 404
    with pytest.raises(Failure) as refused:
        await discussion.since(datetime.now(UTC))
    assert refused.value.http_status == 404
