"""Repositories at URLs: pinned addresses and refused addresses."""

from __future__ import annotations

import ipaddress
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from draftsman.agent_runs.clones.source import RepoSource, route
from draftsman.agent_runs.clones.workspace import Workspace
from draftsman.errors import Failure
from draftsman.jobs.retries import ErrorClass, classify
from draftsman.outbound.egress_policy import IpAddress
from draftsman.settings.http import HttpSettings
from tests.core.worker.agent_jobs import git, make_repository
from tests.support.cases import cases
from tests.support.git_http import GitServer, git_server

ADDRESSES = {
    "public.test": "93.184.216.34 2606:2800:220:1::1",
    "internal.test": "10.0.0.7",
    "both.test": "10.0.0.7 93.184.216.34",
    "metadata.google.internal": "169.254.169.254",
    "localhost": "127.0.0.1 ::1",
    "rebound.test": "127.0.0.2",
}


async def fake(host: str, port: int) -> list[IpAddress]:
    """Resolve by the table above."""
    if host not in ADDRESSES:
        raise Failure(f"{host}: Name or service not known", origin="http", code="EAI_NONAME")
    return [ipaddress.ip_address(text) for text in ADDRESSES[host].split()]


SSH = """#!/bin/sh
printf '%s\\n' "$@" > {arguments}
for command; do :; done
exec sh -c "$command"
"""
"""A fake ssh, which stores its arguments and runs the remote command locally."""
REFUSED = """
    https://127.0.0.1/a/b
    https://127.0.0.1./a/b
    http://127.0.0.1:8080/a/b
    https://127.1/a/b
    https://2130706433/a/b
    https://0x7f000001/a/b
    https://0x7f.0.0.1/a/b
    https://0X7F.1/a/b
    https://0177.0.0.1/a/b
    https://017700000001/a/b
    https://127.0.0.1.0x0/a/b
    https://0/a/b
    https://0.0.0.0/a/b
    https://[::1]/a/b
    https://[::]/a/b
    https://[::ffff:127.0.0.1]/a/b
    https://[::ffff:7f00:1]/a/b
    https://[::ffff:a9fe:a9fe]/a/b
    https://[::127.0.0.1]/a/b
    https://[64:ff9b::7f00:1]/a/b
    https://[2002:7f00:1::]/a/b
    https://[fe80::1%25eth0]/a/b
    https://[fe80::1]/a/b
    https://[fd00:ec2::254]/latest/meta-data
    https://169.254.169.254/latest/meta-data
    https://2852039166/latest/meta-data
    https://0xa9fea9fe/latest/meta-data
    https://metadata.google.internal/computeMetadata/v1
    https://localhost/a/b
    https://LOCALHOST/a/b
    https://localhost./a/b
    https://10.0.0.1/a/b
    https://internal.test/a/b
    https://192.168.1.1/a/b
    https://100.64.0.1/a/b
    https://user@127.0.0.1/a/b
    https://public.test@127.0.0.1/a/b
    https://public.test:443@127.0.0.1/a/b
    https://127.0.0.1#@public.test/a/b
    https://127.0.0.1?@public.test/a/b
    https://127.0.0.1\\@public.test/a/b
    https://public.test%2f@127.0.0.1/a/b
    https://\uff11\uff12\uff17.\uff10.\uff10.\uff11/a/b
    https://①②⑦.⓪.⓪.①/a/b
    https://127。0。0。1/a/b
    https://ⓛocalhost/a/b
    https://%31%32%37.0.0.1/a/b
    https:///127.0.0.1/a/b
    git://127.0.0.1/a/b
    ssh://127.0.0.1/a/b
    ssh://git@localhost:22/a/b
    ssh://git@[::1]:22/a/b
    ssh://-oProxyCommand=x/a/b
    git@127.0.0.1:a/b
    git@localhost:a/b
    git@internal.test:a/b
    git@[::1]:a/b
    git@0x7f.1:a/b
    127.0.0.1:a/b
    -oProxyCommand=x:a/b
    ext::sh -c id
    ext::https://public.test/a/b
    fd::17/a
    file:///etc
    file://localhost/etc
    ftp://127.0.0.1/a
    gopher://127.0.0.1/a
    http::http://127.0.0.1/a
"""


@cases("url", [line.strip() for line in REFUSED.strip().splitlines()])
async def test_no_form_of_a_url_reaches_a_private_address(url: str) -> None:
    with pytest.raises(Failure) as refused:
        await route(url, HttpSettings(), fake)
    assert refused.value.code in {"address_refused", "url"}
    assert classify(refused.value) is ErrorClass.PERMANENT
    assert "\n" not in str(refused.value)


