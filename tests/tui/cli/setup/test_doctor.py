"""The `doctor` command: findings, suggested fixes and exit codes."""

from __future__ import annotations

import asyncio
import json
import subprocess
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from draftsman import __version__
from draftsman.database import session_settings
from draftsman.database.database import Connection
from draftsman.database.server_health import ServerHealth
from draftsman.deliveries.service.live_threads import LiveThreads
from draftsman.deliveries.store import rate_limits
from draftsman.jobs.requests.service.submissions import invocation
from draftsman.repos.repo_catalog import Repo
from draftsman.repos.repo_profile import RepoProfile
from draftsman.repos.repo_url import parse
from draftsman.runtime import Runtime
from draftsman_bots.trello import doctor
from draftsman_bots.trello.records.service import boards_of
from draftsman_testing.factories import Factory
from draftsman_testing.fake.faults import Fault
from draftsman_testing.trello import FakeTrello
from draftsman_tui.cli.setup.doctor import progress, vacuum_settings
from draftsman_tui.cli.setup.doctor_checks import Finding
from draftsman_tui.terminal import stdio
from draftsman_tui.terminal.output import check_lines
from tests.bots.trello.webhook_receiver import WebhookReceiver
from tests.core.forges.api_contract import forge_harness
from tests.support.cases import cases
from tests.support.clock import skip
from tests.support.server import Server
from tests.tui.cli.cli_runner import Cli, Terminal
from tests.tui.cli.conftest import As
from tests.tui.cli.trello_board import CliBoard


async def _checks(cli: Cli) -> dict[str, dict[str, Any]]:
    done = await cli("doctor", "--json")
    assert done.out, done.err
    document = json.loads(done.out)
    assert document["ok"] is (done.code == 0)
    return {check["name"]: check for check in document["checks"]}


