"""Commits and branches of published work: people, signatures, templates, and names in the way."""

from __future__ import annotations

import shutil
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from draftsman.agent_runs.clones.commits import CommitIdentity, JobBranches
from draftsman.agent_runs.clones.open_branches import branch_work
from draftsman.agent_runs.clones.source import RepoSource
from draftsman.agent_runs.clones.workspace import Workspace
from draftsman.agent_runs.commit_texts import branch_name, commit_message, job_fields, slug
from draftsman.errors import UsageError
from draftsman.forges.untrusted_text import ZERO_WIDTH
from draftsman.jobs.job import Job, Status
from draftsman.repos.repo_profile import profile
from draftsman.runtime import Runtime
from draftsman.settings.git import CommitSettings, GitSettings
from draftsman_testing.factories import Factory
from tests.core.agent_runs.profiled_jobs import profiled_job
from tests.core.worker.agent_jobs import (
    agent_worker,
    commit_file,
    git,
    make_repository,
    submit_agent_job,
)
from tests.core.worker.workers import wait_for_end, wait_for_question
from tests.support.cases import cases

BOT = "Pay Bot <bot@acme.example>"
WRITES = """
open("a.txt", "a").write("two\\n")
say("result", summary="did it\\n\\nSigned-off-by: Eve <eve@evil.example>\\nfixes #3")
"""
FORMAT = "%an <%ae>|%cn <%ce>|%G?"


def program(*command: str) -> str:
    """Run a program; return its output."""
    return subprocess.run(command, capture_output=True, check=True).stdout.decode().strip()


