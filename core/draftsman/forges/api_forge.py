"""The common part of all forges: a repository, its API and the access token."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar
from urllib.parse import quote

from draftsman.domain.forges.project import Project, api_url
from draftsman.forges.rest_api import RestApi
from draftsman.outbound.secret_values import read_secret
from draftsman.settings import ForgeSettings, HttpSettings


class ApiForge:
    """A repository over the REST API of its forge; subclasses have the API of a kind."""

    kind: ClassVar[str]

    def __init__(
        self, name: str, settings: ForgeSettings, http: HttpSettings, project: Project
    ) -> None:
        self.name = name
        self.project = project
        self._settings = settings
        self._api = RestApi(name, api_url(self.kind, settings.url), http, self._authorization)
        self._path = f"/repos/{quote(project.path)}"

    async def default_branch(self) -> str:
        return str((await self._api.get(self._path))["default_branch"])

    async def _token(self) -> str:
        """Return the access token; raises MissingSecret."""
        if self._settings.token is None:
            raise ValueError("a forge without an app has a token")
        return read_secret(self._settings.token, f"forges.{self.name}.token")

    async def _authorization(self) -> Mapping[str, str]:
        """Return the headers with the token."""
        raise NotImplementedError
