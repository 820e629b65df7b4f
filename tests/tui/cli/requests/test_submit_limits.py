"""Limits of a single job: `draftsman submit --override` and the options for limits."""

from __future__ import annotations

from draftsman.runtime import Runtime
from tests.tui.cli.cli_runner import Cli

PAY = "https://git.example/acme/pay"


async def test_limits_of_a_job_are_set_at_submission(cli: Cli, rt: Runtime) -> None:
    arguments = ["--repo", PAY, "--max-attempts", "1", "--max-retries", "100"]
    arguments += ["--run-timeout", "1h30m"]
    submitted = (await cli("submit", "--json", *arguments, "--on-lost", "new_job", "Tidy")).json
    job = await rt.read_model.job(submitted["number"])
    assert (job.max_attempts, job.max_retries, job.on_lost) == (1, 100, "new_job")
    assert job.overrides == {"timeout": 5400}
    arguments = ["--repo", PAY, "--override", "max_retries=1", "--override", "timeout=5"]
    arguments += ["--run-timeout", "7s"]
    job = await rt.read_model.job(
        (await cli("submit", "--json", *arguments, "Paint")).json["number"]
    )
    assert (job.max_retries, job.overrides) == (1, {"max_retries": 1, "timeout": 7})


async def test_an_invalid_limit_is_refused(cli: Cli) -> None:
    arguments = ["--type", "http_request", "--payload", '{"url": "https://api.example/"}']
    (await cli("submit", *arguments, "--override", "call_timeout=0")).refused(2, "call_timeout 0")


async def test_an_unknown_override_is_refused_with_the_nearest_name(cli: Cli) -> None:
    arguments = ["submit", "--repo", PAY, "--override", "cal_timeout=1", "Tidy"]
    hint = "overrides: unknown override cal_timeout; did you mean call_timeout?"
    (await cli(*arguments)).refused(2, hint)
    arguments[4] = "max_iterations=3"
    (await cli(*arguments)).refused(2, "overrides: unknown override max_iterations; ")
    arguments[:3] = ["submit", "--type", "noop"]
    assert (await cli(*arguments)).out == "D-1 created\n"
