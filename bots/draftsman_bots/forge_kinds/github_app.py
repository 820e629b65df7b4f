"""Tokens of a GitHub App: a signed assertion is exchanged for a token of an installation.

https://docs.github.com/en/apps/creating-github-apps/authenticating-with-a-github-app
"""

from __future__ import annotations

import base64
import json
import time
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, Final

from cryptography.hazmat.primitives.asymmetric.padding import PKCS1v15
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import load_pem_private_key

from draftsman.errors import Failure
from draftsman.forges.api.rest_api import RestApi
from draftsman.forges.project import Project
from draftsman.outbound.secret_values import read_secret
from draftsman.settings.http import HttpSettings
from draftsman_bots.forge_kinds.plugin import GitHubSettings

SKEW: Final = 60
"""Seconds by which the clock of this machine may be ahead."""
LIFETIME: Final = 540
"""Seconds for which an assertion is valid; GitHub accepts 600."""
RENEW: Final = 300
"""Seconds before the expiry of a token at which a new token is requested."""
PERMISSIONS: Final = {
    "contents": "write",
    "pull_requests": "write",
    "statuses": "write",
    "checks": "read",
}
"""Permissions that the app needs in a repository."""
_tokens: Final[dict[tuple[str, str, str], tuple[str, float]]] = {}
"""Tokens of this process, by app, forge and repository, with their expiry."""


class AppTokens:
    """Tokens of an app that are limited to a single repository."""

    def __init__(
        self,
        name: str,
        settings: GitHubSettings,
        api_url: str,
        http: HttpSettings,
        project: Project,
    ) -> None:
        self._name = name
        self._url = api_url
        self._http = http
        self._settings = settings
        self._project = project
        self._key = (settings.app_id or "", settings.url, project.path.casefold())
        self._api = RestApi(name, api_url, http, self._assertion)

    async def token(self) -> str:
        """Return a token that is valid for some minutes at least."""
        token, expires = _tokens.get(self._key, ("", 0.0))
        if expires - RENEW > time.time():
            return token
        number = self._settings.installation or (await self.installation())["id"]
        path = f"/app/installations/{number}/access_tokens"
        try:
            data = await self._made(path, {"repositories": [self._project.name]})
        except Failure as error:
            if error.http_status != 422:
                raise
            data = await self._made(path, {"repository_ids": [await self._renamed(path)]})
        expiry = datetime.fromisoformat(str(data["expires_at"])).replace(tzinfo=UTC).timestamp()
        _tokens[self._key] = (str(data["token"]), expiry)
        return str(data["token"])

    async def _made(self, path: str, body: Mapping[str, Any]) -> Mapping[str, Any]:
        data: Mapping[str, Any] = (await self._api.call("POST", path, body)).data
        return data

    async def _renamed(self, path: str) -> int:
        """Return the id of the repository, which has no longer the name of its address.

        Only a token can read it, which needs no other right.
        """
        token = (await self._made(path, {"permissions": {"metadata": "read"}}))["token"]

        async def authorization() -> Mapping[str, str]:
            return {"authorization": f"Bearer {token}"}

        api = RestApi(self._name, self._url, self._http, authorization)
        return int((await api.get(f"/repos/{self._project.path}"))["id"])

    async def installation(self) -> Mapping[str, Any]:
        """Return the installation of the app in the repository, with its permissions."""
        path = f"/repos/{self._project.path}/installation"
        response = await self._api.call("GET", path, accepts=(404,))
        if response.status == 404:
            text = f"{self._name}: the GitHub App is not installed in {self._project.path}"
            raise Failure(text, origin="forge", http_status=404)
        data: Mapping[str, Any] = response.data
        return data

    async def slug(self) -> str:
        """Return the name of the app."""
        return str((await self._api.get("/app"))["slug"])

    async def _assertion(self) -> Mapping[str, str]:
        secret = self._settings.private_key
        if secret is None:
            raise ValueError("a GitHub App has a private key")
        pem = read_secret(secret, f"forges.{self._name}.private_key")
        claims = {"iss": self._settings.app_id}
        return {"authorization": f"Bearer {assertion(self._name, pem, claims, time.time())}"}


def assertion(name: str, pem: str, claims: Mapping[str, Any], now: float) -> str:
    """Return the signed JSON Web Token of an app, with the algorithm RS256.

    Raises Failure `private_key` for a key that cannot be used.
    """
    times = {"iat": int(now) - SKEW, "exp": int(now) + LIFETIME}
    segments = ({"alg": "RS256", "typ": "JWT"}, {**claims, **times})
    text = ".".join(_base64(json.dumps(segment).encode()) for segment in segments)
    try:
        key = load_pem_private_key(pem.encode(), None)
        if not isinstance(key, RSAPrivateKey):
            raise TypeError("not an RSA key")
    except (ValueError, TypeError):
        problem = f"forges.{name}.private_key is not an RSA key in PEM form, as GitHub makes it"
        raise Failure(problem, origin="forge", code="private_key", declared="PERMANENT") from None
    return f"{text}.{_base64(key.sign(text.encode(), PKCS1v15(), SHA256()))}"


def missing_permissions(granted: Mapping[str, Any], *, comments: bool) -> tuple[str, ...]:
    """Return the permissions that an installation lacks: `pull_requests: write`.

    `comments` tells whether people are answered on issues.
    """
    needed = PERMISSIONS | ({"issues": "write"} if comments else {})
    levels = ("read", "write", "admin")
    return tuple(
        f"{name}: {level}"
        for name, level in needed.items()
        if granted.get(name) not in levels[levels.index(level) :]
    )


def _base64(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()
