"""Sign-in by an OpenID Connect provider: authorization code flow with PKCE, state and nonce."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import secrets
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Final
from urllib.parse import quote, urlencode, urlsplit

import httpx
from joserfc import jwt
from joserfc.errors import JoseError
from joserfc.jwk import KeySet

from draftsman_bots.web.settings import LOOPBACK, OidcSettings

ALGORITHMS: Final = ("RS256", "PS256", "ES256")
CLOCK_SKEW: Final = 60
"""Seconds by which the clocks of the provider and this machine may differ."""
TIMEOUT: Final = 10.0
MAX_BYTES: Final = 1024 * 1024
"""Maximum size of a response of the provider."""
METADATA_AGE: Final = 3600.0
"""Seconds for which the metadata and the keys of the provider are kept."""
KEYS_AGE: Final = 60.0
"""Seconds between two requests for the keys, if a token names an unknown key."""


class OidcError(Exception):
    """A sign-in that the provider or this client refused, with the reason for the log."""


@dataclass(frozen=True, slots=True)
class SignInAttempt:
    """The secrets of an attempt, which only the browser of the attempt stores."""

    state: str
    nonce: str
    verifier: str
    next: str

    def encode(self) -> str:
        """Return the attempt as the value of a cookie."""
        return base64.urlsafe_b64encode(json.dumps(asdict(self)).encode()).decode()

    @classmethod
    def decode(cls, text: str) -> SignInAttempt | None:
        """Return the attempt of a cookie, None for any other text."""
        try:
            fields = json.loads(base64.urlsafe_b64decode(text))
            attempt = cls(**fields)
        except (ValueError, TypeError):
            return None
        return attempt if all(isinstance(value, str) for value in fields.values()) else None


class OidcProvider:
    """A provider, with its metadata and keys."""

    def __init__(self, settings: OidcSettings, secret: str | None, redirect_uri: str) -> None:
        self._settings = settings
        self._secret = secret
        self._redirect_uri = redirect_uri
        self._metadata: dict[str, Any] = {}
        self._read_at = 0.0
        self._keys: KeySet | None = None
        self._keys_at = 0.0

    async def begin(self, next_path: str) -> tuple[str, SignInAttempt]:
        """Return the URL of the provider for a new attempt; raises OidcError."""
        metadata = await self._discover()
        state, nonce, verifier = (secrets.token_urlsafe(32) for _ in range(3))
        attempt = SignInAttempt(state, nonce, verifier, next_path)
        challenge = hashlib.sha256(attempt.verifier.encode()).digest()
        parameters = {
            "response_type": "code",
            "client_id": self._settings.client_id,
            "redirect_uri": self._redirect_uri,
            "scope": " ".join(self._settings.scopes),
            "state": attempt.state,
            "nonce": attempt.nonce,
            "code_challenge": base64.urlsafe_b64encode(challenge).decode().rstrip("="),
            "code_challenge_method": "S256",
        }
        endpoint = str(metadata["authorization_endpoint"])
        return f"{endpoint}{'&' if '?' in endpoint else '?'}{urlencode(parameters)}", attempt

    async def finish(self, query: Mapping[str, str], attempt: SignInAttempt) -> str:
        """Return the account that the provider signed in; raises OidcError."""
        if not hmac.compare_digest(query.get("state", "").encode(), attempt.state.encode()):
            raise OidcError("the state is that of another attempt")
        metadata = await self._discover()
        issuer = query.get("iss")
        requires_issuer = metadata.get("authorization_response_iss_parameter_supported") is True
        if issuer != self._settings.issuer and (issuer is not None or requires_issuer):
            raise OidcError(f"the response is of another issuer: {issuer}")
        if "error" in query:
            raise OidcError(f"the provider refused: {query['error'][:100]}")
        if not query.get("code"):
            raise OidcError("the response has no code")
        token = await self._exchange(metadata, query["code"], attempt)
        return self._account(await self._claims(metadata, token, attempt.nonce))

    async def _exchange(
        self, metadata: Mapping[str, Any], code: str, attempt: SignInAttempt
    ) -> str:
        """Return the ID token for a code."""
        form = {
            "grant_type": "authorization_code",
            "code": code,
            "redirect_uri": self._redirect_uri,
            "code_verifier": attempt.verifier,
        }
        client = self._settings.client_id
        auth = None
        methods = metadata.get("token_endpoint_auth_methods_supported", ["client_secret_basic"])
        if self._secret is None:
            form["client_id"] = client
        elif "client_secret_basic" in methods:
            auth = httpx.BasicAuth(quote(client, safe=""), quote(self._secret, safe=""))
        else:
            form |= {"client_id": client, "client_secret": self._secret}
        answer = await _request("POST", metadata["token_endpoint"], data=form, auth=auth)
        if not isinstance(token := answer.get("id_token"), str):
            raise OidcError("the provider sent no ID token")
        return token

    async def _claims(self, metadata: Mapping[str, Any], token: str, nonce: str) -> dict[str, Any]:
        """Return the claims of a valid ID token."""
        client = self._settings.client_id
        rules = jwt.JWTClaimsRegistry(
            leeway=CLOCK_SKEW,
            iss={"essential": True, "value": self._settings.issuer},
            aud={"essential": True, "value": client},
            sub={"essential": True},
            exp={"essential": True},
            iat={"essential": True},
            nonce={"essential": True, "value": nonce},
        )
        for is_retry in (False, True):
            keys = await self._key_set(metadata, refresh=is_retry)
            try:
                claims: dict[str, Any] = jwt.decode(token, keys, algorithms=[*ALGORITHMS]).claims
                break
            except (JoseError, ValueError) as error:
                if is_retry:
                    raise OidcError(f"the ID token is not valid: {error}") from None
        try:
            rules.validate(claims)
        except JoseError as error:
            raise OidcError(f"the ID token is not valid: {error}") from None
        audience = claims["aud"]
        is_shared = isinstance(audience, list) and len(audience) > 1
        if claims.get("azp", None if is_shared else client) != client:
            raise OidcError("the ID token is of another client")
        return claims

    def _account(self, claims: Mapping[str, Any]) -> str:
        name = self._settings.claim
        value = claims.get(name)
        if not isinstance(value, str) or not value:
            raise OidcError(f"the ID token has no claim {name}")
        if name == "email" and claims.get("email_verified") is not True:
            raise OidcError("the e-mail address is not verified")
        return value

    async def _discover(self) -> dict[str, Any]:
        """Return the metadata of the provider."""
        if self._metadata and time.monotonic() < self._read_at + METADATA_AGE:
            return self._metadata
        issuer = self._settings.issuer
        url = f"{issuer.rstrip('/')}/.well-known/openid-configuration"
        metadata = await _request("GET", url)
        if metadata.get("issuer") != issuer:
            raise OidcError(f"the metadata is of another issuer: {metadata.get('issuer')}")
        for name in ("authorization_endpoint", "token_endpoint", "jwks_uri"):
            _check_endpoint(name, metadata.get(name))
        self._metadata = metadata
        self._read_at = time.monotonic()
        self._keys = None
        return metadata

    async def _key_set(self, metadata: Mapping[str, Any], *, refresh: bool) -> KeySet:
        age = time.monotonic() - self._keys_at
        if self._keys is None or (refresh and age > KEYS_AGE):
            document = await _request("GET", metadata["jwks_uri"])
            try:
                self._keys = KeySet.import_key_set(document)  # type: ignore[arg-type]
            except (JoseError, ValueError, KeyError, TypeError) as error:
                raise OidcError(f"the keys of the provider cannot be read: {error}") from None
            self._keys_at = time.monotonic()
        return self._keys


def _check_endpoint(name: str, url: Any) -> None:
    address = urlsplit(url) if isinstance(url, str) else None
    if address is None or (address.scheme != "https" and address.hostname not in LOOPBACK):
        raise OidcError(f"{name} of the provider is not an https URL")


async def _request(
    method: str,
    url: str,
    *,
    data: Mapping[str, str] | None = None,
    auth: httpx.BasicAuth | None = None,
) -> dict[str, Any]:
    """Return the JSON object of a successful response; follows no redirect."""
    try:
        async with (
            httpx.AsyncClient(timeout=TIMEOUT) as client,
            client.stream(
                method,
                url,
                data=data,
                auth=auth or httpx.USE_CLIENT_DEFAULT,
                headers={"accept": "application/json"},
            ) as response,
        ):
            body = b""
            async for part in response.aiter_bytes():
                body += part
                if len(body) > MAX_BYTES:
                    raise OidcError(f"the response of {url} is too large")
    except httpx.HTTPError as error:
        raise OidcError(f"{url} cannot be reached: {error!r}") from None
    if response.status_code != 200:
        raise OidcError(f"{url} answered with the status {response.status_code}")
    try:
        document = json.loads(body)
    except ValueError:
        document = None
    if not isinstance(document, dict):
        raise OidcError(f"the response of {url} is not a JSON object")
    return document