async def test_commits_are_signed_and_verified(cli: Cli, tmp_path: Path) -> None:
    key = tmp_path / "signing_key"
    command = ("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(key))
    await asyncio.to_thread(subprocess.run, command, check=True)
    text = cli.config.read_text()
    assert "not signed" in (await _checks(cli))["commits"]["text"]
    bot = "Bot <bot@acme.example>"
    cli.config.write_text(f'git.author = "{bot}"\ngit.signing_key = "{key}"\n{text}')
    check = (await _checks(cli))["commits"]
    assert check["status"] == "ok"
    assert check["text"] == f"[git]: by {bot}, committed by {bot}, signed with {key}"
    key.write_text("no key")
    check = (await _checks(cli))["commits"]
    assert check["status"] == "fail"
    assert check["text"].startswith(f"git: {key} of [git] signs no commits of {bot}: ")
    cli.config.write_text(f"git.sign_off = true\n{text}")
    assert (await _checks(cli))["commits"]["status"] == "warn"


async def test_the_committer_of_each_profile_is_checked(
    cli: Cli, rt: Runtime, make: Factory, tmp_path: Path
) -> None:
    key = tmp_path / "signing_key"
    key.write_text("no key")
    for name, own in (("pay", {"committer": "Web <web@acme.example>"}), ("shop", {})):
        repo = Repo.at(parse(f"https://git.example/acme/{name}"))
        await rt.repos.add(repo, RepoProfile.model_validate({"git": own}), make.owner)
    cli.config.write_text(f'git.signing_key = "{key}"\n{cli.config.read_text()}')
    found = json.loads((await cli("doctor", "--json")).out)["checks"]
    texts = [item["text"] for item in found if item["name"] == "commits"]
    committers = ["Web <web@acme.example>", "draftsman <draftsman@localhost>"]
    assert [text.partition(" signs no commits of ")[2].partition(":")[0] for text in texts] == (
        committers
    )


async def test_a_valid_installation_has_no_failure(cli: Cli) -> None:
    checks_by_name = await _checks(cli)
    assert {name for name, check in checks_by_name.items() if check["status"] == "fail"} == set()
    assert {
        "configuration",
        "database",
        "migrations",
        "clock",
        "people",
        "git",
    } <= checks_by_name.keys()
    assert checks_by_name["configuration"]["text"] == str(cli.config)
    assert "you are root" in checks_by_name["people"]["text"]
    assert (checks_by_name["workers"]["status"], checks_by_name["workers"]["hint"]) == (
        "warn",
        "draftsman up",
    )
    assert "ignores instructions" in checks_by_name["default agent"]["text"]
    assert "add [agents.claude]" in checks_by_name["default agent"]["hint"]
    agent = checks_by_name["agent tidy"]
    assert (agent["status"], agent["text"].partition(": ")[0]) == ("ok", f"version {__version__}")
    assert (
        "escape" in checks_by_name["sandbox"]["text"]
        or checks_by_name["sandbox"]["status"] == "warn"
    )


async def test_missing_people_are_reported_with_the_way_to_add_them(
    as_: As, cli: Cli, tmp_path: Path, me: Any
) -> None:
    assert f'login = "{me.id}"' in (await _checks(as_(None)))["people"]["hint"]
    cli.config.write_text("", encoding="utf-8")
    done = await cli("doctor")
    assert done.code == 1
    assert "fail  people          no people are configured" in done.out
    assert f"[people.{me.id}]" in done.out
    assert done.err == "draftsman: 1 check failed\n"


@cases(
    ("autovacuum", "naptime", "text"),
    [
        (False, 5, "autovacuum does not run"),
        (True, 61, "autovacuum starts only every "),
        (True, 60, ""),
    ],
)
def test_a_server_whose_settings_delay_vacuum_is_a_warning(
    autovacuum: bool, naptime: float, text: str
) -> None:
    health = ServerHealth(
        version="18.1",
        clock=0,
        fsync="on",
        synchronous_commit="on",
        autovacuum=autovacuum,
        naptime=naptime,
        local=True,
        role="draftsman",
        kind="owner",
    )
    texts = [finding.text for finding in vacuum_settings(health)]
    assert [found[: len(text)] for found in texts] == ([text] if text else [])


async def test_what_people_paused_or_reserved_is_named_with_its_end(
    cli: Cli, make: Factory, rt: Runtime
) -> None:
    later = [await make.queued(queue="q") for _ in range(2)][1]
    await rt.queues.pause("q", make.owner, "db down")
    reserving = invocation(type="noop", queue="other")
    job, _ = await rt.reservations.submit(reserving, make.owner)
    await rt.job_control.pause(later, make.owner, "later")
    document = (await cli("doctor", "--json")).json
    assert document["ok"]
    found = {
        check["hint"]: (check["status"], check["text"])
        for check in document["checks"]
        if check["name"] in ("queues", "jobs")
    }
    assert found.keys() == {
        "draftsman queues resume q",
        "draftsman queues release other",
        f"draftsman resume D-{later}",
    }
    assert {status for status, _ in found.values()} == {"warn"}
    paused = found["draftsman queues resume q"][1]
    assert paused.startswith("the queue 'q' is paused since ")
    assert paused.endswith(" by root: db down; 2 jobs wait")
    assert f"for {job.name}" in found["draftsman queues release other"][1]
    assert found[f"draftsman resume D-{later}"][1].endswith(" by root: later")


async def test_an_old_transaction_is_named_with_the_way_to_end_it(
    cli: Cli, rt: Runtime, conn: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with rt.db.snapshot() as holding:
        await holding.execute("SET application_name = 'nightly dump'")
        await holding.execute("SELECT 1 FROM draftsman.jobs")
        assert "nightly dump" not in (await cli("doctor")).out
        monkeypatch.setattr("draftsman_tui.cli.setup.doctor.OLD_SNAPSHOT", 0.0)
        found = json.loads((await cli("doctor", "--json")).out)["checks"]
        texts = {check["text"]: check["hint"] for check in found if check["name"] == "vacuum"}
        (named,) = [text for text in texts if text.startswith("nightly dump has a transaction")]
        assert f"pg_terminate_backend({holding.info.backend_pid})" in texts[named]


async def test_a_method_that_slack_refused_is_a_warning(cli: Cli, rt: Runtime) -> None:
    live = LiveThreads(rt.db, rt.policy, "slack")
    refusal = "method_not_supported_for_channel_type (assistant.threads.setStatus)"
    await live.limits.pause("slack#assistant.threads.setStatus:C1", 86_400, refusal)
    await live.limits.pause("slack#chat.update", 60, "ratelimited (chat.update)")
    check = (await _checks(cli))["slack"]
    assert check["status"] == "warn"
    assert check["text"].startswith("assistant.threads.setStatus is not used in C1 for ")
    assert refusal in check["text"]
    assert check["hint"] == "messages are delivered without it; see: draftsman help --page slack"


async def test_a_place_that_is_not_used_for_a_while_is_a_warning(cli: Cli, rt: Runtime) -> None:
    async with rt.db.connection() as conn:
        await rate_limits.pause(conn, "webhook:ops", 7200, "503")
    check = (await _checks(cli))["webhook"]
    assert check["text"].startswith("webhook is not used in ops for ")
    assert check["hint"] == "messages are delivered without it"


async def test_an_unreachable_or_empty_database_is_a_finding(
    cli: Cli, empty_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DRAFTSMAN_DATABASE_URL", "postgresql://me:hush@127.0.0.1:1/x")
    done = await cli("doctor")
    assert done.code == 1
    assert "fail  database        the database cannot be reached" in done.out
    assert "ok    git" in done.out
    assert "hush" not in done.out + done.err
    monkeypatch.setenv("DRAFTSMAN_DATABASE_URL", empty_url)
    assert "draftsman migrate" in (await _checks(cli))["migrations"]["text"]


async def test_recipients_of_dead_letter_notifications_are_shown(
    as_: As, cli: Cli, make: Factory, rt: Runtime
) -> None:
    await make.queued()
    await make.queued(notify=("none",))
    checks_by_name = (await _checks(cli))["dead letters"]
    assert checks_by_name["status"] == "ok"
    assert checks_by_name["text"].endswith("notifications.jsonl; with --notify none: root (1 job)")
    with cli.config.open("a", encoding="utf-8") as config:
        config.write('\nnotifications.fallback = "none"\n')
    checks_by_name = (await _checks(cli))["dead letters"]
    assert (checks_by_name["status"], checks_by_name["hint"]) == (
        "warn",
        "set [notifications] targets or fallback",
    )
    assert checks_by_name["text"] == (
        "no notification for jobs submitted without --notify; unfinished jobs of root (1 job);"
        " with --notify none: root (1 job)"
    )


async def test_missing_programs_are_named(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    agents = [
        'agents.ghost.command = ["no-such-program"]',
        'agents.module.command = ["{python}", "-m", "no.such.module"]',
        'agents.leaky.command = ["{python}"]',
        'agents.leaky.env = { DATABASE_URL = "x" }',
    ]
    with cli.config.open("a", encoding="utf-8") as config:
        config.write("\n" + "\n".join(agents))
    monkeypatch.setenv("PATH", str(tmp_path))
    checks_by_name = await _checks(cli)
    assert "program 'no-such-program' not found" in checks_by_name["agent ghost"]["text"]
    assert "no module 'no.such.module'" in checks_by_name["agent module"]["text"]
    assert checks_by_name["agent leaky"]["status"] == "fail"
    default = checks_by_name["default agent"]
    assert default["text"] == (
        "not set; each request has to name an agent: ghost, leaky, module, tidy"
    )
    assert (default["status"], default["hint"]) == ("warn", "set default_agent, or use --agent")
    cli.config.write_text('default_agent = "ghost"\n' + cli.config.read_text())
    default = (await _checks(cli))["default agent"]
    assert (default["status"], default["text"]) == ("ok", "ghost")
    assert (checks_by_name["git"]["status"], checks_by_name["git"]["hint"]) == (
        "fail",
        "install git",
    )


async def test_an_unknown_variable_is_reported_with_the_nearest_name(
    cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DRAFTSMAN_SLOTS", "4")
    checks_by_name = (await _checks(cli))["environment"]
    assert (checks_by_name["status"], checks_by_name["hint"]) == (
        "warn",
        "did you mean DRAFTSMAN_WORKER__SLOTS?",
    )
    monkeypatch.delenv("DRAFTSMAN_DATABASE_URL")
    monkeypatch.setenv("DRAFTSMAN_DATABSE_URL", "postgresql://x/y")
    (await cli("jobs")).refused(2, "DRAFTSMAN_DATABSE_URL", "mean DRAFTSMAN_DATABASE_URL?")


async def test_the_files_of_calendars_are_read(
    cli: Cli, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    file = tmp_path / "holidays.ics"
    monkeypatch.setenv("DRAFTSMAN_HOLIDAYS", json.dumps({"berlin": {"file": str(file)}}))
    missing = (await _checks(cli))["holidays berlin"]
    assert (missing["status"], "No such file" in missing["text"]) == ("fail", True)
    file.write_text("<html>")
    invalid = (await _checks(cli))["holidays berlin"]
    assert (invalid["status"], "not a calendar" in invalid["text"]) == ("fail", True)
    day = f"{datetime.now(UTC):%Y}1231"
    file.write_text(
        "BEGIN:VCALENDAR\nVERSION:2.0\nPRODID:x\nBEGIN:VEVENT\nUID:1\nDTSTAMP:20260101T000000Z\n"
        f"DTSTART;VALUE=DATE:{day}\nRRULE:FREQ=YEARLY\nSUMMARY:Free\nEND:VEVENT\nEND:VCALENDAR\n"
    )
    found = (await _checks(cli))["holidays berlin"]
    assert (found["status"], "events from now on" in found["text"]) == ("ok", True)


@pytest.fixture
def shared() -> Iterator[Path]:
    """Return a folder outside /tmp, which is private to each run."""
    with tempfile.TemporaryDirectory(dir="/var/tmp") as name:
        Path(name).chmod(0o755)
        yield Path(name)


async def test_an_agent_that_cannot_be_started_is_reported(
    cli: Cli, shared: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Some of these programs are found here, but not in a run."""
    script = _program(shared / "home" / "agent", "#!/usr/bin/env sh\n")
    own = _program(shared / "own" / "interpreter", "#!/bin/sh\n")
    ghost = _program(shared / "home" / "ghost", f"#!{shared}/no/such/interpreter\n")
    _program(shared / "home" / "named", "#!/usr/bin/env interpreter\n")
    hidden = _program(shared / "home" / "hidden", f"#!{own}\n")
    private = _program(tmp_path / "private", "#!/bin/sh\n")
    plain = _program(shared / "plain", "#!/bin/sh\n", mode=0o644)
    commands = {
        "fine": [str(script)],
        "gone": [str(shared / "gone")],
        "folder": [str(shared)],
        "plain": [str(plain)],
        "script": ["{python}", "-u", "/no/such/agent.py"],
        "ghost": [str(ghost)],
        "private": [str(private)],
        "named": ["named"],
        "hidden": [str(hidden)],
        "here": ["./agent"],
        "clone": ["{python}", "agent.py"],
    }
    lines = [f"agents.{name}.command = {json.dumps(program)}" for name, program in commands.items()]
    with cli.config.open("a", encoding="utf-8") as config:
        config.write("\n" + "\n".join(lines))
    monkeypatch.setenv("PATH", f"{own.parent}:{script.parent}", prepend=":")
    monkeypatch.chdir(script.parent)
    checks_by_name = await _checks(cli)
    findings = {name: checks_by_name[f"agent {name}"] for name in commands}
    hides = checks_by_name["sandbox"]["text"].startswith(("bwrap", "landlock"))
    assert {name: check["status"] for name, check in findings.items()} == {
        **dict.fromkeys(commands, "fail"),
        **({} if hides else dict.fromkeys(("named", "hidden"), "ok")),
        "fine": "ok",
        "private": "ok",
        "here": "warn",
        "clone": "warn",
    }
    for name, text in (
        ("gone", f"program '{shared}/gone' not found"),
        ("folder", f"{shared} is a folder, not a program"),
        ("plain", f"{plain} is not executable; run: chmod +x {plain}"),
        ("script", "cannot run /no/such/agent.py: no such file"),
        ("ghost", f"{shared}/no/such/interpreter (in the first line of {ghost})"),
        *([("hidden", f"{own} (in the first line of {hidden})")] if hides else ()),
        *([("named", "interpreter (in the first line of")] if hides else ()),
        ("here", "resolved from the folder where the worker is started"),
        ("clone", "'agent.py' is a relative path, resolved in the repository"),
    ):
        assert text in findings[name]["text"], name


def _program(path: Path, text: str, mode: int = 0o755) -> Path:
    """Write a program; return its path."""
    path.parent.mkdir(exist_ok=True)
    path.write_text(text, encoding="utf-8")
    path.chmod(mode)
    return path


@pytest.mark.parametrize(("version", "status"), [("2.31.9", "fail"), ("2.32.0", "ok")])
async def test_an_old_git_is_reported(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, version: str, status: str
) -> None:
    git = tmp_path / "git"
    git.write_text(f"#!/bin/sh\necho git version {version}\n", encoding="utf-8")
    git.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    assert (await _checks(cli))["git"]["status"] == status


async def test_an_unreachable_listen_url_is_reported(
    cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DRAFTSMAN_LISTEN_URL", "postgresql://127.0.0.1:1/x")
    checks_by_name = (await _checks(cli))["notifications"]
    assert (checks_by_name["status"], checks_by_name["text"][:10]) == ("fail", "listen_url")


async def test_settings_of_the_role_and_the_database_are_named(
    cli: Cli, server: Server, database: str
) -> None:
    """Those that draftsman replaces are none of the administrator's business."""
    assert "settings" not in await _checks(cli)
    server.set(database, "default_transaction_read_only", "on")
    server.set(database, "work_mem", "64kB")
    server.set(database, "datestyle", "German")
    try:
        check = (await _checks(cli))["settings"]
    finally:
        server.admin.execute(f'ALTER DATABASE "{database}" RESET ALL')
    named = "default_transaction_read_only=on, work_mem=64kB"
    assert (check["status"], check["text"]) == (
        "warn",
        f"defined for the database or the role: {named}",
    )


async def test_a_pooler_without_listen_url_is_reported(
    cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    """PgBouncer itself is in tests/soak/soak_pooler.py; here the server drops the mark."""
    monkeypatch.setattr(session_settings, "start_up_options", lambda settings: "-c geqo=on")
    checks_by_name = await _checks(cli)
    for name in ("migrations", "notifications"):
        assert checks_by_name[name]["status"] == "fail"
        assert "transaction pooler" in checks_by_name[name]["text"]
    assert "--page connections" in checks_by_name["notifications"]["hint"]


async def test_violated_invariants_are_shown_with_their_rows(
    cli: Cli, make: Factory, conn: Connection
) -> None:
    await make.completed()
    assert "invariants hold" in (await cli("doctor", "--invariants")).out
    assert (await cli("doctor", "--invariants", "--json")).json["broken"] == []
    number = await make.queued()
    await conn.execute("ALTER TABLE draftsman.job_runs DISABLE TRIGGER USER")
    await conn.execute(
        "INSERT INTO draftsman.job_runs (job, ordinal, worker_id, lease_token, status, finished_at)"
        " VALUES (%s, 7, gen_random_uuid(), 1, 'failed', draftsman.now())",
        (number,),
    )
    done = await cli("doctor", "--invariants")
    assert done.code == 1
    assert f"D-{number}  run_count_is_the_newest_run  run_count 0, newest run 7" in done.out
    assert done.err == "draftsman: 1 row violates an invariant\n"


async def _trello(cli: Cli) -> list[tuple[str, str]]:
    checks_by_name = json.loads((await cli("doctor", "--json")).out)["checks"]
    return [
        (check["status"], check["text"]) for check in checks_by_name if check["name"] == "trello"
    ]


async def test_a_configured_trello_is_checked(
    board: CliBoard, trello: FakeTrello, rt: Runtime, conn: Connection
) -> None:
    [account_check, none, _] = await _trello(board.cli)
    assert (account_check[0], trello.username(trello.bot_member) in account_check[1]) == (
        "ok",
        True,
    )
    assert none == ("warn", "no board is watched, so no card creates a job")
    await board.added()
    assert ("warn", "board Work was never polled") in await _trello(board.cli)
    now = await boards_of(rt).clock()
    await boards_of(rt).baseline(board.board, [], now, now)
    assert ("ok", "board Work: 1 label(s) create jobs") in await _trello(board.cli)
    await conn.execute(
        "UPDATE draftsman.trello_poll_cursors SET polled_at = draftsman.now() - interval '10 min'"
    )
    text = "board Work was last polled 10 min ago"
    assert ("warn", text) in await _trello(board.cli)
    trello.delete_label(board.label)
    done = await board.cli("doctor")
    assert (done.code, "no longer has the label 'draftsman'" in done.out) == (1, True)
    assert f"→ draftsman boards set {board.board}" in done.out


async def test_what_boards_share_is_read_once(board: CliBoard, trello: FakeTrello) -> None:
    await board.added()
    other = trello.board("Shop", [board.anna])
    trello.label(other, "draftsman")
    await board("add", trello.board_url(other))
    seen = len(trello.calls)
    await board.cli("doctor")
    paths = Counter(call.path for call in trello.calls[seen:] if "/tokens/" in call.path)
    assert len(paths) == 2
    assert {*paths.values()} == {1}


async def test_a_slow_check_shows_its_time(
    terminal: Callable[..., Terminal], monkeypatch: pytest.MonkeyPatch
) -> None:
    written: asyncio.Queue[str] = asyncio.Queue()
    monkeypatch.setattr(stdio, "write_stderr", written.put_nowait)
    findings: list[Finding] = []
    async with progress(findings, on_screen=True) as clear:
        for count, seconds, line in (
            (0, 90, "0 results; the next check: 90 s"),
            (1, 600, "1 result; the next check: 10 min"),
        ):
            await asyncio.sleep(0)  # it waits for the next update
            findings[:] = [Finding("a", "ok", "b")] * count
            skip(seconds)
            assert await written.get() == f"\r{line}\x1b[K"
            clear()
            assert await written.get() == "\r\x1b[K"
    async with progress(findings, on_screen=False) as clear:
        skip(90)
        await asyncio.sleep(0)
        clear()
        assert written.get_nowait() == "\r\x1b[K", "the end of the first"
    assert written.empty()
    shown = terminal("doctor")
    await asyncio.to_thread(shown.end)
    assert "\r\x1b[K" in shown.screen
    document = terminal("doctor", "--json")
    await asyncio.to_thread(document.end)
    assert "\r\x1b[K" not in document.screen


@cases("width", [60, 120])
def test_the_further_lines_of_a_result_are_indented(width: int) -> None:
    console = Console(file=StringIO(), width=width)
    for part in check_lines("warn", "one word after another " * 12, "a hint", "database"):
        console.print(part)
    first, *others, hint = console.file.getvalue().splitlines()  # type: ignore[attr-defined]
    assert first.startswith("warn  database        one word")
    assert others
    assert all(line.startswith(" " * 22) for line in others)
    assert hint.strip() == "→ a hint"


async def test_a_hanging_trello_is_reported(
    board: CliBoard, trello: FakeTrello, monkeypatch: pytest.MonkeyPatch
) -> None:
    await board.added()
    monkeypatch.setattr(doctor, "TIMEOUT", 0.3)
    trello.faults.next("GET", "/members/{member}", Fault.SLOW(0.8), times=2)
    [hung] = await _trello(board.cli)
    text = "Trello did not respond within 0.3 s: GET /1/members/me: no reply in time"
    assert (hung[0], hung[1][: len(text)]) == ("fail", text)
    trello.faults.clear()
    trello.faults.next("GET", "/boards/{id}", Fault.SLOW(0.8), times=2)
    account_check, *_, hung = await _trello(board.cli)
    assert (account_check[0], hung[0]) == ("ok", "fail")
    assert f"GET /1/boards/{board.board}: no reply in time" in hung[1]
    assert "limit" not in hung[1]


async def test_doctor_fails_on_the_token_of_a_linked_person(
    board: CliBoard, trello: FakeTrello
) -> None:
    with board.cli.config.open("a", encoding="utf-8") as config:
        config.write(f'\npeople.anna.trello = "{trello.bot_member}"\n')
    [account_check, *_] = await _trello(board.cli)
    assert (account_check[0], "the account of anna" in account_check[1]) == ("fail", True)


async def test_doctor_compares_the_webhook_with_the_configuration(
    board: CliBoard, trello: FakeTrello, receiver: WebhookReceiver
) -> None:
    await board.added()
    board.configure(callback_url=receiver.url, listen="127.0.0.1:0")
    assert ("warn", "board Work has no webhook; polling is used instead") in await _trello(
        board.cli
    )
    await board("webhook", "add", "Work")
    assert [check for check in await _trello(board.cli) if "webhook" in check[1]] == []
    [hook] = trello.world.webhooks.values()
    hook.failures = 3
    assert any(s == "warn" and "failed 3 times" in text for s, text in await _trello(board.cli))
    trello.deactivate(hook.id)
    text = "board Work: Trello disabled the webhook"
    assert ("fail", text) in await _trello(board.cli)
    board.configure(callback_url=f"{receiver.url}/", listen="127.0.0.1:0")
    text = f"board Work: the webhook calls {receiver.url}, but callback_url is {receiver.url}/"
    assert ("fail", text) in await _trello(board.cli)
    board.configure()
    assert any("callback_url is not set" in text for _, text in await _trello(board.cli))


async def test_open_boards_are_named_and_polls_alone_start_no_job(
    board: CliBoard, trello: FakeTrello
) -> None:
    await board.added()
    polled = "boards are polled every 15 s; callback_url is not set"
    warning = f"{polled}: polls do not say who added a label, so no label starts a job"
    assert ("warn", warning) in await _trello(board.cli)
    board.configure(members="may_submit")
    checks = await _trello(board.cli)
    members = 'every member may start and cancel jobs ([trello] members = "may_submit")'
    assert ("warn", f"boards that are open, where {members}: Work") in checks
    assert ("ok", polled) in checks
    board.configure(members="anybody")
    done = await board.cli("doctor")
    assert "trello.members" in done.out + done.err


async def test_an_unreachable_trello_hides_no_other_check(
    board: CliBoard, trello: FakeTrello, monkeypatch: pytest.MonkeyPatch
) -> None:
    trello.revoke()
    done = await board.cli("doctor")
    assert (done.code, "ok    git" in done.out) == (1, True)
    assert "Trello rejected the bot's credentials: invalid token" in done.out
    assert trello.token not in done.out + done.err
    monkeypatch.delenv("T_KEY")
    [(status, text)] = await _trello(board.cli)
    assert (status, "T_KEY" in text) == ("fail", True)


async def test_a_sandbox_that_is_off_is_a_warning(
    cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DRAFTSMAN_SANDBOX__MODE", "off")
    checks_by_name = (await _checks(cli))["sandbox"]
    assert (checks_by_name["status"], checks_by_name["text"]) == (
        "warn",
        "off: programs have all access rights of this user",
    )


async def test_all_logins_of_a_person_on_forges_are_checked(
    cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also those after the first, which gets the messages."""
    monkeypatch.setenv("FORGE_TOKEN", "t0ken-of-the-forge")
    forge = (
        'url = "https://{0}.example.org"\nkind = "gitea"\ntoken = {{ env = "FORGE_TOKEN" }}\n'
        'events = "poll"\n'
    )
    tables = "".join(f"\n[forges.{name}]\n{forge.format(name)}" for name in ("one", "two"))
    person = '\n[people.ben]\nroles = ["invoker"]\nforge = ["one:ben", "two:benny"]\n'
    cli.config.write_text(tables + person, encoding="utf-8")
    checks = (await cli("doctor", "--json")).json
    assert "no person has a login there" not in str(checks)
    cli.config.write_text(tables + person.replace("two:", "three:"), encoding="utf-8")
    assert "has the name in: three:benny" in str((await cli("doctor", "--json")).json)


async def test_renamed_and_blocked_repositories_are_named(
    cli: Cli, rt: Runtime, make: Factory, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By `repos check`, too; the others are checked all the same."""
    async with forge_harness("gitlab", tmp_path, monkeypatch) as site:
        world = site.fake.world
        for name in ("pay", "blocked"):
            repo = Repo.at(parse(f"{world.base}/acme/{name}"))
            await rt.repos.add(repo, RepoProfile(), make.owner)
        world.blocked["acme/blocked"] = Fault("error", status=451, text="Repository access blocked")
        world.rename("acme/payments")
        table = f'url = "{world.base}"\nkind = "gitlab"\ntoken = {{ env = "FORGE_TOKEN" }}\n'
        text = f'http.allow = ["127.0.0.1"]\n{cli.config.read_text()}\n[forges.acme]\n{table}'
        cli.config.write_text(text)
        found = json.loads((await cli("doctor", "--json")).out)["checks"]
        checks = {item["text"]: item for item in found if item["name"] == "forge acme"}
        moved = (
            "acme/pay is acme/payments now, where calls and git follow it; others may take the name"
        )
        assert checks[moved]["status"] == "warn"
        assert checks[moved]["hint"].endswith(f"draftsman repos add {world.base}/acme/payments")
        (blocked,) = [item for text, item in checks.items() if "451" in text]
        assert blocked["status"] == "fail"
        assert blocked["text"].startswith("acme/blocked: ")
