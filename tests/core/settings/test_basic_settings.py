"""Settings read without pydantic, and the stamp of a validated configuration file."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from psycopg.conninfo import conninfo_to_dict

from draftsman import basic_settings
from draftsman.basic_settings import BasicSettings, digest, read, remember
from draftsman.errors import ConfigError
from draftsman.settings import Settings, load
from draftsman.settings.people import PersonSettings
from tests.support.cases import cases

FILE = """
database_url = "postgresql://draftsman:secret@db/jobs"
data_dir = "~/jobs"
[database]
pool_size = 3
connect_timeout = 2
[worker]
slots = 3
lease = 120
[questions]
expires_in = 0
self_approval = true
[people.anna]
login = "anna"
roles = ["approver"]
[retention]
logs = 6
[groups]
reviewers = ["anna"]
"""


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Give the test its own home and cache directory, without variables."""
    unset = ("DRAFTSMAN_", "XDG_", "DATABASE_URL")
    for name in [name for name in os.environ if name.upper().startswith(unset)]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(tmp_path))
    return tmp_path


@pytest.fixture
def config(tmp_path: Path) -> Path:
    """Provide a configuration file."""
    path = tmp_path / "draftsman.toml"
    path.write_text(FILE, encoding="utf-8")
    return path


@pytest.fixture
def validated(config: Path) -> Path:
    """Provide a configuration file with its stamp."""
    stamp(config)
    return config


def stamp(config: Path) -> Path:
    """Write the stamp of the file and return the path of the stamp."""
    validated = digest(config)
    assert validated is not None
    people = load(config).people.items()
    remember(validated, config, {name: person.accounts for name, person in people})
    return Path.home() / ".cache" / "draftsman" / "validated-config"


def no_models() -> Any:
    """Fail, because a setting needs the models."""
    pytest.fail("the models were built")


def basic(config: Path | None, models: Callable[[], Any] = no_models) -> BasicSettings:
    """Read the settings without the models."""
    settings = read(config, models)
    assert settings is not None
    return settings


def assert_same(basic: BasicSettings, models: Settings) -> None:
    """Compare all settings that are read without the models."""
    for table, defaults in {**basic_settings.TABLES, **basic_settings.UNSET_TABLES}.items():
        for name in defaults:
            value = getattr(getattr(basic, table), name)
            assert (table, name, value) == (table, name, getattr(getattr(models, table), name))
    assert basic.data_dir == models.data_dir
    for name in ("database_url", "listen_url"):
        urls = getattr(basic, name), getattr(models, name)
        assert len({url and url.get_secret_value() for url in urls}) == 1
    assert basic.people.keys() == models.people.keys()
    for name, person in models.people.items():
        fields = {field: getattr(basic.people[name], field) for field in basic_settings.PERSON}
        own = {field: getattr(person, field) for field in basic_settings.PERSON}
        assert fields | {"roles": tuple(fields["roles"])} == own
        assert basic.people[name].accounts == person.accounts
    assert {name: tuple(group) for name, group in basic.groups.items()} == models.groups
    assert basic.uses_fallback_url == models.uses_fallback_url


def test_the_defaults_are_those_of_the_models() -> None:
    assert_same(basic(None), load())
    assert PersonSettings().model_dump() == basic_settings.PERSON


def test_a_setting_that_is_not_read_directly_is_that_of_the_models() -> None:
    models = load()
    settings = basic(None, lambda: models)
    assert settings.sweeps.deregister_after == models.sweeps.deregister_after
    assert settings.worker.slots == models.worker.slots
    assert settings.dashboard is models.dashboard