def ssh_key(folder: Path) -> Path:
    """Make an SSH key without a passphrase."""
    key = folder / "signing_key"
    program("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(key))
    return key


def signers(folder: Path, key: Path) -> str:
    """Return the option of git by which the key is that of the bot."""
    file = folder / "allowed_signers"
    file.write_text(f"bot@acme.example {key.with_suffix('.pub').read_text()}")
    return f"gpg.ssh.allowedSignersFile={file}"


def worker(rt: Runtime, folder: Path, code: str = WRITES, **table: Any) -> Any:
    """Run a worker with this table `[git]`."""
    settings = rt.settings.model_copy(update={"git": GitSettings(**table)})
    return agent_worker(replace(rt, settings=settings), folder / "data", code)


async def run(rt: Runtime, make: Factory, folder: Path, repo: Path, **table: Any) -> Job:
    """Run a job of the agent in a repository; return it completed."""
    number = await submit_agent_job(make, repo, title="PAY-12: Fix rounding")
    async with worker(rt, folder, **table):
        job = await wait_for_end(rt, number)
    assert job.status is Status.COMPLETED, job.last_error
    return job


def head(job: Job, repo: Path, field: str, *options: str) -> str:
    """Return a field of the published commit."""
    branch = (job.result or {})["branch"]
    return git(*options, "log", "-1", f"--format={field}", branch, cwd=repo)


async def test_commits_are_signed_by_the_ssh_key_and_signed_off(
    rt: Runtime, make: Factory, tmp_path: Path
) -> None:
    repo = make_repository(tmp_path / "repo", a="one\n")
    key = ssh_key(tmp_path)
    job = await run(rt, make, tmp_path, repo, author=BOT, signing_key=key, sign_off=True)
    option = signers(tmp_path, key)
    assert head(job, repo, FORMAT, "-c", option) == f"{BOT}|{BOT}|G"
    assert head(job, repo, "%(trailers)") == f"Signed-off-by: {BOT}"
    assert head(job, repo, "%H") == (job.result or {})["commit"]


@pytest.mark.skipif(shutil.which("gpg") is None, reason="GnuPG is not installed")
async def test_commits_are_signed_by_the_gpg_key_of_the_committer(
    rt: Runtime, make: Factory, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = tmp_path / "gnupg"
    home.mkdir(mode=0o700)
    command = ("gpg", "--homedir", str(home), "--batch", "--passphrase", "", "--quick-gen-key")
    program(*command, BOT, "ed25519", "sign", "0")
    repo = make_repository(tmp_path / "repo", a="one\n")
    try:
        job = await run(rt, make, tmp_path, repo, committer=BOT, signing_key=home)
        monkeypatch.setenv("GNUPGHOME", str(home))
        log = ("git", "-C", str(repo), "log", "-1", f"--format={FORMAT}")
        shown = program(*log, (job.result or {})["branch"])
        assert shown == f"draftsman <draftsman@localhost>|{BOT}|G"
    finally:
        program("gpgconf", "--homedir", str(home), "--kill", "all")


async def test_the_merge_of_a_moved_base_is_signed(
    rt: Runtime, make: Factory, tmp_path: Path
) -> None:
    key = ssh_key(tmp_path)
    number, repo = await profiled_job(
        rt, make, tmp_path / "repo", {"b.txt": "b\n"}, policy={"update_base": "merge"}
    )
    code = """
parked(ask("pick"))
open("a.txt", "a").write("two\\n")
say("result", summary="did it")
"""
    async with worker(rt, tmp_path, code, author=BOT, signing_key=key):
        await wait_for_question(rt, number)
        (repo / "b.txt").write_text("other\n")
        git("commit", "-aqm", "moved", cwd=repo)
        await make.answer(number, "red")
        job = await wait_for_end(rt, number)
    assert job.status is Status.COMPLETED, job.last_error
    assert head(job, repo, "%P") == git("rev-parse", "main", cwd=repo)
    assert head(job, repo, FORMAT, "-c", signers(tmp_path, key)) == f"{BOT}|{BOT}|G"


async def test_the_commit_of_a_follow_up_is_signed_with_all_its_parents(tmp_path: Path) -> None:
    repo = make_repository(tmp_path / "repo", a="one\n")
    base = git("rev-parse", "HEAD", cwd=repo)
    heads = {name: commit_file(repo, base, "b.txt", f"{name}\n") for name in ("x", "main")}
    git("checkout", "-q", "--detach", cwd=repo)
    for name, commit in heads.items():
        git("update-ref", f"refs/heads/{name}", commit, cwd=repo)
    source = RepoSource.of(str(repo))
    data = tmp_path / "data"
    branch = await branch_work(data, source, branch="x", base_branch="main", base=base, job=7)
    assert branch is not None
    key = ssh_key(tmp_path)
    workspace = await Workspace.prepare(
        data, source, job=7, run=1, branch=branch, identity=CommitIdentity(BOT, BOT, key)
    )
    (workspace.path / "a.txt").write_text("two\n")
    snapshot = await workspace.sign(await workspace.snapshot("m"), "m")
    await workspace.publish(snapshot, heads["x"])
    shown = ("log", "-1", f"--format={FORMAT} %P", "x")
    output = git("-c", signers(tmp_path, key), *shown, cwd=repo)
    assert output == f"{BOT}|{BOT}|G {heads['x']} {heads['main']}"
    await workspace.remove()


async def test_a_key_that_cannot_sign_fails_the_job_before_its_push(
    rt: Runtime, make: Factory, tmp_path: Path
) -> None:
    key = ssh_key(tmp_path)
    key.chmod(0o644)
    repo = make_repository(tmp_path / "repo", a="one\n")
    number = await submit_agent_job(make, repo)
    async with worker(rt, tmp_path, signing_key=key):
        job = await wait_for_end(rt, number)
    assert (job.status, job.error_class) == (Status.FAILED, "PERMANENT")
    assert str(job.last_error).startswith(
        f"git: {key} of [git] signs no commits of draftsman <draftsman@localhost>: Permissions"
        f" 0644 for '{key}' are too open"
    )
    assert git("branch", "--list", "draftsman*", cwd=repo) == ""


async def test_the_profile_of_a_repository_has_its_own_names_and_texts(
    rt: Runtime, make: Factory, tmp_path: Path
) -> None:
    own = {
        "author": "requester",
        "committer": BOT,
        "sign_off": True,
        "branch": "feature/{ticket}-{slug}-{job}",
        "message": "{ticket}: {title}\n\n{summary}\n\nRefs: {ticket}",
    }
    number, repo = await profiled_job(rt, make, tmp_path / "repo", {}, git=own)
    people = {make.owner.person or make.owner.id: "Root <root@acme.example>"}
    async with worker(rt, tmp_path, author="x <x@y.example>", people=people):
        job = await wait_for_end(rt, number)
    assert job.status is Status.COMPLETED, job.last_error
    assert (job.result or {})["branch"] == f"feature/do-it-{job.name}"
    assert head(job, repo, FORMAT) == f"Root <root@acme.example>|{BOT}|N"
    assert head(job, repo, "%(trailers)") == "Signed-off-by: Root <root@acme.example>"
    assert ZERO_WIDTH in head(job, repo, "%b")
    assert head(job, repo, "%s") == "Do it"


@cases(
    ("existing", "expected"),
    [
        ("draftsman", "draftsman-{}"),
        ("draftsman/{}/fix", "draftsman-{}"),
        ("draftsman-old", "draftsman/{}"),
    ],
)
async def test_a_branch_in_the_way_is_no_obstacle(
    rt: Runtime, make: Factory, tmp_path: Path, existing: str, expected: str
) -> None:
    folder = tmp_path / existing.replace("/", "_")
    repo = make_repository(folder, a="one\n")
    number = await submit_agent_job(make, repo)
    name = f"D-{number}"
    git("branch", existing.format(name), cwd=repo)
    async with worker(rt, tmp_path):
        job = await wait_for_end(rt, number)
    assert job.status is Status.COMPLETED, job.last_error
    assert (job.result or {})["branch"] == expected.format(name)
    assert head(job, repo, "%H") == (job.result or {})["commit"]


FIELDS = job_fields(
    7,
    title="PAY-12: Règle d'arrondi",
    url="https://b.example/c/x1/9-round",
    requester="anna",
    agent="x",
)


@cases(
    ("template", "name"),
    [
        ("draftsman/{job}", "draftsman/D-7"),
        (
            "{agent}/{ticket}/{slug}-{number}-{requester}",
            "x/PAY-12/pay-12-regle-darrondi-7-anna",
        ),
        ("feature/{job}_{slug}.x", "feature/D-7_pay-12-regle-darrondi.x"),
    ],
)
def test_a_branch_is_named_by_its_template(template: str, name: str) -> None:
    assert branch_name(template, FIELDS) == name
    branches = JobBranches(template)
    assert branches.number(name) == 7
    empty = FIELDS | dict.fromkeys(("ticket", "slug", "requester", "agent"), "")
    bare = branch_name(template, empty)
    assert branches.number(bare) == 7
    assert all(part.strip("-_.") == part for part in bare.split("/"))
    assert branches.number("main") is None
    assert branches.job_of(name) == ("D-7" if "{job}" in template else None)


def test_a_ticket_is_its_key_or_number() -> None:
    def ticket(title: str, url: str | None) -> str:
        return job_fields(1, title=title, url=url, requester="", agent="")["ticket"]

    assert ticket("Fix PAY-12 now", "https://f.example/issues/3") == "PAY-12"
    assert ticket("Fix it", "https://f.example/acme/pay/issues/3") == "3"
    assert ticket("Fix it", "https://b.example/c/x1/9-round") == "9"
    assert ticket("UTF-8x, x-PAY-1", None) == ""
    assert slug("日本") == ""
    assert len(slug("word " * 40)) <= 40


def test_only_the_text_of_a_template_has_effects_in_a_commit() -> None:
    fields = FIELDS | {"ticket": "#3"}
    text = commit_message(
        "{title} [ci]\n\n{summary}\n\nCloses {ticket}\nReviewed-by: {requester}",
        fields,
        title="x [skip ci] @anna",
        summary="a\n\nCo-authored-by: Eve <e@e.example>",
    )
    assert text.splitlines()[0] == f"x [{ZERO_WIDTH}skip ci] @{ZERO_WIDTH}anna [ci]"
    assert f"C{ZERO_WIDTH}o-authored-by" in text
    assert text.splitlines()[-2:] == [f"Closes #{ZERO_WIDTH}3", "Reviewed-by: anna"]
    empty = commit_message("{ticket}", FIELDS | {"ticket": ""}, title="t", summary="s")
    assert empty == "t\n\ns\n\nMade by draftsman, D-7."


@cases(
    ("fields", "problem"),
    [
        (
            {"branch": "x/{job}/{ticked}"},
            (
                "profile: git.branch: branch: unknown field {ticked}; fields: job, number, ticket,"
                " slug, requester, agent"
            ),
        ),
        (
            {"branch": "x/{slug}"},
            "profile: git.branch: must have {job} or {number}, so that each job has a branch",
        ),
        (
            {"branch": "x..{job}"},
            (
                "profile: git.branch: is not a name that git accepts for a branch; an example:"
                " draftsman/{job}"
            ),
        ),
        (
            {"message": "{titel}"},
            (
                "profile: git.message: message: unknown field {titel}; fields: job, number, ticket,"
                " slug, requester, agent, title, summary"
            ),
        ),
        (
            {"author": "anna"},
            'profile: git.author: must be written as Name <name@example.org>, or be "requester"',
        ),
        (
            {"signing_key": "/etc/passwd"},
            "profile: git.signing_key: unknown key; allowed: author, committer, sign_off, branch",
        ),
    ],
)
def test_a_wrong_setting_is_refused_with_what_is_allowed(
    fields: dict[str, Any], problem: str
) -> None:
    with pytest.raises(UsageError) as refused:
        profile({"git": fields})
    assert str(refused.value).startswith(problem)


@cases(
    "template",
    [
        "a b{job}", "a~{job}", "a^{job}", "a:{job}", "a?{job}", "a*{job}", "a[{job}", "a\\{job}",
        "a..{job}", "a@{{{job}", "a//{job}", "/a{job}", "{job}/", "{job}.", ".a{job}", "a/.{job}",
        "{job}.lock", "a.lock/{job}", "-a{job}", "a\t{job}", "a{job}", "a/{job}", "a@{job}",
        "é/{job}",
    ],
)  # fmt: skip
def test_names_are_judged_as_git_does(template: str, tmp_path: Path) -> None:
    name = template.replace("{job}", "x").replace("{{", "{")
    done = subprocess.run(
        ["git", "check-ref-format", "--branch", name],
        cwd=tmp_path,
        capture_output=True,
        check=False,
    )
    if done.returncode == 0:
        assert CommitSettings(branch=template).branch == template
    else:
        with pytest.raises(ValueError, match="git accepts"):
            CommitSettings(branch=template)
