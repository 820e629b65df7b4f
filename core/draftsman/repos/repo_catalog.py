"""Catalog of repositories, and the resolution of a request's repository."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from typing import Any, Final, TypeVar

from draftsman.errors import CommandHint, UnknownRepo, UsageError
from draftsman.repos.repo_url import RepoUrl, find_repo_urls, is_repo_url, parse, repo_name

K = TypeVar("K")
V = TypeVar("V")
Label = tuple[str, str]
"""Id and name of a label on a card."""
CONFIDENCE: Final = {
    "explicit": 1.0,
    "asked": 1.0,
    "label_id": 1.0,
    "label_name": 0.9,
    "url": 0.8,
    "default": 0.5,
}
"""Confidence of each method: a label's name is ambiguous between boards, and a URL may be
incidental."""
METHODS: Final = tuple(CONFIDENCE)
RepoName = tuple[str | None, str | None, str | None]
"""Host in lower case, owner and name of a repository; a local folder has neither host nor owner."""
NO_REPO: Final[RepoName] = (None, None, None)
FOLDER_SEPARATOR: Final = "//"
"""Separator between a repository and its folder: `acme/mono//services/api`."""


@dataclass(frozen=True, slots=True)
class Repo:
    """A repository; `id` is None for a repository that is known by its URL only."""

    id: int | None
    host: str
    owner: str
    name: str
    remote_url: str
    default_branch: str | None = None
    is_default: bool = False
    added_by: str = ""
    created_at: datetime | None = None
    updated_at: datetime | None = None

    @property
    def full_name(self) -> str:
        """Return owner/name, or the name of a repository without an owner."""
        return f"{self.owner}/{self.name}" if self.owner else self.name

    @property
    def key(self) -> tuple[str, str, str]:
        """Key for the comparison of URLs."""
        return (self.host.casefold(), self.owner.casefold(), self.name.casefold())

    @classmethod
    def at(cls, address: RepoUrl) -> Repo:
        """Return the repository of a URL that is not in the catalog."""
        return cls(None, address.host, address.owner, address.name, address.url)


@dataclass(frozen=True, slots=True)
class LabelMapping:
    """A mapping of a label to a repository, or to a folder of it."""

    id: int
    label_id: str | None
    label_name: str | None
    repo: int
    path: str
    added_by: str
    created_at: datetime


@dataclass(frozen=True, slots=True)
class RepoLocation:
    """A repository, or a folder of it."""

    repo: Repo
    path: str = ""

    @property
    def name(self) -> str:
        """Display name: `acme/pay`, `acme/mono//services/api`."""
        return (
            f"{self.repo.full_name}{FOLDER_SEPARATOR}{self.path}"
            if self.path
            else self.repo.full_name
        )


@dataclass(frozen=True, slots=True)
class ResolvedRepo:
    """The repository of a request, with the confidence (0 to 1) and the method of METHODS."""

    repo: Repo
    confidence: float
    method: str
    path: str = ""

    @property
    def request(self) -> dict[str, Any]:
        """Return the fields `repo` and `resolution` of an invocation."""
        how = {"method": self.method, "confidence": self.confidence, "path": self.path}
        return {"repo": self.repo.remote_url, "resolution": how}


@dataclass(frozen=True, slots=True)
class AmbiguousRepo:
    """The repository is ambiguous and the job asks; without choices the catalog is empty."""

    choices: tuple[RepoLocation, ...]


@dataclass(frozen=True)
class Catalog:
    """Known repositories, label mappings, and folders with their own profile.

    Look-ups go by indexes: a process keeps a catalog of thousands for all of its requests.
    """

    repos: Sequence[Repo]
    mappings: Sequence[LabelMapping] = ()
    profile_paths: Sequence[tuple[int, str]] = ()

    @cached_property
    def locations(self) -> tuple[RepoLocation, ...]:
        """All repositories and folders."""
        return tuple(
            RepoLocation(repo, path)
            for repo in self.repos
            for path in ("", *sorted(self._folders.get(repo.id, ())))
        )

    @cached_property
    def by_id(self) -> Mapping[int | None, Repo]:
        """The repositories by their id."""
        return {repo.id: repo for repo in self.repos}

    @cached_property
    def by_key(self) -> Mapping[tuple[str, str, str], Repo]:
        """The repositories with a host, by their key."""
        return {repo.key: repo for repo in self.repos if repo.host}

    @cached_property
    def default(self) -> Repo | None:
        """The default repository."""
        return next((repo for repo in self.repos if repo.is_default), None)

    @cached_property
    def _by_url(self) -> Mapping[str, Repo]:
        return {repo.remote_url: repo for repo in self.repos}

    @cached_property
    def _by_name(self) -> Mapping[str, Sequence[Repo]]:
        return _grouped((repo.name.casefold(), repo) for repo in self.repos)

    @cached_property
    def _folders(self) -> Mapping[int | None, Sequence[str]]:
        return _grouped((repo, path) for repo, path in self.profile_paths if path)

    @cached_property
    def _by_label_id(self) -> Mapping[str, Sequence[RepoLocation]]:
        return self._mapped((item.label_id, item) for item in self.mappings)

    @cached_property
    def _by_label_name(self) -> Mapping[str, Sequence[RepoLocation]]:
        return self._mapped(
            (item.label_name and item.label_name.casefold(), item) for item in self.mappings
        )

    def named(self, name: str) -> Sequence[Repo]:
        """Return the repositories of this name, without their owner, in any case."""
        return self._by_name.get(name.casefold(), ())

    def find_by_name(self, name: str) -> list[RepoLocation]:
        """Find a name: `pay`, `acme/pay`, `host/acme/pay`, optionally with `//folder`."""
        repo_part, _, path = name.strip().partition(FOLDER_SEPARATOR)
        names = tuple(part.casefold() for part in repo_part.strip("/").split("/"))
        path = path.strip("/")
        matches = [repo for repo in self.named(names[-1]) if _ends_with(repo, names)]
        exact = [repo for repo in matches if repo.full_name.casefold() == "/".join(names)]
        return [
            RepoLocation(repo, path)
            for repo in exact or matches
            if not path or path in self._folders.get(repo.id, ())
        ]

    def of_label_ids(self, ids: Iterable[str]) -> list[RepoLocation]:
        """Return what the labels with these ids are mapped to."""
        return [location for id in ids for location in self._by_label_id.get(id, ())]

    def of_label_names(self, names: Iterable[str]) -> list[RepoLocation]:
        """Return what the labels with these names, in any case, are mapped to."""
        return [
            location for name in names for location in self._by_label_name.get(name.casefold(), ())
        ]

    def of(self, address: RepoUrl) -> Repo | None:
        """Return the known repository with this URL."""
        by_url = self._by_url.get(address.url)
        return by_url or (self.by_key.get(address.key) if address.host else None)

    def names_of(self, sources: Iterable[str]) -> dict[str, RepoName]:
        """Return the host, the owner and the name of each source.

        A known repository has the same name for all of its URLs.
        """
        names: dict[str, RepoName] = {}
        for source in sources:
            try:
                address = parse(source)
            except UsageError:  # a source that only git understands
                names[source] = (None, *repo_name(source))
                continue
            repo = self.of(address) or Repo.at(address)
            names[source] = (repo.host.casefold() or None, repo.owner or None, repo.name)
        return names

    def _mapped(
        self, labels: Iterable[tuple[str | None, LabelMapping]]
    ) -> Mapping[str, Sequence[RepoLocation]]:
        return _grouped(
            (label, RepoLocation(self.by_id[item.repo], item.path))
            for label, item in labels
            if label and item.repo in self.by_id
        )


EMPTY: Final = Catalog(())
"""A catalog without repositories: a repository is named by its URL."""


def _grouped(pairs: Iterable[tuple[K, V]]) -> dict[K, list[V]]:
    groups: dict[K, list[V]] = {}
    for key, value in pairs:
        groups.setdefault(key, []).append(value)
    return groups


def repo_columns(name: RepoName) -> dict[str, str | None]:
    """Return the columns of a job that has a repository of this name."""
    return dict(zip(("repo_host", "repo_owner", "repo_name"), name, strict=True))


def resolve(
    catalog: Catalog,
    *,
    explicit: str | None = None,
    labels: Iterable[Label] = (),
    text: str | None = None,
) -> ResolvedRepo | AmbiguousRepo:
    """Return the repository of a request: explicit > label id > label name > URL > default > ask.

    The first method with a match decides; several matches are ambiguous. Raises UnknownRepo for an
    unknown explicit name, UsageError for an invalid URL.
    """
    if explicit:
        return _explicit(catalog, explicit)
    labels = list(labels)
    default = catalog.default
    for method, locations in (
        ("label_id", catalog.of_label_ids(dict.fromkeys(id for id, _ in labels))),
        ("label_name", catalog.of_label_names(dict.fromkeys(name for _, name in labels))),
        ("url", _by_url(catalog, text or "")),
        ("default", [] if default is None else [RepoLocation(default)]),
    ):
        if locations:
            return _decided(method, locations)
    return AmbiguousRepo(catalog.locations)


def _explicit(catalog: Catalog, name: str) -> ResolvedRepo | AmbiguousRepo:
    if locations := catalog.find_by_name(name):
        return _decided("explicit", locations)
    if is_repo_url(name):
        address = parse(name)
        repo = catalog.of(address) or Repo.at(address)
        return ResolvedRepo(repo, CONFIDENCE["explicit"], "explicit")
    names = tuple(sorted(location.name for location in catalog.locations)[:20])
    without_user = " ".join(word.rpartition("@")[2] for word in name.split())[:60]
    raise UnknownRepo(
        f"unknown repository {without_user!r}; known: {', '.join(names) or 'none'}",
        known=names,
        hint=CommandHint("repos add", "PATH|URL", lead="use a URL, or run"),
    )


def _decided(method: str, locations: list[RepoLocation]) -> ResolvedRepo | AmbiguousRepo:
    unique = list(dict.fromkeys(locations))
    if len(unique) > 1:
        return AmbiguousRepo(tuple(unique))
    return ResolvedRepo(unique[0].repo, CONFIDENCE[method], method, unique[0].path)


def _by_url(catalog: Catalog, text: str) -> list[RepoLocation]:
    """Return the known repositories of the text's URLs, such as `…/pay/pull/12`."""
    locations = []
    for host, path in find_repo_urls(text):
        steps = [step.casefold() for step in path if step]
        for length in range(len(steps), 0, -1):
            *owner, name = steps[:length]
            if repo := catalog.by_key.get(
                (host.casefold(), "/".join(owner), name.removesuffix(".git"))
            ):
                locations.append(RepoLocation(repo))
                break
    return locations


def _ends_with(repo: Repo, names: tuple[str, ...]) -> bool:
    full = tuple(name for name in (repo.host, *repo.owner.split("/"), repo.name) if name)
    return tuple(name.casefold() for name in full)[-len(names) :] == names
