"""GitHub and GitHub Enterprise: https://docs.github.com/en/rest, version 2022-11-28."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Final
from urllib.parse import quote, urlsplit

from draftsman.errors import Failure
from draftsman.forges.api.api_forge import ApiForge
from draftsman.forges.api.api_reader import LOG_END, ApiReader
from draftsman.forges.api.rest_api import PAGE, RestApi
from draftsman.forges.checks import STATUS_NAME, CheckState, CommitCheck, check_of, relevant_part
from draftsman.forges.forge_event import (
    EventKind,
    ForgeEvent,
    Labeling,
    PullEvents,
    account_id,
    fields,
    is_edited,
    moment,
    plain,
)
from draftsman.forges.project import Project
from draftsman.forges.pull_request import (
    Account,
    GitLogin,
    PullRequest,
    PullRequestText,
    PullState,
    TextLimits,
)
from draftsman.settings.http import HttpSettings
from draftsman_bots.forge_kinds import github_events
from draftsman_bots.forge_kinds.github_app import AppTokens, missing_permissions
from draftsman_bots.forge_kinds.plugin import GitHubSettings

# Events of a repository on GitHub: https://docs.github.com/en/rest, version 2022-11-28.


_PULL: Final = re.compile(r"/pulls?/\d+#")
"""Part of the URL of a comment on a pull request."""


class GitHubReader(ApiReader):
    """The events of a repository on GitHub."""

    async def pull(self, number: int) -> PullEvents:
        data = await self._reads.get(self._api, f"{self._path}/pulls/{number}")
        if (ended := github_events.ended(self._project, data)) is not None:
            return PullEvents([ended])
        events = await self.written(number)
        if data.get("mergeable_state") == "dirty":
            events.append(github_events.conflict(self._project, data))
        head = str(data["head"]["sha"])
        return PullEvents(events + await self._failed(number, head), head)

    async def labeled_issues(self, label: str) -> list[ForgeEvent]:
        path = f"{self._path}/issues"
        issues = await self._list(path, None, labels=label, state="open")
        return await self._labels.events(
            github_events.labeled_issue(self._project, item, label, {})
            for item in issues
            if "pull_request" not in item
        )

    async def labelings(self, number: int, label: str) -> list[Labeling]:
        return labelings_of(await self._list(f"{self._path}/issues/{number}/events"), label)

    async def issue_comments(self, since: datetime, numbers: Sequence[int]) -> list[ForgeEvent]:
        comments = await self._api.pages(
            f"{self._path}/issues/comments", since=written(since), per_page=PAGE
        )
        return issue_comments(self._project, comments)

    async def written(self, number: int) -> list[ForgeEvent]:
        comments = await self._list(f"{self._path}/issues/{number}/comments")
        reviews = await self._list(f"{self._path}/pulls/{number}/reviews")
        threads = await self._list(f"{self._path}/pulls/{number}/comments")
        kind = EventKind.COMMENT
        return [
            *(
                github_events.comment(self._project, number, item, kind)
                for item in comments
                if not is_edited(item)
            ),
            *(github_events.review(self._project, number, item) for item in reviews),
            *(
                github_events.thread_comment(self._project, number, item)
                for item in threads
                if not is_edited(item)
            ),
        ]

    async def _failed(self, number: int, head: str) -> list[ForgeEvent]:
        """Return the checks of a commit that failed, with the relevant part of their logs."""
        path = f"{self._path}/commits/{head}"
        events = []
        for run in await self._list(f"{path}/check-runs", "check_runs"):
            result = run["conclusion"] if run["status"] == "completed" else ""
            if check_of(run["name"], result).state is CheckState.FAILED:
                key = f"check:{run['id']}:{run['conclusion']}"
                if key not in self._logs:
                    self._logs[key] = await self._check_run(number, head, key, run)
                events.append(self._logs[key])
        for status in await self._list(f"{path}/status", "statuses"):
            name = str(status["context"])
            if name != STATUS_NAME and check_of(name, status["state"]).state is CheckState.FAILED:
                events.append(failed_status(self._project, number, head, name, status))
        return events

    async def _check_run(
        self, number: int, head: str, key: str, run: Mapping[str, Any]
    ) -> ForgeEvent:
        output = fields(run.get("output"))
        texts = [str(output.get(name) or "") for name in ("title", "summary", "text")]
        if fields(run.get("app")).get("slug") == "github-actions":
            # the id of a check run of Actions is that of its job
            log = await self._api.text(f"{self._path}/actions/jobs/{run['id']}/logs", LOG_END)
            texts.append(relevant_part(log))
        return ForgeEvent(
            EventKind.CHECK_FAILED,
            self._project,
            number,
            key,
            title=str(run["name"]),
            text=plain("\n".join(text for text in texts if text)),
            commit=head,
            url=str(run.get("html_url") or "") or None,
        )


def labelings_of(events: Sequence[Any], label: str) -> list[Labeling]:
    """Return the events of GitHub, or of Gitea's timeline, that gave a label.

    The body of an event of Gitea is `1` for a label that was given, else empty.
    """
    return [
        Labeling(
            str(item["id"]),
            str(fields(item.get("actor") or item.get("user")).get("login") or ""),
            moment(item.get("created_at")),
            account_id(fields(item.get("actor") or item.get("user"))),
        )
        for item in events
        if (
            item.get("event") == "labeled" or (item.get("type"), item.get("body")) == ("label", "1")
        )
        and str(fields(item.get("label")).get("name")).casefold() == label.casefold()
    ]


def issue_comments(project: str, comments: Sequence[Mapping[str, Any]]) -> list[ForgeEvent]:
    """Return the events of the comments of a repository that are on issues."""
    kind = EventKind.ISSUE_COMMENT
    return [
        github_events.comment(project, int(str(item["issue_url"]).rpartition("/")[2]), item, kind)
        for item in comments
        if item.get("issue_url")
        and not _PULL.search(str(item.get("html_url")))
        and not is_edited(item)
    ]


def written(when: datetime) -> str:
    """Return a time as a parameter of the API."""
    return when.isoformat(timespec="seconds").replace("+00:00", "Z")


def failed_status(
    project: str, number: int, head: str, name: str, status: Mapping[str, Any]
) -> ForgeEvent:
    """Return the event of a commit status that failed; it has no log."""
    word = status.get("state") or status.get("status")
    return ForgeEvent(
        EventKind.CHECK_FAILED,
        project,
        number,
        f"status:{head}:{name}:{status.get('id') or word}",
        title=name,
        text=plain(status.get("description")),
        commit=head,
        url=str(status.get("target_url") or "") or None,
    )


MERGE_STATES: Final = {
    "": CheckState.PASSED,
    "clean": CheckState.PASSED,
    "has_hooks": CheckState.PASSED,
    "unstable": CheckState.PASSED,
    "unknown": CheckState.PENDING,
}
"""States of a pull request; others are refused here, as an administrator could merge anyway."""
HEADERS: Final = {
    "accept": "application/vnd.github+json",
    "x-github-api-version": "2022-11-28",
}

THREADS: Final = """query ($owner: String!, $name: String!, $number: Int!) {
  repository(owner: $owner, name: $name) { pullRequest(number: $number) {
    reviewThreads(last: 100) { nodes { id isResolved
      comments(first: 1) { nodes { databaseId } } } } } } }"""
RESOLVE: Final = """mutation ($id: ID!) {
  resolveReviewThread(input: {threadId: $id}) { thread { isResolved } } }"""
PULL: Final = """query ($owner: String!, $name: String!, $number: Int!) {
  repository(owner: $owner, name: $name) { pullRequest(number: $number) { id isDraft } } }"""
TO_DRAFT: Final = """mutation ($id: ID!) {
  convertPullRequestToDraft(input: {pullRequestId: $id}) { pullRequest { isDraft } } }"""
TO_READY: Final = """mutation ($id: ID!) {
  markPullRequestReadyForReview(input: {pullRequestId: $id}) { pullRequest { isDraft } } }"""
REFUSED: Final = "graphql"
"""Code of the failure of a query or mutation."""
DRAFT: Final = "[Draft] "
"""Prefix of the title of a draft where there are none: in private repositories of a free plan."""


HOST: Final = "github.com"
DATA_RESIDENCY: Final = ".ghe.com"
"""Hosts of GitHub Enterprise Cloud with data residency."""


class GitHub(ApiForge):
    """A repository on GitHub, with an access token or a GitHub App."""

    api_path = "/api/v3"
    limits = TextLimits(title=256, body=65_536, status=140)

    def __init__(
        self, name: str, settings: GitHubSettings, http: HttpSettings, project: Project
    ) -> None:
        super().__init__(name, settings, http, project)
        url = self.api_url(settings.url)
        self._app = AppTokens(name, settings, url, http, project) if settings.app_id else None
        graph = url.removesuffix("/v3")
        self._graph = RestApi(name, graph, http, self._authorization)

    @classmethod
    def api_url(cls, forge_url: str) -> str:
        split = urlsplit(forge_url)
        host = (split.hostname or "").casefold()
        if host == HOST or host.endswith(DATA_RESIDENCY):
            return f"{split.scheme}://api.{host}"
        return super().api_url(forge_url)

    def events(self) -> GitHubReader:
        return GitHubReader(self._api, self._path, self.project.path)

    async def account(self) -> Account:
        """Return the account; of an access token GitHub does not tell all rights."""
        if self._app is not None:
            installation = await self._app.installation()
            missing = missing_permissions(
                installation.get("permissions") or {}, comments=self._settings.events is not None
            )
            return Account(f"GitHub App {await self._app.slug()}", missing)
        response = await self._api.call("GET", "/user")
        scopes = response.headers.get("x-oauth-scopes")
        missing = ("scope repo",) if scopes is not None and "repo" not in _words(scopes) else ()
        repository = await self._api.get(self._path)
        if not (repository.get("permissions") or {}).get("push"):
            missing += ("Contents: Read and write",)
        probes = {
            "Pull requests: Read and write": f"{self._path}/pulls?per_page=1",
            "Commit statuses: Read and write": (
                f"{self._path}/commits/{quote(repository['default_branch'])}/status"
            ),
        }
        if self._settings.events is not None:
            probes["Issues: Read and write"] = f"{self._path}/issues?per_page=1"
        for right, path in probes.items():
            if (await self._api.call("GET", path, accepts=(403, 404))).status in (403, 404):
                missing += (right,)
        return Account(str(response.data["login"]), missing)

    async def git_login(self) -> GitLogin:
        return GitLogin("x-access-token", await self._token())

    async def has_branch(self, name: str) -> bool:
        return await self._api.exists(f"{self._path}/branches/{quote(name, safe='')}")

    async def find(self, branch: str) -> list[PullRequest]:
        head = f"{self.project.owner}:{branch}"
        pulls = await self._api.pages(f"{self._path}/pulls", head=head, state="all", per_page=PAGE)
        return [_pull(item) for item in pulls if item["head"]["ref"] == branch]

    async def get(self, number: int) -> PullRequest:
        return _pull(await self._api.get(f"{self._path}/pulls/{number}"))

    async def create(self, text: PullRequestText) -> PullRequest:
        body = {"head": text.branch, "base": text.base, "body": text.body, "title": text.title}
        path = f"{self._path}/pulls"
        try:
            return _pull((await self._api.call("POST", path, body | {"draft": text.draft})).data)
        except Failure as error:
            if error.http_status != 422 or not text.draft or await self.find(text.branch):
                raise
        body["title"] = f"{DRAFT}{text.title}"[: self.limits.title]
        return _pull((await self._api.call("POST", path, body)).data)

    async def set_draft(self, pull: PullRequest, draft: bool) -> None:
        """Change the state, which only GraphQL can, or the title where there are no drafts."""
        title = pull.title.removeprefix(DRAFT)
        if not draft and title != pull.title:
            await self._retitle(pull.number, title)
        names = self._names(pull.number)
        state = (await self._graphql(PULL, names))["repository"]["pullRequest"]
        if state["isDraft"] == draft:
            return
        try:
            await self._graphql(TO_DRAFT if draft else TO_READY, {"id": state["id"]})
        except Failure as error:
            if not draft or error.code != REFUSED:
                raise
            await self._retitle(pull.number, f"{DRAFT}{title}"[: self.limits.title])

    async def add_labels(self, number: int, labels: Sequence[str]) -> None:
        path = f"{self._path}/issues/{number}/labels"
        await self._api.call("POST", path, {"labels": list(labels)})

    async def request_reviews(self, number: int, reviewers: Sequence[str]) -> None:
        teams = [name.partition("/")[2] for name in reviewers if "/" in name]
        people = [name for name in reviewers if "/" not in name]
        path = f"{self._path}/pulls/{number}/requested_reviewers"
        await self._api.call("POST", path, {"reviewers": people, "team_reviewers": teams})

    async def checks(self, commit: str) -> list[CommitCheck]:
        """Return the check runs, and the latest status of each context."""
        path = f"{self._path}/commits/{commit}"
        runs = await self._api.pages(f"{path}/check-runs", "check_runs", per_page=PAGE)
        statuses = await self._api.pages(f"{path}/status", "statuses", per_page=PAGE)
        checks = [
            check_of(item["name"], item["conclusion"] if item["status"] == "completed" else "")
            for item in runs
        ]
        return checks + [check_of(item["context"], item["state"]) for item in statuses]

    async def answer(self, number: int, text: str, thread: str | None) -> None:
        path = f"{self._path}/issues/{number}/comments"
        if thread is not None:
            path = f"{self._path}/pulls/{number}/comments/{thread}/replies"
        await self._api.call("POST", path, {"body": text})

    async def resolve(self, number: int, thread: str) -> None:
        """Resolve a thread, by its first comment; only GraphQL has this."""
        data = (await self._graphql(THREADS, self._names(number)))["repository"]["pullRequest"]
        for item in data["reviewThreads"]["nodes"]:
            ids = [str(comment["databaseId"]) for comment in item["comments"]["nodes"]]
            if thread in ids and not item["isResolved"]:
                await self._graphql(RESOLVE, {"id": item["id"]})

    async def delete_branch(self, name: str) -> None:
        path = f"{self._path}/git/refs/heads/{quote(name)}"
        await self._api.delete(path, accepts=(404, 422))

    async def _graphql(self, query: str, variables: Mapping[str, Any]) -> Any:
        body = {"query": query, "variables": variables}
        answer = (await self._graph.call("POST", "/graphql", body)).data
        if errors := answer.get("errors"):
            text = f"{self.name}: {errors[0].get('message')}"
            raise Failure(text, origin="forge", code=REFUSED, declared="PERMANENT")
        return answer["data"]

    def _names(self, number: int) -> dict[str, str | int]:
        """Return the variables that name a pull request."""
        return {"owner": self.project.owner, "name": self.project.name, "number": number}

    async def _retitle(self, number: int, title: str) -> None:
        await self._api.call("PATCH", f"{self._path}/pulls/{number}", {"title": title})

    async def merge(self, number: int, commit: str, method: str, message: str = "") -> None:
        body = {"sha": commit, "merge_method": method}
        if method == "squash" and message:
            title, _, text = message.partition("\n")
            body |= {"commit_title": f"{title} (#{number})", "commit_message": text.strip()}
        await self._api.call("PUT", f"{self._path}/pulls/{number}/merge", body)

    async def _token(self) -> str:
        if self._app is not None:
            return await self._app.token()
        return await super()._token()

    async def _authorization(self) -> Mapping[str, str]:
        return {**HEADERS, "authorization": f"Bearer {await self._token()}"}


def _pull(data: Mapping[str, Any]) -> PullRequest:
    merged = data.get("merged_at") is not None
    state = PullState.MERGED if merged else PullState(data["state"])
    return PullRequest(
        number=int(data["number"]),
        url=str(data["html_url"]),
        state=state,
        head=str(data["head"]["sha"]),
        base=str(data["base"]["ref"]),
        draft=bool(data.get("draft")) or str(data["title"]).startswith(DRAFT),
        title=str(data["title"]),
        body=str(data.get("body") or ""),
        mergeable=MERGE_STATES.get(data.get("mergeable_state") or "", CheckState.FAILED),
        merge_state=str(data.get("mergeable_state") or ""),
    )


def _words(scopes: str) -> list[str]:
    return [word.strip() for word in scopes.split(",")]
