"""Sources of a setting, and the one-line errors of invalid settings."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from pydantic import ValidationError

from draftsman import basic_settings
from draftsman.errors import ConfigError
from draftsman.settings import Settings, load, unread_variables
from draftsman_bots.slack.settings import SlackSettings
from draftsman_bots.trello.settings import TrelloSettings

Write = Callable[[str], Path]


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Give the test its own home, without variables and a system file."""
    for name in [name for name in os.environ if name.upper().startswith("DRAFTSMAN_")]:
        monkeypatch.delenv(name)
    for name in [name for name in os.environ if name.startswith("XDG_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setattr(basic_settings, "user_config_dir", lambda *_, **__: str(tmp_path / "own"))
    monkeypatch.setattr(basic_settings, "SYSTEM_CONFIG", tmp_path / "etc" / "draftsman.toml")
    return tmp_path


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """Return a function that writes a configuration and returns its path."""

    def write(text: str, name: str = "given.toml") -> Path:
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, encoding="utf-8")
        return path

    return write


def _refusal(config: Path | None = None) -> str:
    with pytest.raises(ConfigError) as caught:
        load(config)
    message = str(caught.value)
    assert "\n" not in message
    return message.replace(str(config), "FILE")


class TestSources:
    def test_defaults_are_complete(self) -> None:
        assert load() == Settings()
        assert load().worker.slots == 10

    def test_the_file_overrides_a_default(self, write: Write) -> None:
        assert load(write("[worker]\nslots = 3\n")).worker.slots == 3

    def test_a_variable_overrides_a_key_of_the_file(
        self, write: Write, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("DRAFTSMAN_WORKER__SLOTS", "7")
        settings = load(write("[worker]\nslots = 3\nprefetch = 2\n"))
        assert (settings.worker.slots, settings.worker.prefetch) == (7, 2)

    def test_a_list_in_a_variable_is_json(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("DRAFTSMAN_WORKER__QUEUES", '["a", "b"]')
        assert load().worker.queues == ("a", "b")

    def test_an_empty_variable_is_unset(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("DRAFTSMAN_DATABASE_URL", "")
        assert load().database_url is None

    def test_a_named_file_precedes_that_of_the_variable_the_user_and_the_system(
        self, home: Path, write: Write, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        places = ["etc/draftsman.toml", "own/draftsman.toml", "variable.toml", "given.toml"]
        for slots, place in enumerate(places, start=1):
            (home / place).parent.mkdir(exist_ok=True)
            (home / place).write_text(f"[worker]\nslots = {slots}\n")
            if place == "variable.toml":
                monkeypatch.setenv("DRAFTSMAN_CONFIG", str(home / place))
            named = home / place if place == "given.toml" else None
            assert load(named).worker.slots == slots

    def test_no_setting_is_read_from_the_current_directory(
        self, home: Path, write: Write, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        repository = home / "cloned"
        for folder in (repository, repository / "config", repository / ".config" / "draftsman"):
            folder.mkdir(parents=True)
            (folder / "draftsman.toml").write_text('[handlers]\n"x" = "evil:run"\n')
        (repository / ".env").write_text("DRAFTSMAN_WORKER__SLOTS=3\n")
        monkeypatch.chdir(repository)
        assert load() == Settings()

    def test_an_unreadable_home_has_no_settings(self, home: Path) -> None:
        """The case of `sudo -u USER` with root's home."""
        closed = home / "closed"
        (closed / ".config" / "draftsman").mkdir(parents=True)
        closed.chmod(0)
        script = (
            "import os\n"
            "from draftsman.settings import load\n"
            "load()\n"
            "if os.geteuid() == 0: os.setuid(65534)\n"
            "print(load().worker.slots)\n"
        )
        done = subprocess.run(
            [sys.executable, "-c", script],
            env={**os.environ, "HOME": str(closed), "XDG_CONFIG_HOME": str(closed / ".config")},
            capture_output=True,
            text=True,
            check=False,
        )
        closed.chmod(0o700)
        assert done.stdout == "10\n", done.stderr

    def test_a_tilde_is_expanded_to_the_users_home(self, home: Path, write: Write) -> None:
        loaded = load(write('data_dir = "~/data"\n[log]\nfile = "~/draftsman.log"\n'))
        assert (loaded.data_dir, loaded.log.file) == (home / "data", home / "draftsman.log")

    def test_the_tidy_agent_is_added_to_configured_agents(self, write: Write) -> None:
        agents = load(write('[agents.mine]\ncommand = ["mine"]\n')).agents
        assert set(agents) == {"tidy", "mine"}

    def test_tidy_can_be_replaced(self, write: Write) -> None:
        agents = load(write('[agents.tidy]\ncommand = ["mine"]\n')).agents
        assert agents["tidy"].command == ("mine",)

    @pytest.mark.parametrize("written", ["0", "0.0"])
    def test_zero_seconds_is_a_question_that_never_expires(
        self, written: str, write: Write, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        assert load(write(f"[questions]\nexpires_in = {written}\n")).questions.expires_in is None
        monkeypatch.setenv("DRAFTSMAN_QUESTIONS__EXPIRES_IN", "0")
        assert load().questions.expires_in is None


class TestRefusals:
    @pytest.mark.parametrize(
        ("text", "parts"),
        [
            ("slotz = 3", ["FILE: unknown key 'slotz'; allowed here: ", "database_url", "worker"]),
            ("[worker]\nslotz = 3", ["unknown key 'worker.slotz'; did you mean slots?"]),
            (
                "[people.anna]\nrolez = []",
                ["'people.anna.rolez'", "did you mean roles?"],
            ),
            ("[people.anna]\nquiet_hours = '25:00-7:00'", ["anna.quiet_hours is '25:00-7:00'"]),
            ("[questions]\nquiet_hours = '07:00-07:00'", ["questions.quiet_hours is", "never end"]),
            ("[questions]\ntimezone = 'Mars/X'", ["questions.timezone is 'Mars/X'", "Europe/B"]),
            ("[questions]\nescalate_to = 'x'", ["questions.escalate_to: 'x' is not a group"]),
            ("[worker]\nxyz = 3", ["unknown key 'worker.xyz'", "prefetch, queues, slots"]),
            ("[types.x]\nretries = 1", ["'types.x.retries'", "max_retries"]),
            ("[worker]\nslots = 0", ["FILE: worker.slots is 0: ", "must be at least 1"]),
            ("[worker]\nslots = 'many'", ["worker.slots is 'many'", "a whole number"]),
            ("default_agent = 'codr'", ["unknown default_agent 'codr'; agents: tidy"]),
            ("worker = 3", ["worker is 3", "must be a table"]),
            ("[log]\nlevel = 'loud'", ["log.level is 'loud'", "'debug', 'info', 'warning'"]),
            ("[people.anna]\nroles = ['boss']", ["people.anna.roles.0 is 'boss'", "'approver'"]),
            ("[agents.mine]", ["agents.mine.command", "required"]),
            ("[worker]\nheartbeat = 200", ["worker: heartbeat must be less than half of lease"]),
            ("[groups]\nops = ['anna']", ["groups.ops contains 'anna', which is not in people"]),
            ("[types.x]\ntimeout = inf", ["types.x.timeout is inf", "finite"]),
            ("[sweeps]\nderegister_after = nan", ["sweeps.deregister_after is nan", "finite"]),
            (
                "[people.a]\nslack = 'U1'\n[people.b]\nslack = 'U1'",
                ["people.a and people.b have the same slack: 'U1'"],
            ),
            ("x =", ["FILE: not valid TOML"]),
        ],
    )
    def test_an_invalid_file_is_refused(self, text: str, parts: list[str], write: Write) -> None:
        message = _refusal(write(text))
        assert message.startswith("FILE: ")
        assert [part for part in parts if part not in message] == []

    @pytest.mark.parametrize(
        ("variable", "value", "parts"),
        [
            (
                "DRAFTSMAN_WORKER__SLOTS",
                "many",
                ["worker.slots is 'many'", "a whole number"],
            ),
            (
                "draftsman_worker__slots",
                "many",
                ["worker.slots is 'many'", "a whole number"],
            ),
            ("DRAFTSMAN_WORKER", '{"slots": 0}', ["worker.slots is 0", "must be at least 1"]),
            ("DRAFTSMAN_WORKER__SLOTZ", "4", ["unknown key 'worker.slotz'", "slots"]),
            ("DRAFTSMAN_WORKER__QUEUES", "a,b", ["JSON", '["default"]']),
            ("DRAFTSMAN_LOG", "debug", ["JSON"]),
        ],
    )
    def test_an_invalid_variable_is_named_and_not_the_file(
        self,
        variable: str,
        value: str,
        parts: list[str],
        write: Write,
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        monkeypatch.setenv(variable, value)
        message = _refusal(write(""))
        assert message.startswith(f"{variable}: ")
        assert [part for part in parts if part not in message] == []

    @pytest.mark.parametrize(
        ("name", "reason"), [("missing.toml", "No such file"), ("", "Is a directory")]
    )
    def test_an_unreadable_file_is_refused(self, home: Path, name: str, reason: str) -> None:
        assert _refusal(home / name) == f"FILE: {reason}" + (
            " or directory; give a readable file with --config"
            if name
            else "; give a readable file with --config"
        )

    def test_a_binary_file_is_refused(self, home: Path) -> None:
        (home / "binary.toml").write_bytes(b"\xff\xfe\x00")
        assert _refusal(home / "binary.toml").startswith("FILE: not valid TOML")

    def test_a_long_value_is_truncated(self, write: Write) -> None:
        assert len(_refusal(write(f"[worker]\nslots = '{'x' * 5000}'"))) < 300

    @pytest.mark.parametrize(
        "text",
        [
            "database_url = ['postgresql://anna:s3cr3t@db/x']",
            "listen_url = ['s3cr3t']",
            "[agents.mine]\ncommand = ['x']\nenv = {TOKEN = ['s3cr3t']}",
        ],
    )
    def test_a_secret_is_not_repeated(self, text: str, write: Write) -> None:
        assert "s3cr3t" not in _refusal(write(text))

    def test_a_configuration_error_ends_a_command_with_2(self) -> None:
        assert ConfigError.exit_code == 2


class TestUnknownVariables:
    @pytest.mark.parametrize(
        ("name", "near"),
        [
            ("DRAFTSMAN_DATABSE_URL", "DRAFTSMAN_DATABASE_URL"),
            ("draftsman_datadir", "DRAFTSMAN_DATA_DIR"),
            ("DRAFTSMAN_CONFIG_FILE", "DRAFTSMAN_CONFIG"),
            ("DRAFTSMAN_WORKR__SLOTS", "DRAFTSMAN_WORKER__SLOTS"),
            ("DRAFTSMAN_DATABASE_URL__X", "DRAFTSMAN_DATABASE_URL"),
        ],
    )
    def test_a_misspelled_database_setting_is_refused(
        self, name: str, near: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv(name, "x")
        with pytest.raises(ConfigError) as raised:
            load()
        assert str(raised.value) == f"{name}: unknown setting; did you mean {near}?"

    def test_a_variable_of_a_missing_table_is_refused(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("DRAFTSMAN_NOTHING__LIKE_IT", "x")
        with pytest.raises(ConfigError, match=r"DRAFTSMAN_NOTHING__LIKE_IT.*see config/"):
            load()

    def test_other_unknown_variables_are_reported_with_the_nearest_name(
        self, write: Write, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        path = write(
            'agents.a = { command = ["x"], pass_env = ["DRAFTSMAN_OF_AGENT"] }\n'
            'webhooks.w = { url = "https://example.org", secret = { env = "DRAFTSMAN_HOOK" } }'
        )
        for name in (
            *("DRAFTSMAN_SLOTS", "DRAFTSMAN_LISTENURL", "DRAFTSMAN_ELSE", "DRAFTSMAN_DATABSE_URL"),
            *("DRAFTSMAN_OF_AGENT", "DRAFTSMAN_HOOK", "draftsman_log__level", "_DRAFTSMAN_X"),
            *("DRAFTSMAN_PORT", "DRAFTSMAN_PORT_5432_TCP_ADDR", "DRAFTSMAN_DB_SERVICE_HOST"),
            *("DRAFTSMAN_SERVICE_PORT_HTTP", "DRAFTSMAN_AGENTS__B__COMMAND"),
        ):
            value = {"draftsman_log__level": "debug", "DRAFTSMAN_AGENTS__B__COMMAND": '["x"]'}
            monkeypatch.setenv(name, value.get(name, "5"))
        monkeypatch.setenv("DRAFTSMAN_DATABASE_URL", "postgresql://x/y")  # set, not misspelled
        monkeypatch.setenv("DRAFTSMAN_EMPTY", "")
        near_by_name = {variable.name: variable.near for variable in unread_variables(load(path))}
        assert near_by_name == {
            "DRAFTSMAN_SLOTS": "DRAFTSMAN_WORKER__SLOTS",
            "DRAFTSMAN_LISTENURL": "DRAFTSMAN_LISTEN_URL",
            "DRAFTSMAN_DATABSE_URL": "DRAFTSMAN_DATABASE_URL",
            "DRAFTSMAN_ELSE": None,
        }


def test_the_password_of_the_database_is_never_displayed(write: Write) -> None:
    loaded = load(write("database_url = 'postgresql://anna:s3cr3t@db/x'"))
    assert "s3cr3t" not in f"{loaded} {loaded!r} {loaded.model_dump()} {loaded.model_dump_json()}"
    assert loaded.database_url is not None
    assert "s3cr3t" in loaded.database_url.get_secret_value()


def test_settings_are_immutable() -> None:
    with pytest.raises(ValidationError, match="frozen"):
        load().worker.slots = 3  # type: ignore[misc]


def test_data_of_root_is_below_var_and_that_of_a_user_in_the_home_folder(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    assert load().data_dir == Path("/var/lib/draftsman")
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    assert load().data_dir.is_relative_to(home)


class TestSlack:
    SOCKET = '[slack]\nbot_token = { env = "B" }\napp_token = { env = "A" }\n'

    def test_socket_mode_is_the_default_and_serves_nothing(self, write: Write) -> None:
        slack = SlackSettings.of(load(write(self.SOCKET)))
        assert slack is not None
        assert (slack.mode, slack.address) == ("socket", None)
        assert slack.api_url == "https://slack.com/api/"

    def test_http_is_served_on_a_separate_port(self, write: Write) -> None:
        text = '[slack]\nmode = "http"\nbot_token = { env = "B" }\nsigning_secret = { env = "S" }\n'
        slack = SlackSettings.of(load(write(text)))
        assert slack is not None
        assert slack.address == ("127.0.0.1", 3000)

    @pytest.mark.parametrize(
        ("text", "message"),
        [
            ('bot_token = { env = "B" }', 'mode "socket" needs app_token'),
            ('mode = "http"\nbot_token = { env = "B" }', 'mode "http" needs signing_secret'),
            (
                'bot_token = "xoxb-1-abcdefgh"',
                'slack.bot_token: must be a reference, { env = "NAME" }',
            ),
            (
                "channels = ['general']",
                "slack.channels.0 is 'general': must be a channel id such as C012ABCDEF, not",
            ),
            ("listen = '3000'", "slack.listen is '3000': must be host:port"),
            ("listen = 'localhost:70000'", "the port must be 0 to 65535"),
            (
                "command = 'draftsman'",
                "slack.command is 'draftsman': must be a command such as /draftsman",
            ),
            ("team = 'ours'", "slack.team is 'ours': must be a workspace id such as T012ABCDEF"),
            (
                'bot_token = { env = "xoxb-1-abcdefgh" }\napp_token = { env = "A" }',
                "slack.bot_token.env: must be the name of a variable such as SLACK_BOT_TOKEN",
            ),
            ("api_url = 'slack.com'", "slack.api_url: must be a URL"),
        ],
    )
    def test_an_invalid_value_is_refused(self, write: Write, text: str, message: str) -> None:
        keys = "" if "bot_token" in text else self.SOCKET.removeprefix("[slack]\n")
        parts = _refusal(write(f"[slack]\n{keys}{text}\n"))
        assert message in parts
        assert "abcdefgh" not in parts
        assert "pattern" not in parts


class TestTrello:
    KEYS = 'key = { env = "K" }\ntoken = { env = "T" }\n'

    def test_a_key_and_a_token_are_enough(self, write: Write) -> None:
        trello = TrelloSettings.of(load(write(f"[trello]\n{self.KEYS}")))
        assert trello is not None
        assert (trello.poll, trello.callback_url, trello.address) == (15.0, None, None)
        assert trello.api_url == "https://api.trello.com"

    def test_webhooks_are_served_at_the_configured_address(self, write: Write) -> None:
        text = 'secret = { env = "S" }\ncallback_url = "https://x.org/t"\nlisten = "[::1]:0"\n'
        trello = TrelloSettings.of(load(write(f"[trello]\n{self.KEYS}{text}")))
        assert trello is not None
        assert trello.address == ("::1", 0)

    @pytest.mark.parametrize(
        ("text", "expected"),
        [
            ("callback_url = 'https://x.org'", "callback_url needs secret"),
            ("callback_url = 'https://x.org'\nsecret = { env = 'S' }", "needs listen"),
            ("callback_url = '/trello'", "trello.callback_url: must be a URL"),
            ("listen = 'x:70000'", "the port must be 0 to 65535"),
            ("listen = '3000'", "trello.listen is '3000': must be host:port"),
            ("poll = 0", "trello.poll is 0"),
            ("label = 'Draftsman: queued'", "label and queued_label must differ"),
            ("api_url = 'trello.com'", "trello.api_url: must be a URL"),
            ("secret = 'abcdef'", 'trello.secret: must be a reference, { env = "NAME" }'),
        ],
    )
    def test_an_invalid_value_is_named(self, write: Write, text: str, expected: str) -> None:
        error = _refusal(write(f"[trello]\n{self.KEYS}{text}\n"))
        assert (expected in error, "abcdef" in error) == (True, False)