def test_a_validated_file_and_variables_have_the_values_of_the_models(
    validated: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert_same(basic(validated, lambda: load(validated)), load(validated))
    monkeypatch.setenv("DRAFTSMAN_DATABASE_URL", "postgresql://other@db/jobs")
    monkeypatch.setenv("DRAFTSMAN_LISTEN_URL", "")
    monkeypatch.setenv("DRAFTSMAN_DATA_DIR", "~/other")
    assert_same(basic(validated, lambda: load(validated)), load(validated))
    assert_same(basic(None), load())


@pytest.mark.parametrize("url", ["postgresql://app@db/app", "postgres://app@db/app"])
def test_database_url_is_used_if_nothing_else_names_the_database(
    validated: Path, monkeypatch: pytest.MonkeyPatch, url: str
) -> None:
    monkeypatch.setenv("DATABASE_URL", url)
    assert_same(basic(None), load())
    models = load()
    assert models.database_url is not None
    assert (models.database_url.get_secret_value(), models.uses_fallback_url) == (url, True)
    assert_same(basic(validated, lambda: load(validated)), load(validated))
    assert not load(validated).uses_fallback_url, "the file names a database"
    monkeypatch.setenv("DRAFTSMAN_DATABASE_URL", "postgresql://other@db/jobs")
    assert_same(basic(None), load())
    assert not load().uses_fallback_url


@pytest.mark.parametrize(
    ("url", "name"),
    [
        ("mysql://app:s3cr3t@db/app", "mysql://"),
        ("jdbc:mysql://db/app?user=app", "jdbc:mysql://"),
        ("sqlite:///app.db?cache=shared", "sqlite://"),
        ("mongodb+srv://db", "mongodb+srv://"),
        ("app", "must be a URL"),
    ],
)
def test_database_url_of_another_database_is_refused_with_its_scheme(
    monkeypatch: pytest.MonkeyPatch, url: str, name: str
) -> None:
    """The embedded database must never replace a database that a variable names."""
    monkeypatch.setenv("DATABASE_URL", url)
    assert read(None, no_models) is None
    with pytest.raises(ConfigError, match=rf"^DATABASE_URL: {re.escape(name)}.*unset") as refused:
        load()
    assert "s3cr3t" not in str(refused.value)
    assert load(database_url="postgresql://db/app").database_url is not None
    for setting in ("DRAFTSMAN_DATABASE_URL", "DRAFTSMAN_LISTEN_URL"):
        monkeypatch.setenv(setting, url)
        assert read(None, no_models) is None
        with pytest.raises(ConfigError, match=re.escape(name)):
            load()
        monkeypatch.delenv(setting)


def test_an_empty_database_url_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DATABASE_URL", "")
    assert_same(basic(None), load())
    assert load().database_url is None


@cases(
    ("url", "understood"),
    [
        ("postgresql+asyncpg://app:x@db/app", "postgresql://app:x@db/app"),
        ("postgresql+psycopg://db/app", "postgresql://db/app"),
        ("jdbc:postgresql://db:5433/app?user=app", "postgresql://db:5433/app?user=app"),
        ("postgis://db/app", "postgresql://db/app"),
        ("POSTGRES://db/app", "postgresql://db/app"),
        ("postgres://db/app?schema=public", "postgres://db/app"),
        (
            "postgres://db/app?pgbouncer=true&sslmode=require&connection_limit=1",
            "postgres://db/app?sslmode=require",
        ),
        ("postgresql:///app?host=/run&port=5433", "postgresql:///app?host=/run&port=5433"),
        ("host=db dbname=app options='-c a=b'", "host=db dbname=app options='-c a=b'"),
    ],
)
def test_urls_of_other_programs_are_understood(url: str, understood: str) -> None:
    assert basic_settings.read_url(url) == understood
    assert conninfo_to_dict(understood)["dbname"] == "app"


def test_an_invalid_database_url_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DATABASE_URL", "postgresql://app:50%off@db/app")
    assert read(None, no_models) is None
    with pytest.raises(ConfigError, match=r"DATABASE_URL: a password in a URL must be percent"):
        load()


def test_any_other_setting_is_that_of_the_models(validated: Path) -> None:
    models = load(validated)
    settings = read(validated, lambda: models)
    assert settings is not None
    assert settings.quotas is models.quotas
    assert settings.retention.logs == 6
    with pytest.raises(AttributeError):
        _ = settings.bogus


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("DRAFTSMAN_WORKER__LEASE", "60"),
        ("DRAFTSMAN_DATABASE_URI", "postgresql://db/jobs"),
        ("draftsman_data_dir", "/jobs"),
        ("DRAFTSMAN_DATABASE_URL", "db/jobs"),
        ("DRAFTSMAN_DATABASE_URL", "postgresql://anna:50%@db/jobs"),
        ("DRAFTSMAN_DATA_DIR", "~nobody-of-this-name/jobs"),
    ],
)
def test_other_variables_and_invalid_values_need_the_models(
    validated: Path, monkeypatch: pytest.MonkeyPatch, name: str, value: str
) -> None:
    monkeypatch.setenv(name, value)
    assert read(validated, no_models) is None
    assert read(None, no_models) is None


