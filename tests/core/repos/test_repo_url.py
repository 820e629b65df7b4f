"""URLs of repositories, in every form that people write."""

from __future__ import annotations

import string

import pytest
from hypothesis import given
from hypothesis import strategies as st

from draftsman.errors import UsageError
from draftsman.repos.repo_url import PORTS, find_repo_urls, is_repo_url, parse
from tests.support.cases import cases

NAME = st.text(string.ascii_letters + string.digits + "_-", min_size=1, max_size=20).filter(
    lambda name: not name.startswith("-")
)
NAMES = st.lists(NAME, min_size=1, max_size=3)
HOST = st.sampled_from(["github.com", "GitHub.com", "git.example.org", "10.0.0.1", "localhost"])
SECRET = st.text(string.ascii_letters + string.digits + "_-.", min_size=8, max_size=30)
TAIL = st.sampled_from(["", "/", ".git", ".git/", ".", ".git."])


@given(HOST, NAMES, NAME, TAIL)
def test_every_shape_names_the_same_repository(
    host: str, owner: list[str], name: str, tail: str
) -> None:
    path = f"{'/'.join(owner)}/{name}{tail}"
    shapes = [
        f"https://{host}/{path}",
        f"HTTPS://{host}:443/{path}",
        f"http://{host}/{path}",
        f"git://{host}:9418/{path}",
        f"ssh://git@{host}/{path}",
        f"ssh://git@{host}:2222/{path}",
        f"git@{host}:{path}",
        f"{host}.:/{path}",
        f"  https://{host}.//{path} ",
    ]
    expected = (host.lower(), "/".join(owner).casefold(), name.casefold())
    assert {parse(shape).key for shape in shapes} == {expected}
    assert all(is_repo_url(shape) for shape in shapes)


@given(st.sampled_from(["https", "http", "git"]), HOST, st.integers(1, 65535), NAME, NAME)
def test_a_port_of_its_own_is_another_server(
    scheme: str, host: str, port: int, owner: str, name: str
) -> None:
    own = port == PORTS[scheme]
    parsed = parse(f"{scheme}://{host}:{port}/{owner}/{name}")
    assert parsed.host == (host.lower() if own else f"{host.lower()}:{port}")
    assert parse(parsed.url) == parsed, "the URL for git names the same repository"


@given(SECRET, HOST, NAME, NAME, st.data())
def test_a_secret_is_refused_and_not_repeated(
    secret: str, host: str, owner: str, name: str, data: st.DataObject
) -> None:
    shapes = [
        f"https://{secret}@{host}/{owner}/{name}",
        f"https://x:{secret}@{host}/{owner}/{name}",
        f"https://:{secret}@{host}/{owner}/{name}",
        f"http://{secret}:@{host}/{owner}/{name}",
        f"ssh://git:{secret}@{host}/{owner}/{name}",
        f"git:{secret}@{host}:{owner}/{name}",
        f"git:{secret}@{host}/{owner}/{name}",
        f"https://{host}/{owner}/{name}?access_token={secret}",
        f"https://{host}/{owner}/{name}#{secret}",
        f"git@{host}:{owner}/{name}?{secret}",
        f"https//{secret}@{host}/{name}",
    ]
    with pytest.raises(UsageError) as refused:
        parse(data.draw(st.sampled_from(shapes)))
    assert secret not in str(refused.value)
    assert "\n" not in str(refused.value)


@cases("text", ["git:t0ken@host:a/b", "https://t@host/a/b", "ssh://a:b@host/c"])
def test_a_url_with_a_secret_is_refused_with_an_alternative(text: str) -> None:
    with pytest.raises(UsageError, match="may not contain a password; use git@HOST:OWNER/NAME"):
        parse(text)


