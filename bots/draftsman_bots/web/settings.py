"""The web inbox."""

from __future__ import annotations

import ipaddress
from typing import TYPE_CHECKING, Annotated, Final, Self
from urllib.parse import urlsplit

from pydantic import AfterValidator, Field, field_validator

from draftsman.field_errors import matching
from draftsman.settings.addresses import Listen, address_of, web_address
from draftsman.settings.secret import SecretSettings
from draftsman.settings.section import ChannelSection, Section

if TYPE_CHECKING:
    from draftsman.settings import Settings

LOOPBACK: Final = frozenset({"localhost", "127.0.0.1", "::1"})
"""Hosts whose URL may begin with http."""


def _check_network(value: str) -> str:
    try:
        return str(ipaddress.ip_network(value))
    except ValueError:
        raise ValueError("must be an address or a network such as 10.0.0.0/8") from None


_Header = Annotated[str, matching(r"[A-Za-z][A-Za-z0-9-]{0,63}", "must be the name of a header")]
_Network = Annotated[str, AfterValidator(_check_network)]


class OidcSettings(Section):
    """An OpenID Connect provider that signs people in.

    Register the redirect URI `url`/oidc/callback there. Unset: people sign in with a link or by the
    proxy.
    """

    issuer: str = Field(examples=["https://login.example.org"])
    """The issuer, exactly as the provider names it."""
    client_id: str = Field(min_length=1, max_length=300, examples=["draftsman"])
    """Id of this client."""
    client_secret: SecretSettings | None = Field(None, examples=[{"env": "OIDC_CLIENT_SECRET"}])
    """Secret of this client. Unset: a public client."""
    claim: str = Field("email", min_length=1, max_length=100)
    """Claim that names the account. An e-mail address has to be verified. Use no claim that people
    can change."""
    scopes: tuple[str, ...] = ("openid", "email", "profile")
    """Requested scopes; openid is required."""

    @field_validator("issuer")
    @classmethod
    def _check_issuer(cls, value: str) -> str:
        parts = urlsplit(web_address(value))
        if parts.scheme != "https" and parts.hostname not in LOOPBACK:
            raise ValueError("must begin with https://, except on localhost")
        return value

    @field_validator("scopes")
    @classmethod
    def _check_scopes(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        if "openid" not in value:
            raise ValueError("must contain openid")
        return value


class WebSettings(ChannelSection):
    """The web inbox, `draftsman web` (docs/web.md)."""

    table = "web"

    listen: Listen = "127.0.0.1:8421"
    """host:port of the HTTP server."""
    url: str | None = Field(None, examples=["https://draftsman.example.org"])
    """URL of the inbox in browsers: https, except on this machine. Unset: http:// and `listen`."""
    session: float = Field(604_800, ge=300, le=86_400 * 90)
    """Seconds after which a person signs in again."""
    trusted_proxies: tuple[_Network, ...] = ()
    """Addresses and networks of reverse proxies, whose headers X-Forwarded-For and proxy_header are
    believed. List only proxies that remove these headers from the requests of their clients."""
    proxy_header: _Header | None = Field(None, examples=["X-Forwarded-User"])
    """Header in which a trusted proxy names the account that it has signed in. Unset: people sign
    in with a link only."""
    proxy_secret: SecretSettings | None = Field(None, examples=[{"env": "DRAFTSMAN_PROXY_SECRET"}])
    """Secret that the proxy sends in the header X-Proxy-Secret, so that other programs on its
    machine cannot name an account. Unset: the address of the proxy is enough."""
    accounts: dict[str, str] = Field(default_factory=dict, examples=[{"anna@example.org": "anna"}])
    """Person of an account of a proxy or provider; other accounts must be names of people."""
    oidc: OidcSettings | None = None

    @classmethod
    def of(cls, settings: object) -> Self:
        """Return the table in the `Settings`, by default with its defaults."""
        return super().of(settings) or cls()

    @classmethod
    def in_use(cls, settings: Settings) -> Self:
        """Return the table with the URL of the inbox that runs on this machine, if one does."""
        from draftsman_bots.web.running import running_url  # not at each start of a command

        own = cls.of(settings)
        url = running_url(settings)
        return own if url is None else own.model_copy(update={"url": url})

    @field_validator("url")
    @classmethod
    def _check_url(cls, value: str | None) -> str | None:
        if value is None:
            return None
        parts = urlsplit(web_address(value))
        if parts.path.strip("/") or parts.query or parts.fragment:
            raise ValueError("must have no path: https://draftsman.example.org")
        if parts.scheme != "https" and parts.hostname not in LOOPBACK:
            raise ValueError("must begin with https://, except on localhost")
        return f"{parts.scheme}://{parts.netloc}".casefold()

    @property
    def address(self) -> tuple[str, int]:
        """Host and port of the HTTP server."""
        host, port = address_of(self.listen) or ("", 0)
        return host, port

    @property
    def origin(self) -> str:
        """The origin of the pages, without a slash at its end."""
        return self.url or f"http://{self.listen.casefold()}"

    def page(self, job: int, question: int = 0) -> str:
        """Return the URL of a job, or of its question; 0: of the inbox."""
        path = f"questions/{job}/{question}" if question else f"jobs/{job}" if job else ""
        return f"{self.origin}/{path}"

    @property
    def is_secure(self) -> bool:
        """Whether browsers reach the inbox over https."""
        return self.origin.startswith("https:")

    @property
    def trusts_this_machine(self) -> bool:
        """Whether every program of this machine can name the signed-in account."""
        if self.proxy_header is None or self.proxy_secret is not None:
            return False
        loopback = [ipaddress.ip_network(address) for address in ("127.0.0.0/8", "::1/128")]
        trusted = [ipaddress.ip_network(network) for network in self.trusted_proxies]
        return any(own.overlaps(other) for own in loopback for other in trusted)

    @property
    def is_local(self) -> bool:
        """Whether the server listens on this machine only."""
        return self.address[0] in LOOPBACK
