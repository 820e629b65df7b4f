"""The `submit` command and its validation."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from draftsman.errors import UsageError
from draftsman.ids import new_id
from draftsman.job_types.published.description import TypeDescription
from draftsman.jobs.job import Status
from draftsman.jobs.requests.service.request_checks import check_configured
from draftsman.jobs.requests.service.submissions import invocation
from draftsman.jobs.requests.uncommitted_changes import FIELD, UncommittedChanges
from draftsman.jobs.runs.outcome import Done
from draftsman.people.actor import Actor
from draftsman.repos.repo_catalog import Repo
from draftsman.repos.repo_profile import RepoProfile
from draftsman.repos.repo_url import parse
from draftsman.runtime import Runtime
from draftsman.settings import settings_model
from draftsman.worker.registry.service import WorkerRegistration
from draftsman_testing.factories import QUESTION, Factory
from draftsman_testing.waits import background, until
from tests.core.worker.agent_jobs import git, make_repository
from tests.tui.cli.cli_runner import Cli
from tests.tui.cli.conftest import As

PAY = "https://git.example/acme/pay"


async def test_an_agent_needs_a_repository_without_registered_ones(
    cli: Cli, rt: Runtime, owner: Actor
) -> None:
    expected = "no repositories yet; use --repo PATH or URL, or first run: draftsman repos add"
    (await cli("submit", "Tidy")).refused(2, expected)
    line = '{"type": "run_agent", "text": "Tidy"}\n'
    (await cli("submit", "--batch", "-", stdin=line)).refused(2, "stdin:1", expected)
    assert (await cli("jobs", "--json")).json == []
    await rt.repos.add(Repo.at(parse(PAY)), RepoProfile(), owner)
    assert (await cli("submit", "Tidy")).out == "D-1 created\n"


async def test_a_second_agent_needs_a_default_or_a_name(
    cli: Cli, rt: Runtime, owner: Actor
) -> None:
    with cli.config.open("a") as file:
        file.write('\nagents.coder.command = ["coder"]\n')
    arguments = ["submit", "--repo", PAY, "Tidy up"]
    message = "--agent is required: coder, tidy; or set default_agent in the configuration"
    (await cli(*arguments)).refused(2, message)
    cli.config.write_text('default_agent = "coder"\n' + cli.config.read_text())
    assert (await cli(*arguments)).out == "D-1 created\n"
    await rt.repos.add(Repo.at(parse(PAY)), RepoProfile(agent="tidy"), owner)
    assert (await cli(*arguments)).out == "D-2 created\n"
    assert (await cli("submit", "Tidy up")).out == "D-3 created\n"
    agents = [(await rt.read_model.job(number)).agent_request.agent for number in (1, 2, 3)]
    assert agents == ["coder", "tidy", None], "a repository's own agent comes first"
    assert "run_agent · agent of its repository · mode fix" in (await cli("show", "D-3")).out


async def test_a_request_creates_a_job_with_all_its_options(
    cli: Cli, rt: Runtime, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "pay").mkdir()
    (tmp_path / "body.json").write_text('{"rows": [1, 2]}', encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    arguments = ["--agent", "tidy", "--repo", "pay", "--ref", "main", "--mode", "investigate"]
    arguments += ["--title", "Pay", "--key", "k", "--subject", "card-1", "--queue", "fast"]
    arguments += ["--priority", "7", "--payload", "@body.json", "--override", "timeout=3"]
    arguments += ["--override", "on_lost=fail", "--skill", "python", "--tag", "a", "--tag", "b"]
    arguments += ["--max-attempts", "2", "--max-retries", "0", "--in", "1h30m"]
    done = await cli("submit", *arguments, "Tidy", "it", "up")
    assert (done.code, done.err) == (0, "")
    number = int(done.out.removeprefix("D-").removesuffix(" created\n"))
    job = await rt.read_model.job(number)
    repo = {"source": str(tmp_path / "pay"), "ref": "main"}
    assert job.payload == {"rows": [1, 2], "repo": repo}
    assert (job.type, job.agent_request.agent, job.agent_request.mode, job.queue) == (
        "run_agent",
        "tidy",
        "investigate",
        "fast",
    )
    assert (job.title, job.agent_request.text, job.priority) == ("Pay", "Tidy it up", 7)
    assert (job.idempotency_key, job.subject_key) == ("k", "card-1")
    assert (job.overrides, job.agent_request.skills) == (
        {"timeout": 3, "on_lost": "fail"},
        ["python"],
    )
    assert (job.tags, job.max_attempts, job.max_retries) == (["a", "b"], 2, 0)
    assert (job.status, job.source, job.invoker_id) == (Status.SCHEDULED, "cli", "root")
    assert job.run_at is not None
    assert 5390 < (job.run_at - job.created_at).total_seconds() < 5410


async def test_the_same_key_finds_the_same_job_and_another_request_is_refused(cli: Cli) -> None:
    first = (await cli("submit", "--repo", PAY, "--key", "k", "--json", "Tidy")).json
    assert first["outcome"] == "created"
    repeated = await cli("submit", "--repo", PAY, "--key", "k", "Tidy")
    assert repeated.out == f"D-{first['number']} deduplicated\n"
    (await cli("submit", "--repo", PAY, "--key", "k", "Paint")).refused(
        4, "'k'", f"D-{first['number']}"
    )


async def test_recurring_work_needs_a_subject_for_a_key_is_permanent(
    cli: Cli, make: Factory, rt: Runtime
) -> None:
    arguments = ["submit", "--type", "noop", "--queue", "q"]
    for recurring, second in (("--key", "D-1 deduplicated\n"), ("--subject", "D-3 created\n")):
        assert " created" in (await cli(*arguments, recurring, "nightly")).out
        newest = (await rt.read_model.jobs())[0].number
        await rt.settlement.outcome(await make.running(newest), Done({}))
        repeated = await cli(*arguments, recurring, "nightly")
        assert (repeated.code, repeated.out) == (0, second)
        message = "this idempotency key belongs to D-1, which already finished (completed)"
        assert (message in repeated.err) == (recurring == "--key")


async def test_a_live_job_of_the_subject_is_joined(cli: Cli) -> None:
    first = (await cli("submit", "--repo", PAY, "--subject", "s", "--json", "Tidy")).json
    done = await cli("submit", "--repo", PAY, "--subject", "s", "Paint")
    expected = "joined: a live job has the same subject; your request was added to its history"
    assert done.out == f"D-{first['number']} {expected}\n"


async def test_an_equal_request_within_the_time_joins_the_job(
    cli: Cli, rt: Runtime, make: Factory
) -> None:
    arguments = ("submit", "--type", "noop", "--unique-for", "1h", "--payload", '{"week": 7}')
    assert (await cli(*arguments)).out == "D-1 created\n"
    await rt.settlement.outcome(await make.running(1), Done({}))
    again = await cli(*arguments)
    text = "D-1 joined: an equal job is completed; your request was added to its history\n"
    assert again.out == text
    shown = await cli("show", "D-1", "--json")
    assert shown.json["unique_key"].startswith("args noop ")


async def test_a_replaced_job_and_its_replacement_name_each_other(cli: Cli) -> None:
    arguments = ("submit", "--type", "noop", "--subject", "pr-7", "--debounce", "30s")
    assert (await cli(*arguments)).out == "D-1 created\n"
    replaced = "D-2 created; it replaces D-1, which was canceled before its start\n"
    assert (await cli(*arguments)).out == replaced
    old, new = [(await cli("show", name)).out for name in ("D-1", "D-2")]
    assert "replaced by D-2" in " ".join(old.split())
    assert "replaces D-1" in " ".join(new.split())
    assert (await cli("show", "D-1", "--json")).json["replaced_by"] == 2
    assert (await cli(*arguments, "--json")).json["replaced"] == 2


async def test_options_of_unique_work_that_exclude_each_other_are_refused(cli: Cli) -> None:
    result = await cli("submit", "--type", "noop", "--debounce", "30s", "--unique-for", "1h")
    assert (result.code, "use debounce alone" in result.err) == (2, True)
    result = await cli("submit", "--type", "noop", "--unique-by", "subject")
    assert (result.code, "unique by subject needs a subject" in result.err) == (2, True)


async def test_text_is_read_from_stdin_and_cleaned(cli: Cli, rt: Runtime) -> None:
    done = await cli(
        "submit", "--repo", PAY, "--json", "-", stdin=b"Tidy\x00 up\n\nwith \xff care\n"
    )
    job = await rt.read_model.job(done.json["number"])
    assert (job.title, job.agent_request.text) == ("Tidy� up", "Tidy� up\n\nwith � care\n")


async def test_a_batch_creates_a_job_for_each_line_and_can_be_repeated(
    cli: Cli, rt: Runtime, tmp_path: Path
) -> None:
    lines = [{"type": "report", "key": f"r{n}", "title": f"Report {n}"} for n in range(1200)]
    lines[3]["queue"] = "slow"
    file = tmp_path / "batch.jsonl"
    file.write_text("\n\n".join(map(json.dumps, lines)) + "\n", encoding="utf-8")
    submitted = (await cli("submit", "--batch", file, "--queue", "q", "--json")).json
    assert [entry["outcome"] for entry in submitted] == ["created"] * 1200
    jobs = [await rt.read_model.job(submitted[index]["number"]) for index in (3, 1199)]
    assert [(job.idempotency_key, job.queue) for job in jobs] == [("r3", "slow"), ("r1199", "q")]
    repeated = await cli("submit", "--batch", "-", "--queue", "q", stdin=file.read_text())
    assert repeated.out.splitlines() == [f"D-{entry['number']} deduplicated" for entry in submitted]


async def test_jobs_of_a_batch_before_a_conflict_are_reported(cli: Cli) -> None:
    await cli("submit", "--type", "report", "--key", "taken", "--title", "other")
    lines = [json.dumps({"type": "report", "key": f"r{n}"}) for n in range(1000)]
    lines.append('{"type": "report", "key": "taken", "title": "mine"}')
    done = await cli("submit", "--batch", "-", "--json", stdin="\n".join(lines))
    assert done.code == 4
    assert len(json.loads(done.out)) == 1000


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ('{"type": "report"', "stdin:2: invalid JSON"),
        ("[1]", "stdin:2: must be a JSON object"),
        ('{"tpye": "report"}', "unknown field 'tpye'; allowed: type, key"),
        ('{"type": "report", "key": 5}', "key"),
        ('{"type": "run_agent", "repo": "no/such/place"}', "no/such/place"),
        ("[" * 100_000, "nested too deeply"),
    ],
)
async def test_an_invalid_line_is_named_and_no_job_is_created(
    cli: Cli, line: str, message: str
) -> None:
    good = '{"type": "report", "key": "good"}\n'
    (await cli("submit", "--batch", "-", stdin=good + line)).refused(2, "stdin:2", message)
    assert (await cli("jobs", "--json")).json == []


INVALID_OPTIONS: list[tuple[list[str], str]] = [
    ([], "instructions are required"),
    ([""], "instructions are required"),
    (["x", "--repo", "no/such"], "--repo no/such: no directory or repository"),
    (["x", "--mode", "break"], "'investigate' or 'fix'"),
    (["x", "--on-lost", "explode"], "on_lost 'explode': must be 'retry', 'resume'"),
    (["x", "--max-retries", "101"], "101 is not in the range 0 to 100"),
    (["x", "--run-timeout", "soon"], "invalid duration 'soon'"),
    (["x", "--override", "max_retries=often"], "max_retries 'often': must be a whole number"),
    (["x", "--override", "timeout=0"], "timeout 0: must be more than 0"),
    (["x", "--priority", "5000"], "5000 is not in the range -1000 to 1000"),
    (["x", "--priority", "high"], "'high' is not a whole number"),
    (["x", "--at", "some day"], "invalid time"),
    (["x", "--at", "9999-12-31T23:59:59-12:00"], "invalid time"),
    (["x", "--at", "2031-01-01", "--in", "5m"], "--at and --in cannot be combined"),
    (["x", "--in", "5x"], "90s, 10m"),
    (["x", "--in", "0s"], "out of range"),
    (["x", "--payload", "[1]"], "must be a JSON object"),
    (["x", "--payload", "{"], "invalid JSON at line 1 column 2"),
    (["x", "--payload", "@no-such-file"], "no-such-file"),
    (["x", "--payload", '{"a": NaN}'], "finite"),
    (["x", "--override", "abc"], "key=value"),
    (["x", "--max-attempts", "-1"], "-1 is not in the range 1 to 100"),
    (["x", "--queue", "a b"], "queue"),
    (["x", "--timeout", "5s"], "--timeout requires --wait"),
    (["x", "--batch", "-"], "cannot be combined with TEXT"),
    (["--batch", "/dev/null"], "no requests found"),
    (["--batch", "no-such-file"], "no-such-file"),
    (["x", "--title", "t" * 501], "at most 500"),
]


async def test_an_invalid_option_is_refused_in_one_line(cli: Cli) -> None:
    for arguments, message in INVALID_OPTIONS:
        (await cli("submit", *arguments)).refused(2, message)
    assert (await cli("jobs", "--json")).json == []


async def test_a_user_without_the_role_cannot_submit(as_: As) -> None:
    done = await as_("ben")("submit", "--repo", PAY, "x")
    done.refused(1, "may not submit", "allowed: anna")
    (await as_(None)("submit", "--repo", PAY, "x")).refused(1, "may not submit")


async def test_wait_reports_progress_and_ends_with_the_job(
    cli: Cli, make: Factory, rt: Runtime
) -> None:
    waiting = cli("submit", "--type", "noop", "--queue", "q", "--wait", "--json", "--key", "k")
    async with background(waiting) as task:
        work = await make.running(await _first(rt))
        assert await rt.asking.ask(work.lease, QUESTION)
        await make.answer(work.number, "red")
        await rt.settlement.outcome(await make.running(work.number), Done({"n": 1}))
        done = await task
    assert done.json | {"outcome": "created", "status": "completed"} == done.json
    assert done.json["result"] == {"n": 1}
    assert "Which one?" in done.err
    assert [f"D-{work.number} created"] == done.err.splitlines()[:1]


async def test_wait_for_a_missing_answer_ends_with_5(cli: Cli, make: Factory, rt: Runtime) -> None:
    arguments = ["--type", "noop", "--queue", "q", "--wait", "--timeout", "2s"]
    async with background(cli("submit", *arguments)) as task:
        work = await make.running(await _first(rt))
        await rt.asking.ask(work.lease, QUESTION)
        done = await task
    assert done.code == 5
    assert done.out == f"D-{work.number} waiting for input\n"
    assert f"D-{work.number}/1 is still open after 2 s" in done.err.splitlines()[-1]


async def _first(rt: Runtime) -> int:
    """Wait for the first job and return its number."""

    async def there() -> bool:
        return bool(await rt.read_model.jobs())

    await until(there, "a job")
    return (await rt.read_model.jobs())[0].number


PAYLOAD = {"url": "https://example.org/", "method": "POST", "json": [1]}


async def test_a_built_in_type_takes_its_payload_from_anywhere(
    cli: Cli, rt: Runtime, tmp_path: Path
) -> None:
    text = json.dumps(PAYLOAD)
    path = tmp_path / "it.json"
    path.write_text(text, encoding="utf-8")
    for source in (text, f"@{path}", "@-"):
        arguments = ["--type", "http_request", "--payload", source, "--json"]
        submitted = await cli("submit", *arguments, stdin=text)
        job = await rt.read_model.job(submitted.json["number"])
        assert (job.type, job.payload, job.request) == ("http_request", PAYLOAD, None)
        assert (job.max_attempts, job.max_retries) == (5, 3)


@pytest.mark.parametrize(
    ("type", "payload", "message"),
    [
        ("http_request", {}, "payload of http_request: url: is required"),
        ("http_request", {"url": "file:///etc/passwd"}, "starting with http:// or https://"),
        ("llm_generate", {"prompt": "a", "temprature": 1}, "unknown key; allowed: llm, prompt"),
        ("execute_tool", {}, "payload of execute_tool: tool: is required"),
    ],
    ids=str,
)
async def test_an_invalid_payload_is_refused_in_one_line(
    cli: Cli, type: str, payload: dict[str, object], message: str
) -> None:
    (await cli("submit", "--type", type, "--payload", json.dumps(payload))).refused(2, message)


async def test_an_unknown_type_is_accepted_with_a_warning(cli: Cli, rt: Runtime) -> None:
    done = await cli("submit", "--type", "http_requst", "--payload", "{}")
    assert (done.code, done.out) == (0, "D-1 created\n")
    warned = "warning: the job waits for a worker that handles the type 'http_requst': "
    assert done.err.startswith(
        f"{warned}no handler in [handlers], and no worker is running; did you mean http_request?"
    )
    known = await cli("submit", "--type", "http_requst", "--json")
    assert known.json["warning"].startswith("the job waits for a worker")
    line = '{"type": "reprot", "key": "1"}\n{"type": "reprot", "key": "2"}\n'
    batch = await cli("submit", "--batch", "-", stdin=line)
    assert batch.out == "D-3 created\nD-4 created\n"
    assert batch.err.count("'reprot'") == 1
    with cli.config.open("a") as file:
        file.write('\nhandlers."report:weekly" = "not.here:handle"\n')
    known = await cli("submit", "--type", "report:weekly")
    assert (known.out, known.err) == ("D-5 created\n", "")


async def test_a_type_of_a_live_worker_has_no_warning(cli: Cli, rt: Runtime) -> None:
    about: dict[str, Any] = {"version": "1", "queues": ["default"], "slots": 1}
    worker = WorkerRegistration(rt.db, new_id(), types=["bill:month"], **about)
    await worker.register()
    known = await cli("submit", "--type", "bill:month")
    assert (known.out, known.err) == ("D-1 created\n", "")
    unknown = await cli("submit", "--type", "bill:moth")
    problem = "no handler in [handlers] or on a live worker; did you mean bill:month?"
    assert f"{problem}; no worker has published the type yet\n" in unknown.err
    await worker.leave()
    assert "no worker is running" in (await cli("submit", "--type", "bill:month")).err


async def test_a_type_without_its_worker_is_right_and_only_the_worker_is_missing(
    cli: Cli, rt: Runtime
) -> None:
    """Its own name is no near name of it."""
    names = ["ops:long", "ops:broken"]
    types = [TypeDescription(name=name, place="jobs:run", app="jobs") for name in names]
    about: dict[str, Any] = {"version": "1", "queues": ["default"], "slots": 1}
    worker = WorkerRegistration(rt.db, new_id(), types=names, described=types, **about)
    await worker.register()
    await worker.leave()
    waits = "warning: the job waits for a worker that handles the type"
    done = await cli("submit", "--type", "ops:long")
    start = "to start one: draftsman worker --app jobs"
    assert done.err.startswith(f"{waits} 'ops:long': no worker is running; {start}\n")
    typo = await cli("submit", "--type", "ops:brken")
    assert "did you mean ops:broken?" in typo.err


async def test_an_unconfigured_model_is_refused(cli: Cli) -> None:
    arguments = ["submit", "--type", "llm_generate", "--payload", '{"prompt": "a"}']
    (await cli(*arguments)).refused(2, "no language model: [llm.NAME] is not configured")
    assert (await cli(*arguments, "--unchecked")).out == "D-1 created\n"
    with cli.config.open("a") as file:
        file.write('\nllm.one = {provider = "openai", model = "m"}\n')
    assert (await cli(*arguments)).out == "D-2 created\n"
    with cli.config.open("a") as file:
        file.write('\nllm.two = {provider = "openai", model = "m"}\n')
    (await cli(*arguments)).refused(2, "payload field llm is required: one, two")


def test_an_unknown_tool_model_webhook_or_credential_is_refused() -> None:
    settings = settings_model().model_validate({"tools": {"count": {"command": ["wc"]}}})
    for type, payload, message in (
        ("execute_tool", {"tool": "cuont"}, "unknown tool 'cuont'; configured: count"),
        ("llm_generate", {"llm": "x", "prompt": "a"}, "unknown llm 'x'; configured: none"),
        ("webhook_dispatch", {"webhook": "x", "type": "a"}, "unknown webhook 'x'"),
        ("http_request", {"url": "http://a/", "credential": "x"}, "unknown credential 'x'"),
    ):
        with pytest.raises(UsageError, match=message):
            check_configured(invocation(type=type, payload=payload), settings)
    check_configured(invocation(type="execute_tool", payload={"tool": "count"}), settings)


async def test_the_limit_of_a_debounce_is_an_option(cli: Cli, rt: Runtime) -> None:
    request = ("submit", "--type", "noop", "--subject", "pr-7", "--debounce", "30s")
    problem = "--debounce-limit: requires a debounce, and must be at least as long"
    (await cli(*request, "--debounce-limit", "20s")).refused(2, problem)
    (await cli(*request, "--unique-states", "any")).refused(2, "--debounce: replaces only a job")
    (await cli(*request, "--subject", "")).refused(2, "--subject: must not be empty")
    assert (await cli(*request, "--debounce-limit", "40s")).out == "D-1 created\n"
    async with rt.db.connection() as conn:
        cursor = await conn.execute(
            "SELECT debounce_until - draftsman.now() BETWEEN '30 s' AND '40 s'"
            " FROM draftsman.unique_keys"
        )
        assert await cursor.fetchall() == [(True,)]
    waits = (await cli("why", "D-1")).out
    assert "scheduled: debounced: a further request replaces it and waits as long again" in waits
    assert re.search(
        r"due in (29|30) s, at .* UTC; with further requests at the latest in (39|40) s", waits
    )
    assert (await cli("why", "D-1", "--json")).json["reason"] == "debounced"


async def test_uncommitted_changes_are_named_or_taken_along(
    cli: Cli, rt: Runtime, tmp_path: Path
) -> None:
    repo = make_repository(tmp_path / "repo")
    command = ["submit", "--agent", "tidy", "--repo", str(repo), "Tidy"]
    assert (await cli(*command)).err == ""
    assert "uncommitted" not in (await cli(*command, "--json")).json
    (repo / "a.txt").write_text("two\n")
    (repo / "new").write_text("new\n")
    done = await cli(*command)
    assert done.err == (
        f"warning: uncommitted in {repo}, and no part of the job: 2 files (a.txt, new);"
        " to take them along: --with-changes\n"
    )
    files = {"count": 2, "files": ["a.txt", "new"], "taken": False}
    assert (await cli(*command, "--json")).json["uncommitted"] == files
    document = (await cli(*command, "--with-changes", "--json")).json
    assert document["uncommitted"] == files | {"taken": True}
    job = await rt.read_model.job(document["number"])
    changes = UncommittedChanges.of(job.payload)
    assert changes is not None
    assert changes.files == 2
    shown = (await cli("show", job.name)).out
    assert "2 uncommitted files of the requester" in shown
    assert job.payload[FIELD]["patch"] not in shown
    git("add", "-A", cwd=repo)
    git("commit", "-qm", "all", cwd=repo)
    done = await cli(*command, "--with-changes")
    assert done.err == f"no uncommitted changes in {repo}\n"


async def test_changes_are_taken_from_a_folder_without_secrets_only(
    cli: Cli, tmp_path: Path
) -> None:
    repo = make_repository(tmp_path / "repo")
    (repo / "key").write_text("token = ghp_" + "a1B2" * 9)
    command = ["submit", "--agent", "tidy", "--with-changes", "Tidy", "--repo"]
    (await cli(*command, repo)).refused(1, "the uncommitted changes have secrets: key:1")
    needs = "--with-changes needs --repo with a folder of this machine, and no --ref"
    (await cli(*command, PAY)).refused(2, needs)
    (await cli(*command, repo, "--ref", "main")).refused(2, needs)
    refused = await cli("submit", "--with-changes", "--batch", "-", stdin="")
    refused.refused(2, "--batch cannot be combined with TEXT, --key, --wait or --with-changes")
    assert (await cli("jobs", "--json")).json == []


async def test_tidy_as_the_only_agent_ignores_instructions(cli: Cli) -> None:
    """Not if it was chosen, or if there is another agent."""
    command = ["submit", "--repo", PAY, "Fix the build"]
    done = await cli(*command)
    assert done.err.startswith("warning: tidy, the only agent, ignores instructions: ")
    assert "add a table such as [agents.claude]" in done.err
    assert (await cli(*command, "--agent", "tidy")).err == ""
    cli.config.write_text(
        f'default_agent = "coder"\nagents.coder.command = ["coder"]\n{cli.config.read_text()}'
    )
    assert (await cli(*command)).err == ""
