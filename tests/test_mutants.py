"""What `python -m tests.mutations` needs is there: the code that it changes, and its tests."""

from __future__ import annotations

from tests.mutations import targets
from tests.mutations.mutant import ROOT


def test_the_mutants_are_those_of_the_code() -> None:
    found = targets.mutants()
    assert targets.without_mutants(found) == set()
    assert targets.equivalent().keys() - {mutant.name for mutant in found} == set()


def test_the_tests_of_the_mutants_exist() -> None:
    files = {test.partition("::")[0] for test in targets.TESTS}
    assert {file for file in files if not (ROOT / file).exists()} == set()
