"""Gitea and Forgejo: https://docs.gitea.com/api, https://forgejo.org/docs/latest/user/api-usage."""

from __future__ import annotations

import re
import time
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, ClassVar, Final
from urllib.parse import quote

from draftsman.errors import Failure
from draftsman.forges.api.api_forge import ApiForge
from draftsman.forges.api.api_reader import ApiReader
from draftsman.forges.api.rest_api import MAX_PAGES, RestApi
from draftsman.forges.checks import STATUS_NAME, CheckState, CommitCheck, check_of
from draftsman.forges.forge_event import EventKind, ForgeEvent, Labeling, PullEvents, is_edited
from draftsman.forges.pull_request import (
    UNSETTLED,
    Account,
    GitLogin,
    PullRequest,
    PullRequestText,
    PullState,
    TextLimits,
)
from draftsman_bots.forge_kinds import github_events
from draftsman_bots.forge_kinds.gitea_discussion import GiteaDiscussion, check_issue
from draftsman_bots.forge_kinds.github import (
    failed_status,
    issue_comments,
    labelings_of,
    written,
)
from draftsman_bots.json_fields import objects

# Events of a repository on Gitea or Forgejo: https://docs.gitea.com/api.


PAGE: Final = 50
"""Entries of a page: Gitea's default of `MAX_RESPONSE_ITEMS`."""
CHECKING: Final = 30.0
"""Seconds in which Gitea checks a commit for conflicts; until then it is unmergeable there, too."""
NO_REVIEWS: Final = ("PENDING", "REQUEST_REVIEW")
"""States of a review that is not submitted, and of a request for a review."""
VERDICTS: Final = {"APPROVED": "approved", "REQUEST_CHANGES": "changes_requested"}


class GiteaReader(ApiReader):
    """The events of a repository on Gitea or Forgejo."""

    page: ClassVar[dict[str, str | int]] = {"limit": PAGE}

    def __init__(self, api: RestApi, path: str, project: str) -> None:
        super().__init__(api, path, project)
        self._unmergeable: dict[int, tuple[str, float]] = {}

    async def pull(self, number: int) -> PullEvents:
        data = await self._reads.get(self._api, f"{self._path}/pulls/{number}")
        if (ended := github_events.ended(self._project, data)) is not None:
            return PullEvents([ended])
        events = await self.written(number)
        head = str(data["head"]["sha"])
        if self._conflicts(number, head, data):
            events.append(github_events.conflict(self._project, data))
        combined = f"{self._path}/commits/{head}/status"
        for status in await self._list(combined, "statuses"):
            name = str(status["context"])
            word = str(status.get("status") or status.get("state") or "")
            word = STATES.get(word, word)
            if name != STATUS_NAME and check_of(name, word).state is CheckState.FAILED:
                events.append(failed_status(self._project, number, head, name, status))
        return PullEvents(events, head)

    def _conflicts(self, number: int, head: str, data: Mapping[str, Any]) -> bool:
        """Return whether a pull request has been unmergeable for longer than a check takes."""
        if data.get("mergeable") is not False or data.get("draft"):
            self._unmergeable.pop(number, None)
            return False
        now = time.monotonic()
        last_head, since = self._unmergeable.get(number, ("", now))
        since = since if last_head == head else now
        self._unmergeable[number] = (head, since)
        return now - since >= CHECKING

    async def written(self, number: int) -> list[ForgeEvent]:
        comments = await self._list(f"{self._path}/issues/{number}/comments")
        kind = EventKind.COMMENT
        events = [
            github_events.comment(self._project, number, item, kind)
            for item in comments
            if not is_edited(item)
        ]
        return events + await self._reviews(number)

    async def labeled_issues(self, label: str) -> list[ForgeEvent]:
        path = f"{self._path}/issues"
        issues = await self._list(path, labels=label, state="open", type="issues")
        return await self._labels.events(
            github_events.labeled_issue(self._project, item, label, {})
            for item in issues
            if not item.get("pull_request") and _has(item, label)
        )

    async def labelings(self, number: int, label: str) -> list[Labeling]:
        issue = f"{self._path}/issues/{number}"
        events: list[Any] = []
        try:
            for page in range(1, MAX_PAGES + 1):  # its X-Total-Count is that of the page alone
                query = self.page | {"page": page}
                entries = await self._reads.get(self._api, f"{issue}/timeline", **query)
                if not entries:
                    break
                events += entries
        except Failure as error:
            await check_issue(self._api, issue, error)
            raise
        return labelings_of(events, label)

    async def issue_comments(self, since: datetime, numbers: Sequence[int]) -> list[ForgeEvent]:
        path = f"{self._path}/issues/comments"
        comments = await self._api.pages(path, since=written(since), limit=PAGE)
        return issue_comments(self._project, comments)

    async def _reviews(self, number: int) -> list[ForgeEvent]:
        path = f"{self._path}/pulls/{number}/reviews"
        events = []
        for item in await self._list(path):
            if item.get("state") in NO_REVIEWS:
                continue
            verdict = VERDICTS.get(str(item.get("state")), "commented")
            events.append(github_events.review(self._project, number, item | {"state": verdict}))
            if item.get("comments_count"):
                events += [
                    github_events.thread_comment(self._project, number, _with_line(comment))
                    for comment in await self._list(f"{path}/{item['id']}/comments")
                    if not is_edited(comment)
                ]
        return events


