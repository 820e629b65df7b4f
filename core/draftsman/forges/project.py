"""Repositories on forges, matched by the host of their URL. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from urllib.parse import quote, unquote, urlsplit

from draftsman.errors import UsageError
from draftsman.repos import repo_url
from draftsman.text import is_link


@dataclass(frozen=True, slots=True)
class Project:
    """A repository on a forge: `acme/pay`, `team/sub/pay`."""

    owner: str
    name: str
    forge_url: str
    """URL of the forge, without a final slash."""
    takes_token: bool
    """Whether git uses the token: over HTTP, at the origin of the forge."""

    @property
    def path(self) -> str:
        """Return `acme/pay`."""
        return f"{self.owner}/{self.name}"

    @property
    def url(self) -> str:
        """URL of the repository for people."""
        return f"{self.forge_url}/{quote(self.path)}"


def find_project(forge_url: str, source: str) -> Project | None:
    """Return the repository at `source` on this forge; None if it is elsewhere.

    The token is only sent to the scheme, host and port of the forge: a URL with `http://` or an SSH
    port does not get it.
    """
    try:
        address = repo_url.parse(source)
    except UsageError:
        return None
    if not address.host or not address.owner:
        return None
    scheme, host, port = _split(forge_url)
    is_web = address.url.startswith(("https://", "http://"))
    origin = repo_url.parse(f"{scheme}://{_netloc(host, port)}/x/y").host if is_web else host
    if address.host.casefold() != origin.casefold():
        return None
    owner = address.owner
    if is_web and (prefix := urlsplit(forge_url).path.strip("/")):
        before, separator, owner = f"/{owner}/".partition(f"/{prefix}/")
        if before or not separator:
            return None
        owner = owner.strip("/")
    if not owner:
        return None
    takes_token = address.url.startswith(f"{scheme}://")
    return Project(owner, address.name, forge_url, takes_token)


def web_url_of(source: str) -> str | None:
    """Return the URL for people of a repository on a forge that is not configured.

    None for a folder.
    """
    address = repo_url.parse(source)
    if not address.host:
        return None
    return f"https://{address.host}/{quote(f'{address.owner}/{address.name}')}"


def is_page_of(repository_url: str, url: str) -> bool:
    """Return whether a URL is a page of the repository with this URL for people.

    Host, port and path are compared without case; a path with `..` may be another repository's.
    """
    if not is_link(url) or "\\" in url:
        return False
    page = urlsplit(url)
    repository = urlsplit(repository_url)
    segments = unquote(page.path).casefold().split("/")
    own = unquote(repository.path).casefold().split("/")
    return (
        page.netloc.casefold() == repository.netloc.casefold()
        and len(segments) > len(own)
        and segments[: len(own)] == own
        and not {".", ".."}.intersection(segments)
    )


def is_project(forge_url: str, path: str, host: str | None, name: str | None) -> bool:
    """Return whether a repository of this host is the repository `acme/pay` on this forge.

    The host may be that of its web server, with the port, or of its SSH server, without.
    """
    if host is None or name is None:
        return False
    sources = (f"{urlsplit(forge_url).scheme}://{host}/{name}", f"ssh://git@{host}/{name}")
    return source_of(forge_url, path, sources) is not None


def source_of(forge_url: str, path: str, sources: Iterable[str]) -> str | None:
    """Return the first of the sources that is the repository `acme/pay` on this forge."""
    for source in sources:
        project = find_project(forge_url, source)
        if project is not None and project.path.casefold() == path:
            return source
    return None


def _split(url: str) -> tuple[str, str, int | None]:
    split = urlsplit(url)
    return split.scheme, (split.hostname or "").casefold(), split.port


def _netloc(host: str, port: int | None) -> str:
    host = f"[{host}]" if ":" in host else host
    return host if port is None else f"{host}:{port}"