def test_a_file_is_read_directly_only_after_its_validation(config: Path) -> None:
    assert read(config, no_models) is None
    stamp(config)
    assert read(config, no_models) is not None
    config.write_text(f"{FILE}\n[quotas]\nbogus = 1\n", encoding="utf-8")
    assert read(config, no_models) is None


def test_a_stamp_has_the_digest_alone_and_is_private(config: Path) -> None:
    path = stamp(config)
    assert path.read_text() == digest(config)
    assert path.stat().st_mode & 0o777 == 0o600
    assert path.parent.stat().st_mode & 0o777 == 0o700
    assert [file.name for file in path.parent.iterdir()] == [path.name]


def test_a_file_that_was_changed_during_its_validation_gets_no_stamp(config: Path) -> None:
    before = digest(config)
    assert before is not None
    config.write_text("[bogus]\n", encoding="utf-8")
    remember(before, config, {})
    assert read(config, no_models) is None


def test_variables_that_may_replace_an_invalid_value_of_the_file_prevent_a_stamp(
    config: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config.write_text('[worker]\nslots = "many"\n', encoding="utf-8")
    monkeypatch.setenv("DRAFTSMAN_WORKER__SLOTS", "3")
    load(config)
    assert digest(config) is None


@pytest.mark.parametrize("value", ['pool_size = "3"', "pool_size = 3.0", "connect_timeout = '2'"])
def test_a_value_that_needs_conversion_is_read_by_the_models(config: Path, value: str) -> None:
    config.write_text(f"[database]\n{value}\n", encoding="utf-8")
    load(config)
    stamp(config)
    assert read(config, no_models) is None


def truncate(path: Path) -> None:
    path.write_text(path.read_text()[:-1])


def share(path: Path) -> None:
    path.chmod(0o644)


def link(path: Path) -> None:
    path.symlink_to(path.rename(path.with_name("target")))


def make_pipe(path: Path) -> None:
    path.unlink()
    os.mkfifo(path, 0o600)


def make_binary(path: Path) -> None:
    path.write_bytes(b"\xff" * 64)


@pytest.mark.parametrize("damage", [truncate, share, link, make_pipe, make_binary])
def test_a_damaged_or_shared_stamp_is_ignored(config: Path, damage: Any) -> None:
    damage(stamp(config))
    assert read(config, no_models) is None


def test_the_stamp_of_another_user_is_ignored(
    validated: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1234)
    assert read(validated, no_models) is None


def test_a_stamp_of_other_code_is_ignored(validated: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (validated.parent / "settings").mkdir()
    monkeypatch.setattr(basic_settings, "__file__", str(validated.parent / "basic_settings.py"))
    assert read(validated, no_models) is None


def test_an_unwritable_cache_directory_is_ignored(config: Path, home: Path) -> None:
    (home / ".cache").write_text("not a directory")
    stamp(config)
    assert read(config, no_models) is None
