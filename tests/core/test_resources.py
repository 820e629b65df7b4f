"""Package data is found in a checkout; `test_packaging` checks a wheel."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

from draftsman import resources

ROOT = Path(__file__).resolve().parents[2]


def test_migrations_come_in_the_order_of_their_numbers_without_a_gap() -> None:
    numbers = [int(name.split("_")[0]) for name, _ in resources.migrations()]
    assert numbers == list(range(1, len(numbers) + 1))


def test_migrations_come_from_the_checkout() -> None:
    files = sorted((ROOT / "migrations").glob("*.sql"))
    expected = [(file.stem, file.read_text(encoding="utf-8")) for file in files]
    assert resources.migrations() == expected


def test_every_migration_records_itself() -> None:
    for name, text in resources.migrations():
        assert f"VALUES ('{name}')" in text


def test_the_example_configuration_is_toml() -> None:
    assert "worker" in tomllib.loads(resources.config_example())


def test_a_folder_inside_the_package_is_found_first() -> None:
    assert resources.folder("domain").joinpath("job.py").is_file()


def test_a_missing_folder_is_named() -> None:
    with pytest.raises(FileNotFoundError, match="lacks its nonsense; reinstall it"):
        resources.folder("nonsense")
