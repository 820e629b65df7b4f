"""The order of the packages of the core, as a contract of import-linter."""

from __future__ import annotations

from typing import Any, Final, cast

from grimp import ImportGraph
from importlinter.application import contract_utils, output
from importlinter.application.contract_utils import AlertLevel
from importlinter.domain import fields
from importlinter.domain.contract import Contract, ContractCheck

ROOT: Final = "draftsman."


class PackageOrder(Contract):
    """A package imports those of the lines below its own, and none of its own line.

    A package has the modules in it, except those of packages that have a line of their own: `jobs`
    may be far below `jobs.control`. A module without a package in `order` breaks the contract.
    """

    type_name = "package_order"

    order = fields.ListField(subfield=fields.StringField())
    outside = fields.SetField(subfield=fields.StringField(), required=False)
    ignore_imports = fields.SetField(subfield=fields.ImportExpressionField(), required=False)
    unmatched_ignore_imports_alerting = fields.EnumField(AlertLevel, default=AlertLevel.ERROR)
    broken_contract_guidance = fields.TextField(required=False)

    def check(self, graph: ImportGraph, verbose: bool) -> ContractCheck:
        removal = contract_utils.remove_ignored_imports_and_report(
            graph=graph,
            ignore_imports=cast(Any, self.ignore_imports),
            unmatched_alerting=cast(Any, self.unmatched_ignore_imports_alerting),
        )
        lines = [line.split() for line in cast(list[str], self.order)]
        rank = {package: -number for number, line in enumerate(lines) for package in line}
        outside = cast(set[str], self.outside) or set()
        names = (module.removeprefix(ROOT) for module in graph.modules if module.startswith(ROOT))
        packages = {
            name: package
            for name in names
            if (package := _package_of(name, rank.keys() | outside)) not in outside
        }
        missing = {
            name
            for name, package in packages.items()
            if not package and not graph.find_children(ROOT + name)
        }
        against = {
            f"{name} imports {imported}"
            for name, package in packages.items()
            for module in graph.find_modules_directly_imported_by(ROOT + name)
            if (imported := module.removeprefix(ROOT)) in packages
            and package != packages[imported]
            and rank.get(package, 0) <= rank.get(packages[imported], 0)
        }
        return ContractCheck(
            kept=not missing and not against,
            warnings=list(removal.warnings),
            ignored_import_count=removal.ignored_import_count,
            metadata={"problems": sorted([*(f"{name} has no line" for name in missing), *against])},
        )

    def render_broken_contract(self, check: ContractCheck) -> None:
        for problem in cast(list[str], check.metadata["problems"]):
            output.print_error(problem, bold=False)
        output.new_line()
        contract_utils.render_broken_contract_guidance(cast(Any, self.broken_contract_guidance))


def _package_of(module: str, packages: set[str]) -> str:
    """Return the nearest package of a module; "" if it has none."""
    while module and module not in packages:
        module = module.rpartition(".")[0]
    return module
