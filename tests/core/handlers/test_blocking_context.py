"""The context of threads has the methods of the context of coroutines."""

from __future__ import annotations

import inspect
from typing import Any, Final, get_type_hints

from draftsman import BlockingRunContext, RunContext
from tests.support.cases import cases
from tests.support.signatures import parameters

OF_COROUTINES: Final = {"wait_for_answers"}
"""Takes coroutines, which threads do not have."""
OF_THREADS: Final = {"step"}
"""Takes functions that are no coroutine functions."""
METHODS: Final = sorted(
    name for name in dir(RunContext) if not name.startswith("_") and name not in OF_COROUTINES
)


def test_both_contexts_have_the_same_members() -> None:
    members = {name for name in dir(BlockingRunContext) if not name.startswith("_")}
    assert members == set(METHODS)


@cases("name", METHODS)
def test_a_method_has_the_signature_of_its_twin(name: str) -> None:
    method: Any = getattr(RunContext, name)
    twin: Any = getattr(BlockingRunContext, name)
    if isinstance(method, property):
        method, twin = method.fget, twin.fget
    assert not inspect.iscoroutinefunction(twin)
    assert inspect.getdoc(twin)
    assert parameters(twin) == parameters(method)
    if name not in OF_THREADS:
        assert get_type_hints(twin) == get_type_hints(method)