@cases(
    "text",
    [
        *("", " ", "-oProxyCommand=x", "ext::sh -c id", "fd::17", "https://", "https:///acme/pay"),
        *("ftp://host/acme/pay", "ssh://-oProxyCommand=id/acme/pay", "git@-host:acme/pay"),
        *("https://host", "https://host/", "https://host/.git", "https://host/a/../b", "host:"),
        *("https://host/acme/%2e%2e", "https://host/a%2fb/%00", "https://host/acme/%0a"),
        *("https://host/acme/pa y", "https://host/acme/pay\x00", "https://host/acme\npay"),
        *("https://host:99999/a/b", "https://host:0/a/b", "https://[::1/a/b", "https://ho st/a/b"),
        *("acme/pay", "../pay", "~/pay", "pay", "/", "/..", "/tmp/../etc", "https://host/a/-b"),
        *("git@host:acme/pay'$(id)'", "https://host/$(id)/pay", "https://host/a\\b/c", "x" * 3000),
        *("ssh://git@ho|st/a/b", "ssh://a b@host/a/b", "host:a b", "https://host/\ufffd/b"),
    ],
)
def test_an_invalid_url_is_refused_in_one_line(text: str) -> None:
    with pytest.raises(UsageError) as refused:
        parse(text)
    assert len(str(refused.value).splitlines()) == 1
    assert len(str(refused.value)) < 250


@given(st.text())
def test_no_text_breaks_the_parsers(text: str) -> None:
    list(find_repo_urls(text))
    is_repo_url(text)
    try:
        parsed = parse(text)
    except UsageError:
        return
    assert parsed.name
    assert parse(parsed.url) == parsed


@cases(
    ("text", "expected"),
    [
        ("/home/anna/pay", ("", "pay", "/home/anna/pay")),
        ("/home/anna//pay.git/", ("", "pay", "/home/anna/pay.git")),
        ("file:///srv/my%20pay", ("", "my pay", "/srv/my pay")),
        ("https://dev.azure.com/o/my%20p/_git/r", ("o/my p/_git", "r", None)),
        ("ssh://git@[::1]:22/acme/pay", ("acme", "pay", "ssh://git@[::1]/acme/pay")),
        ("git@[::1]:acme/.github", ("acme", ".github", "git@[::1]:acme/.github")),
        ("host:/srv/git/pay.git", ("srv/git", "pay", "host:/srv/git/pay.git")),
    ],
)
def test_less_common_urls_are_parsed(text: str, expected: tuple[str, str, str | None]) -> None:
    parsed = parse(text)
    assert (parsed.owner, parsed.name, parsed.url) == (*expected[:2], expected[2] or text)


@cases(
    "text",
    [
        *(
            "see https://github.com/acme/pay.",
            "(https://github.com/acme/pay)",
            "x: git@github.com:acme/pay.git!",
        ),
        *("[the repo](https://github.com/acme/pay) is old", "<https://github.com/acme/pay|pay>"),
        *(
            "**https://github.com/acme/pay**",
            '"https://github.com/acme/pay"',
            "ssh://git@github.com/acme/pay?",
        ),
        *(
            "HTTPS://GITHUB.COM/acme/pay/",
            "https://github.com/acme/pay?tab=readme#top",
        ),
    ],
)
def test_a_mention_is_found_anywhere_in_a_text(text: str) -> None:
    [(host, path)] = find_repo_urls(text)
    assert (host, path[0], path[1].removesuffix(".git")) == ("github.com", "acme", "pay")


def test_a_mention_keeps_the_text_after_the_repository() -> None:
    text = "https://github.com/acme/pay/pull/12 and https://user:pw@github.com/acme/x and mail@a.b"
    assert list(find_repo_urls(text)) == [("github.com", ("acme", "pay", "pull", "12"))]


@cases("piece", ["a", "a@", "a@b", "https:/", "https://", "git@a:", "é.", "(", "/"])
def test_a_long_text_costs_no_more_than_its_length(piece: str) -> None:
    list(find_repo_urls(piece * 200_000))  # quadratic time would take hours here