async def test_an_allowed_host_is_pinned_to_its_checked_address() -> None:
    allow = HttpSettings(allow=("internal.test",))
    web = await route("https://public.test/acme/pay", HttpSettings(), fake)
    assert web.url == "https://public.test/acme/pay"
    values = web.env.values()
    assert "public.test:443:93.184.216.34,[2606:2800:220:1::1]" in values
    assert "http.followRedirects" in values
    assert web.env["GIT_ALLOW_PROTOCOL"] == "https"
    mixed = await route("https://both.test:8443/acme/pay", HttpSettings(), fake)
    assert "both.test:8443:93.184.216.34" in mixed.env.values()
    ssh = await route("git@internal.test:acme/pay", allow, fake)
    assert "-oHostName=10.0.0.7" in ssh.env["GIT_SSH_COMMAND"]
    assert "-oHostKeyAlias=internal.test" in ssh.env["GIT_SSH_COMMAND"]
    assert ssh.env["GIT_ALLOW_PROTOCOL"] == "ssh"
    plain = await route("git://internal.test/acme/pay", allow, fake)
    assert plain.url == "git://10.0.0.7:9418/acme/pay"
    assert plain.env["GIT_OVERRIDE_VIRTUAL_HOST"] == "internal.test:9418"


async def test_an_unresolved_name_is_retried() -> None:
    with pytest.raises(Failure, match=r"nowhere\.test: Name or service not known") as failed:
        await route("https://nowhere.test/a/b", HttpSettings(), fake)
    assert classify(failed.value) is ErrorClass.TRANSIENT_INFRA


async def test_a_configured_proxy_resolves_names() -> None:
    proxied = HttpSettings(proxy="http://proxy.test:3128")
    proxied_route = await route("https://nowhere.test/a/b", proxied, fake)
    assert "http://proxy.test:3128" in proxied_route.env.values()
    with pytest.raises(Failure, match="loopback"):
        await route("https://127.0.0.1/a/b", proxied, fake)


@pytest.fixture
def forge(tmp_path: Path) -> Iterator[GitServer]:
    """Give a server with a repository `pay`."""
    (tmp_path / "served").mkdir()
    pay = make_repository(tmp_path / "served" / "pay")
    git("config", "http.receivepack", "true", cwd=pay)
    with git_server(tmp_path / "served") as forge:
        yield forge


def source(url: str, *allow: str) -> RepoSource:
    """Return a repository whose name is resolved by the table above."""
    return RepoSource(url, HttpSettings(allow=allow), fake)


async def fetched(at: RepoSource, tmp_path: Path) -> str:
    """Return the commit that a mirror fetched."""
    mirror = tmp_path / "mirror.git"
    git("init", "-q", "--bare", str(mirror), cwd=tmp_path)
    return await at.fetch(mirror, None, "refs/draftsman/test")


async def test_an_allowed_repository_is_cloned_and_pushed_to(
    forge: GitServer, tmp_path: Path
) -> None:
    url = f"http://127.0.0.1:{forge.port}/pay"
    http = HttpSettings(allow=("127.0.0.1",))
    space = await Workspace.prepare(tmp_path / "data", RepoSource.of(url, http), job=1, run=1)
    (space.path / "a.txt").write_text("two\n")
    snapshot = await space.snapshot("Count to two")
    await space.publish(snapshot)
    pushed = git("rev-parse", "draftsman/D-1", cwd=forge.folder / "pay")
    assert pushed == snapshot.commit


async def test_ssh_gets_the_checked_address_and_no_other_configuration(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    programs = tmp_path / "bin"
    programs.mkdir()
    ssh = programs / "ssh"
    ssh.write_text(SSH.format(arguments=tmp_path / "arguments"))
    ssh.chmod(0o755)
    monkeypatch.setenv("PATH", f"{programs}{os.pathsep}{os.environ['PATH']}")
    pay = make_repository(tmp_path / "pay")
    at = source(f"ssh://git@internal.test:2222{pay}", "internal.test:2222")
    assert await fetched(at, tmp_path) == git("rev-parse", "HEAD", cwd=pay)
    arguments = (tmp_path / "arguments").read_text().splitlines()
    expected = {"-oHostName=10.0.0.7", "-oPort=2222", "-oProxyCommand=none", "-oProxyJump=none"}
    assert expected <= set(arguments)
    assert "-oHostKeyAlias=[internal.test]:2222" in arguments
    assert "git@internal.test" in arguments
