"""A strict OpenID Connect provider: a code works once, for its client and verifier."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import secrets
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any
from urllib.parse import parse_qsl, unquote

from joserfc import jwt
from joserfc.jwk import RSAKey
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from draftsman_bots.process.http import HttpServer, bind

CLIENT = "draftsman"
SECRET = "s3cret:of the client"


class FakeProvider:
    """The provider; tests change its next ID token, its keys and its metadata."""

    def __init__(self) -> None:
        self.key = RSAKey.generate_key(2048, {"kid": "first"})
        self.issuer = ""
        self.changes: dict[str, Any] = {}
        """Claims of the next ID tokens that differ; None: left out."""
        self.metadata: dict[str, Any] = {}
        self.signer: RSAKey | None = None
        """Key of the next ID tokens, if it is not the published key."""
        self.algorithm = "RS256"
        self.refused: list[str] = []
        self._codes: dict[str, dict[str, str]] = {}

    def authorize(self, query: dict[str, str]) -> str:
        """Return a code for the request that a browser brings."""
        assert query["response_type"] == "code"
        assert query["client_id"] == CLIENT
        assert query["code_challenge_method"] == "S256"
        assert "openid" in query["scope"].split()
        assert len(query["state"]) >= 32
        assert len(query["nonce"]) >= 32
        code = secrets.token_urlsafe(16)
        self._codes[code] = query
        return code

    async def _token(self, request: Request) -> Response:
        form = dict(parse_qsl((await request.body()).decode(), strict_parsing=True))
        scheme, _, value = request.headers.get("authorization", "").partition(" ")
        name, _, secret = base64.b64decode(value).decode().partition(":")
        query = self._codes.pop(form.get("code", ""), None)
        verifier = hashlib.sha256(form.get("code_verifier", "").encode()).digest()
        challenge = base64.urlsafe_b64encode(verifier).decode().rstrip("=")
        checks = {
            "client": (scheme, unquote(name), unquote(secret)) == ("Basic", CLIENT, SECRET),
            "grant": form.get("grant_type") == "authorization_code",
            "code": query is not None,
            "redirect": query is not None and form.get("redirect_uri") == query["redirect_uri"],
            "verifier": query is not None and challenge == query["code_challenge"],
        }
        self.refused += [check for check, passed in checks.items() if not passed]
        if query is None or not all(checks.values()):
            return JSONResponse({"error": "invalid_grant"}, 400)
        now = int(time.time())
        claims = {
            "iss": self.issuer,
            "aud": CLIENT,
            "sub": "1234",
            "iat": now,
            "exp": now + 300,
            "nonce": query["nonce"],
            "email": "ben@example.org",
            "email_verified": True,
        } | self.changes
        claims = {key: value for key, value in claims.items() if value is not None}
        header = {"alg": self.algorithm, "kid": (self.signer or self.key).kid}
        token = jwt.encode(header, claims, self.signer or self.key, algorithms=[self.algorithm])
        return JSONResponse({"access_token": "x", "token_type": "Bearer", "id_token": token})

    async def _document(self, _: Request) -> Response:
        names = ("authorization", "token")
        endpoints = {f"{name}_endpoint": f"{self.issuer}/{name}" for name in names}
        keys = {"issuer": self.issuer, "jwks_uri": f"{self.issuer}/keys"}
        return JSONResponse(endpoints | keys | self.metadata)

    async def _published(self, _: Request) -> Response:
        return JSONResponse({"keys": [self.key.as_dict(private=False)]})

    def application(self) -> Starlette:
        """Return the endpoints that the client calls."""
        return Starlette(
            routes=[
                Route("/.well-known/openid-configuration", self._document),
                Route("/keys", self._published),
                Route("/token", self._token, methods=["POST"]),
            ]
        )


@asynccontextmanager
async def providing() -> AsyncIterator[FakeProvider]:
    """Run a provider."""
    provider = FakeProvider()
    listener = bind(("127.0.0.1", 0), "test")
    provider.issuer = f"http://127.0.0.1:{listener.getsockname()[1]}"
    server = HttpServer(provider.application(), listener)
    task = asyncio.create_task(server.run())
    try:
        yield provider
    finally:
        server.stop.set()
        await task
