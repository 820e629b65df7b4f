"""`agents`: list and check of the configured agents."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.tui.cli.cli_runner import Cli


@pytest.fixture
def configured(tmp_path: Path) -> Callable[[str], str]:
    """Return the option of a configuration file with these lines."""

    def write(lines: str) -> str:
        path = tmp_path / "agents.toml"
        path.write_text(lines, encoding="utf-8")
        return f"--config={path}"

    return write


async def test_agents_are_listed_with_their_kind_and_version(
    cli: Cli, configured: Callable[[str], str]
) -> None:
    option = configured(
        'default_agent = "tidy"\n'
        '[agents.gone]\ncommand = ["no-such-agent", "--token", "s3cret", "--auth-type", "x"]\n'
        'version = "1.4.0"\n'
    )
    listed = await cli("agents", option)
    assert "s3cret" not in listed.out + listed.err
    head, tidy, gone = [line.split() for line in listed.out.splitlines()]
    assert head == ["AGENT", "KIND", "INSTALLED", "VERSION", "NETWORK", "COMMAND"]
    assert (tidy[:3], tidy[4]) == (["tidy", "json", "yes"], "no")
    assert gone[:6] == ["gone", "json", "no", "1.4.0", "no", "no-such-agent"]
    assert gone[6:] == ["--token", "'***'", "--auth-type", "x"]
    assert "default: tidy" in listed.err
    assert "gone: program 'no-such-agent' not found" in listed.err
    first, second = (await cli("agents", "list", "--json", option)).json
    assert (first["name"], first["kind"], first["installed"]) == ("tidy", "json", True)
    assert first["model"] is None
    assert (second["installed"], second["version"]) == (False, "1.4.0")
    assert (
        second["problem"] == "program 'no-such-agent' not found; install it, or correct the command"
    )


async def test_the_check_of_an_agent_fails_if_a_run_could_not_start_it(
    cli: Cli, configured: Callable[[str], str]
) -> None:
    tidy = await cli("agents", "check", "tidy")
    assert tidy.code == 0
    option = configured('[agents.tidy]\nenv = { MODE = "strict" }\n')
    assert (await cli("agents", "check", "tidy", option)).out == tidy.out, "no command is needed"
    option = configured('[agents.gone]\ncommand = ["no-such-agent"]\n')
    failed = await cli("agents", "check", "gone", option)
    assert failed.code == 1
    assert "program 'no-such-agent' not found; install it, or correct the command" in failed.out
    assert failed.err == "", "the problem says what to do"
    document = json.loads((await cli("agents", "check", "gone", "--json", option)).out)
    assert (document["installed"], document["kind"]) == (False, "json")
    unknown = await cli("agents", "check", "codex", option)
    assert unknown.code == 3
    assert "no agent 'codex' in the configuration; configured agents: gone, tidy" in unknown.err
    assert "an empty [agents.codex] is enough" in unknown.err


async def test_all_agents_are_checked_without_a_name(
    cli: Cli, configured: Callable[[str], str]
) -> None:
    well = await cli("agents", "check", configured('[agents.near]\ncommand = ["sh", "a.sh"]\n'))
    assert well.code == 0, "a warning is no failure"
    head, near, tidy = [line.split() for line in well.out.splitlines()]
    assert head == ["AGENT", "KIND", "CHECK", "VERSION", "PROBLEM"]
    assert near[:3] == ["near", "json", "ok"]
    assert "relative path" in well.out
    assert tidy[:3] == ["tidy", "json", "ok"]
    option = configured('[agents.gone]\ncommand = ["no-such-agent"]\n')
    failed = await cli("agents", "check", option)
    assert failed.code == 1
    checked = {line.split()[0]: line for line in failed.out.splitlines()[1:]}
    assert checked["gone"].split()[1:3] == ["json", "failed"]
    assert "program 'no-such-agent' not found" in checked["gone"]
    assert checked["tidy"].split()[1:3] == ["json", "ok"]
    listed = await cli("agents", "check", "--json", option)
    assert listed.code == 1
    assert [(item["name"], item["installed"]) for item in json.loads(listed.out)] == [
        ("gone", False),
        ("tidy", True),
    ]


async def test_a_relative_path_is_a_warning(cli: Cli, configured: Callable[[str], str]) -> None:
    option = configured('[agents.near]\ncommand = ["sh", "agent.sh"]\n')
    checked = await cli("agents", "check", "near", option)
    assert checked.code == 0
    assert "'agent.sh' is a relative path" in checked.out
    assert "use an absolute path" in checked.err


async def test_the_version_of_a_program_and_keys_of_a_known_agent(
    cli: Cli, configured: Callable[[str], str]
) -> None:
    option = configured('[agents.opencode]\n[agents.qwen]\ncommand = ["git", "acp"]\n')
    agents = {agent["name"]: agent for agent in (await cli("agents", "--json", option)).json}
    assert agents["opencode"]["command"] == ["opencode", "acp", "--port", "{port}"]
    assert agents["opencode"]["kind"] == agents["qwen"]["kind"] == "acp"
    assert agents["qwen"]["version"] is not None
    config = (await cli("config", "--json", option)).json["agents"]
    assert config["opencode"]["session_mode"] == "build"
    assert config["qwen"]["session_mode"] == "default"


async def test_the_check_shows_the_way_to_the_model_and_its_missing_key(
    cli: Cli, configured: Callable[[str], str]
) -> None:
    option = configured(
        '[gateways.model]\nprovider = "openai"\napi_key = { env = "NO_SUCH_KEY" }\n'
        '[agents.codex]\ncommand = ["git"]\ngateway = "model"\n'
        '[agents.opencode]\ncommand = ["git"]\n'
    )
    checked = await cli("agents", "check", "codex", option)
    assert checked.code == 0, "the worker may have the key"
    assert "model      gateway model, no key" in checked.out
    assert "problem    gateway model: the variable NO_SUCH_KEY holds no secret" in checked.out
    without = await cli("agents", "check", "opencode", option)
    assert "it has no gateway and no network to reach a model" in without.out


async def test_the_network_is_shown_and_named_hosts_need_bwrap(
    cli: Cli, configured: Callable[[str], str]
) -> None:
    hosts = [f"{letter}.example" for letter in "abcdefg"]
    entry = f'[agents.git]\ncommand = ["git"]\nnetwork = {json.dumps(["mirror", *hosts])}\n'
    groups = '[networks.mirror]\nhosts = ["*.files.example:80"]\n'
    option = configured(entry + groups)
    shown = await cli("agents", "check", "git", option)
    assert shown.code == 0, shown.out
    assert "network    mirror, a.example:443, b.example:443, c.example:443," in shown.out
    assert "d.example:443 and 3 more" in shown.out
    [agent] = [
        item for item in (await cli("agents", "--json", option)).json if item["name"] == "git"
    ]
    assert agent["network"][:2] == ["mirror", "a.example:443"]
    weaker = configured(entry + groups + '[sandbox]\nmode = "landlock"\n')
    refused = await cli("agents", "check", "git", weaker)
    assert refused.code == 1
    assert "the sandbox mode 'landlock' cannot limit the network to named hosts" in refused.out
    unknown = await cli("agents", configured(entry))
    assert unknown.code == 2
    assert "agents.git.network: no group 'mirror' in [networks]; groups: none" in unknown.err
    wrong = await cli("agents", configured(entry.replace("b.example", "https://b")))
    assert "'https://b' is not a host or host:port" in wrong.err
    assert wrong.err.count("\n") == 1


async def test_a_probe_prints_the_reply_or_the_reason_and_its_exit_code(
    cli: Cli, configured: Callable[[str], str]
) -> None:
    option = configured(
        '[agents.echo]\nkind = "plain"\ncommand = ["cat"]\n'
        '[agents.broken]\nkind = "plain"\ncommand = ["sh", "-c", "echo no luck; exit 4"]\n'
    )
    succeeded = await cli("agents", "check", "echo", "--probe", option)
    assert succeeded.code == 0, succeeded.err
    assert "): Reply with the word ready." in succeeded.out
    failed = await cli("agents", "check", "broken", "--probe", "--json", option)
    assert failed.code == 1
    probe = json.loads(failed.out)["probe"]
    assert (probe["succeeded"], probe["text"]) == (False, "sh exited with code 4: no luck")
    assert (probe["tokens"], probe["models"]) == (0, [])
