"""The common part of all forges: a repository, its API and the access token."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import ClassVar
from urllib.parse import quote

from draftsman.forges.api.comments import IssueDiscussion
from draftsman.forges.api.rest_api import RestApi
from draftsman.forges.checks import STATUS_NAME
from draftsman.forges.project import Project
from draftsman.forges.pull_request import CommitStatus, TextLimits
from draftsman.outbound.secret_values import read_secret
from draftsman.settings.forges import ForgeSettings
from draftsman.settings.http import HttpSettings


class ApiForge(ABC):
    """A repository over the REST API of its forge; subclasses have the API of a kind."""

    api_path: ClassVar[str] = ""
    """Path of the REST API below the URL of the forge."""
    limits: TextLimits
    failed: ClassVar[str] = "failure"
    """The state of a commit whose status did not pass."""
    status_key: ClassVar[str] = "context"
    """The field with the name of a status."""
    location_key: ClassVar[str] = "full_name"
    """The field with the owner and name of a repository."""

    def __init__(
        self, name: str, settings: ForgeSettings, http: HttpSettings, project: Project
    ) -> None:
        self.name = name
        self.project = project
        self._settings = settings
        self._path = self.path_of(project)
        api = self.api_url(settings.url)
        self._api = RestApi(name, api, http, self._authorization, self._path)

    @classmethod
    def api_url(cls, forge_url: str) -> str:
        """Return the URL of a forge's REST API."""
        return f"{forge_url}{cls.api_path}"

    @classmethod
    def path_of(cls, project: Project) -> str:
        """Return the path of a repository in the API."""
        return f"/repos/{quote(project.path)}"

    async def location(self) -> str:
        return str((await self._api.get(self._path))[self.location_key])

    async def default_branch(self) -> str:
        return str((await self._api.get(self._path))["default_branch"])

    async def update(self, number: int, body: str) -> None:
        await self._api.call("PATCH", f"{self._path}/pulls/{number}", {"body": body})

    async def set_status(self, commit: str, status: CommitStatus) -> None:
        body = {
            "state": "success" if status.passed else self.failed,
            self.status_key: STATUS_NAME,
            "description": status.description,
        }
        if status.url is not None:
            body["target_url"] = status.url
        await self._api.call("POST", f"{self._path}/statuses/{commit}", body)

    def discussion(self, number: int, *, is_pull: bool) -> IssueDiscussion:
        return IssueDiscussion(self._api, self._path, number, self.limits.body)

    async def _token(self) -> str:
        """Return the access token; raises MissingSecret."""
        if self._settings.token is None:
            raise ValueError("a forge without an app has a token")
        return read_secret(self._settings.token, f"forges.{self.name}.token")

    @abstractmethod
    async def _authorization(self) -> Mapping[str, str]:
        """Return the headers with the token."""
