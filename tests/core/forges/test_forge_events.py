"""Events in the JSON of forges."""

from __future__ import annotations

from typing import Any

from draftsman.forges.forge_event import EventKind
from draftsman_bots.forge_kinds import github_events, gitlab_events
from draftsman_bots.forge_kinds.github import issue_comments
from tests.support.cases import cases

ANNA, MALLORY = ({"id": id, "login": name} for id, name in ((1, "anna"), (2, "mallory")))
TEXT: dict[str, Any] = {"id": 5, "user": ANNA, "body": "/approve D-1/1"}


@cases("event", ["issue_comment", "pull_request_review_comment"])
def test_an_edited_text_counts_only_if_its_author_edited_it(event: str) -> None:
    """Who may write to a repository of GitHub or Gitea may edit the comments of others."""
    for action, sender, author in (
        ("created", ANNA, ["anna"]),
        ("edited", ANNA, ["anna"]),
        ("edited", MALLORY, []),
    ):
        payload = {"action": action, "sender": sender, "comment": TEXT} | {
            about: {"number": 7} for about in ("issue", "pull_request")
        }
        assert [e.author for e in github_events.parse_event(event, payload).events] == author


@cases(
    ("issue", "kind"),
    [
        ({}, EventKind.ISSUE_COMMENT),
        ({"pull_request": None}, EventKind.ISSUE_COMMENT),
        ({"pull_request": {}}, EventKind.COMMENT),
    ],
)
def test_a_comment_is_on_an_issue_or_a_pull_request(issue: dict[str, Any], kind: str) -> None:
    """The issue of GitHub has no field, and that of Gitea has null."""
    payload = {"action": "created", "comment": TEXT, "issue": {"number": 7} | issue}
    [event] = github_events.parse_event("issue_comment", payload).events
    assert event.kind == kind


def test_a_review_that_another_edited_is_no_event() -> None:
    for sender, count in ((ANNA, 1), (MALLORY, 0)):
        payload = {"action": "edited", "sender": sender, "pull_request": {"number": 7}}
        found = github_events.parse_event("pull_request_review", payload | {"review": TEXT})
        assert len(found.events) == count


@cases("about", [{"MergeRequest": "merge_request"}, {"Issue": "issue"}])
def test_a_note_that_another_edited_is_no_event(about: dict[str, str]) -> None:
    """The user of a webhook of GitLab is the one who edited the note."""
    [(kind, name)] = about.items()
    for user, count in ((1, 1), (2, 0)):
        note = {"id": 5, "author_id": 1, "note": "/approve D-1/1", "noteable_type": kind}
        payload = {"object_attributes": note, "user": {"id": user, "username": "x"}}
        found = gitlab_events.parse({"x-gitlab-event": "Note Hook"}, payload | {name: {"iid": 7}})
        assert len(found.events) == count


@cases("mark", ["", "Confidential "])
def test_confidential_issues_and_notes_are_events(mark: str) -> None:
    project = {"project": {"path_with_namespace": "a/b"}, "user": {"id": 1, "username": "anna"}}
    note = {"id": 5, "author_id": 1, "note": "/approve D-1/1", "noteable_type": "Issue"}
    noted = project | {"object_attributes": note, "issue": {"iid": 7}}
    [event] = gitlab_events.parse({"x-gitlab-event": f"{mark}Note Hook"}, noted).events
    assert (event.kind, event.number) == (EventKind.ISSUE_COMMENT, 7)
    labeled = project | {"object_attributes": {"iid": 7}, "labels": [{"title": "fix it"}]}
    [event] = gitlab_events.parse({"x-gitlab-event": f"{mark}Issue Hook"}, labeled).events
    assert (event.kind, event.label) == (EventKind.LABELED_ISSUE, "fix it")


def test_polls_leave_edited_comments_out() -> None:
    """The API names the author, and not who edited the comment."""
    at = {"created_at": "2026-01-02T03:04:05Z", "issue_url": "https://api/repos/a/b/issues/7"}
    for updated, count in (("2026-01-02T03:04:06Z", 1), ("2026-01-02T03:04:30Z", 0)):
        found = issue_comments("a/b", [TEXT | at | {"updated_at": updated}])
        assert len(found) == count
