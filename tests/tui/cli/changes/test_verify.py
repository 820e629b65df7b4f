"""`verify`: the signed evidence of a job."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

from draftsman.agent_runs.evidence.signing import signing_key
from draftsman.jobs.job import Status
from draftsman.jobs.runs.outcome import Done
from draftsman.runtime import Runtime
from draftsman_testing.factories import Factory
from tests.core.agent_runs.profiled_jobs import profiled_job
from tests.core.worker.agent_jobs import agent_worker, git
from tests.core.worker.workers import wait_for_end
from tests.tui.cli.cli_runner import Cli, process

CODE = 'open("a.txt", "w").write("two\\n")\nsay("result", summary="did it")'


async def test_evidence_is_verified_offline_and_each_change_of_it_is_noticed(
    cli: Cli, rt: Runtime, make: Factory, tmp_path: Path
) -> None:
    check = {"name": "tests", "command": ["grep", "-q", "two", "a.txt"]}
    number, repo = await profiled_job(rt, make, tmp_path / "repo", {}, validation_commands=[check])
    async with agent_worker(rt, tmp_path / "worker", CODE):
        assert (await wait_for_end(rt, number)).status is Status.COMPLETED
    name = f"D-{number}"
    evidence = tmp_path / "evidence.json"
    [public] = (tmp_path / "worker" / "keys").glob("*.pub")
    (await cli("verify", name)).refused(1, "no valid signature by a trusted key", "trusted_keys")
    done = await cli("verify", name, "--key", public, "-C", repo)
    assert done.code == 0, done
    head = git("rev-parse", f"draftsman/{name}", cwd=repo)
    assert f"head      {head}\n" in done.out
    assert "command   tests passed: grep -q two a.txt\n" in done.out
    assert done.out.endswith(f"signature valid, by the key {public.stem}\n")

    assert (await cli("artifacts", "get", name, "evidence.json", "-o", evidence)).code == 0
    keys = json.dumps([str(public)])
    offline = process(
        *("verify", evidence, "--json"),
        DRAFTSMAN_EVIDENCE__TRUSTED_KEYS=keys,
        DRAFTSMAN_DATABASE_URL="postgresql://127.0.0.1:1/nothing",
    )
    assert json.loads(offline.stdout)["evidence"]["head"] == head

    fields = json.loads(evidence.read_bytes())
    payload = json.loads(base64.b64decode(fields["payload"]))
    payload["predicate"]["commands"][0]["exit_code"] = 7
    changed = base64.b64encode(json.dumps(payload).encode()).decode()
    signatures = [{"keyid": fields["signatures"][0]["keyid"], "sig": "AAAA"}]
    lies: list[dict[str, Any]] = [
        {"payload": changed},
        {"signatures": signatures},
        {"signatures": []},
    ]
    for lie in lies:
        evidence.write_text(json.dumps(fields | lie))
        refused = await cli("verify", evidence, "--key", public)
        refused.refused(1, "no valid signature by a trusted key")
    signing_key(tmp_path / "stranger", None)
    [stranger] = (tmp_path / "stranger" / "keys").glob("*.pub")
    (await cli("verify", name, "--key", stranger)).refused(1, "no valid signature")

    mine = tmp_path / "mine"
    git("clone", "-q", "--no-local", "--single-branch", str(repo), str(mine), cwd=tmp_path)
    done = await cli("verify", name, "--key", public, "-C", mine)
    done.refused(1, f"{mine} does not have the commit {head[:12]}; fetch its branch")
    (await cli("verify", tmp_path / "nothing")).refused(2, "no such file; use a job or a file")
    (await cli("verify", number + 1)).refused(3)


async def test_evidence_of_another_patch_or_job_is_refused(
    cli: Cli, rt: Runtime, make: Factory, tmp_path: Path
) -> None:
    number, _ = await profiled_job(rt, make, tmp_path / "repo", {})
    async with agent_worker(rt, tmp_path / "worker", CODE):
        assert (await wait_for_end(rt, number)).status is Status.COMPLETED
    _, data = await rt.checkpoints.read_artifact(number, "evidence.json")
    [public] = (tmp_path / "worker" / "keys").glob("*.pub")
    other = await make.running()
    done = await cli("verify", other.name)
    done.refused(3, f"{other.name} has no evidence so far; see: draftsman why {other.name}")
    await rt.checkpoints.artifact(other.lease, "evidence.json", "evidence", data)
    done = await cli("verify", other.name, "--key", public)
    done.refused(1, f"the evidence is about another job, D-{number}")
    unchanged = await make.running()
    await rt.settlement.outcome(unchanged, Done({}))
    (await cli("verify", unchanged.name)).refused(3, "has no evidence: it has no changes")