def _has(issue: Mapping[str, Any], label: str) -> bool:
    """Return whether an issue has a label; the filter of the API discards an unknown label."""
    names = (str(item.get("name")) for item in objects(issue, "labels"))
    return label.casefold() in map(str.casefold, names)


def _with_line(comment: Mapping[str, Any]) -> dict[str, Any]:
    """Return a comment with its line, in the new file or else in the old, as GitHub names it."""
    return {**comment, "line": comment.get("position") or comment.get("original_position")}


DRAFT: Final = "WIP: "
"""Prefix of the title of a draft: Gitea's default of `WORK_IN_PROGRESS_PREFIXES`."""
_DRAFT: Final = re.compile(r"\A(?:\s*(?:wip:|\[wip\]))+\s*", re.IGNORECASE)
"""All prefixes of that default."""
CLOSED_PAGES: Final = 4
"""Pages of closed pull requests, newest first, in which that of a job is searched for."""
STATES: Final = {"warning": "success"}
"""States that allow a merge there."""


class Gitea(ApiForge):
    """A repository on Gitea or Forgejo, with an access token."""

    api_path = "/api/v1"
    limits = TextLimits(title=255, body=65_536, status=255)

    def events(self) -> GiteaReader:
        return GiteaReader(self._api, self._path, self.project.path)

    async def account(self) -> Account:
        """Return the account; the scopes of a token are not visible to itself."""
        user = await self._api.call("GET", "/user", accepts=(403,))
        missing: tuple[str, ...] = ("read:user",) if user.status == 403 else ()
        if not ((await self._api.get(self._path)).get("permissions") or {}).get("push"):
            missing += ("write:repository, and write access for the account",)
        issues = await self._api.call("GET", f"{self._path}/labels?limit=1", accepts=(403,))
        if issues.status == 403:
            missing += ("write:issue",)
        return Account(str((user.data or {}).get("login") or "unknown account"), missing)

    async def git_login(self) -> GitLogin:
        return GitLogin("draftsman", await self._token())

    async def has_branch(self, name: str) -> bool:
        return await self._api.exists(f"{self._path}/branches/{quote(name)}")

    async def find(self, branch: str) -> list[PullRequest]:
        """Return all open pull requests of the branch, and the newest closed: none is filtered."""
        path = f"{self._path}/pulls"
        pulls = await self._api.pages(path, state="open", limit=PAGE)
        if not any(_is_of(pull, branch) for pull in pulls):
            query: dict[str, str | int] = {"state": "closed", "sort": "recentupdate", "limit": PAGE}
            for page in range(1, CLOSED_PAGES + 1):
                if not (closed := await self._api.get(path, page=page, **query)):
                    break
                pulls += closed
        return [_pull(pull) for pull in pulls if _is_of(pull, branch)]

    async def get(self, number: int) -> PullRequest:
        return _pull(await self._api.get(f"{self._path}/pulls/{number}"))

    async def create(self, text: PullRequestText) -> PullRequest:
        title = f"{DRAFT if text.draft else ''}{text.title}"[: self.limits.title]
        body = {"head": text.branch, "base": text.base, "title": title, "body": text.body}
        return _pull((await self._api.call("POST", f"{self._path}/pulls", body)).data)

    async def set_draft(self, pull: PullRequest, draft: bool) -> None:
        title = f"{DRAFT if draft else ''}{_DRAFT.sub('', pull.title)}"
        path = f"{self._path}/pulls/{pull.number}"
        await self._api.call("PATCH", path, {"title": title[: self.limits.title]})

    async def add_labels(self, number: int, labels: Sequence[str]) -> None:
        """Add labels of the repository or its organization; raises Failure for another label."""
        ids = {label["name"]: label["id"] for label in await self._labels()}
        if unknown := [name for name in labels if name not in ids]:
            text = f"{self.name}: {self.project.path} has no label {unknown[0]}"
            raise Failure(text, origin="forge", http_status=404)
        path = f"{self._path}/issues/{number}/labels"
        await self._api.call("POST", path, {"labels": [ids[name] for name in labels]})

    async def request_reviews(self, number: int, reviewers: Sequence[str]) -> None:
        path = f"{self._path}/pulls/{number}/requested_reviewers"
        await self._api.call("POST", path, {"reviewers": list(reviewers)})

    async def checks(self, commit: str) -> list[CommitCheck]:
        path = f"{self._path}/commits/{commit}/status"
        states: dict[str, str] = {}
        for page in range(1, MAX_PAGES + 1):  # its pages have no Link header
            data = await self._api.get(path, page=page, limit=PAGE)
            new = {item["context"]: item["status"] for item in objects(data, "statuses")}
            if new.keys() <= states.keys():
                break
            states |= new
        return [check_of(name, STATES.get(state, state)) for name, state in states.items()]

    async def answer(self, number: int, text: str, thread: str | None) -> None:
        """Write a comment: the API has no replies in threads."""
        await self._api.call("POST", f"{self._path}/issues/{number}/comments", {"body": text})

    async def resolve(self, number: int, thread: str) -> None:
        """Do nothing: the API cannot resolve threads."""

    def discussion(self, number: int, *, is_pull: bool) -> GiteaDiscussion:
        return GiteaDiscussion(self._api, self._path, number, self.limits.body)

    async def delete_branch(self, name: str) -> None:
        await self._api.delete(f"{self._path}/branches/{quote(name)}", accepts=(404,))

    async def merge(self, number: int, commit: str, method: str, message: str = "") -> None:
        body = {"Do": method, "head_commit_id": commit}
        if method == "squash" and message:
            title, _, text = message.partition("\n")
            body |= {
                "MergeTitleField": f"{title} (#{number})",
                "MergeMessageField": text.strip(),
            }
        await self._api.call("POST", f"{self._path}/pulls/{number}/merge", body)

    async def _labels(self) -> list[Any]:
        labels = await self._api.pages(f"{self._path}/labels", limit=PAGE)
        path = f"/orgs/{quote(self.project.owner)}/labels"
        try:
            return labels + await self._api.pages(path, limit=PAGE)
        except Failure as error:
            if error.http_status not in (403, 404):  # the owner is a person
                raise
            return labels

    async def _authorization(self) -> Mapping[str, str]:
        return {"authorization": f"token {await self._token()}"}


def _is_of(data: Mapping[str, Any], branch: str) -> bool:
    """Return whether a pull request is of this branch of the repository itself."""
    head = data["head"]
    base = data["base"]
    return bool(head["ref"] == branch and head.get("repo_id") == base.get("repo_id"))


def _pull(data: Mapping[str, Any]) -> PullRequest:
    state = PullState.MERGED if data.get("merged") else PullState(data["state"])
    return PullRequest(
        number=int(data["number"]),
        url=str(data["html_url"]),
        state=state,
        head=str(data["head"]["sha"]),
        base=str(data["base"]["ref"]),
        draft=bool(data.get("draft")) or _DRAFT.match(str(data["title"])) is not None,
        title=str(data["title"]),
        body=str(data.get("body") or ""),
        mergeable=CheckState.PENDING if data.get("mergeable") is False else CheckState.PASSED,
        merge_state=UNSETTLED if data.get("mergeable") is False else "",
    )
