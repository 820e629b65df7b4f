"""Templates: versioned definitions from which jobs are submitted."""

from __future__ import annotations

from collections.abc import Sequence

from draftsman.database.database import Connection, Database, on_connection
from draftsman.errors import CommandHint, Conflict, NotFound, UsageError
from draftsman.formats.near_names import did_you_mean
from draftsman.job_types.published.service import PublishedTypes
from draftsman.jobs.job import AGENT_TYPE
from draftsman.jobs.requests.entered_form import EnteredForm
from draftsman.jobs.requests.invocation import Invocation
from draftsman.jobs.requests.service.request_checks import (
    RequestChecks,
    absolute_repo,
    build_request,
    require_instructions,
)
from draftsman.jobs.runs.job_limits import check_override_names
from draftsman.json_schemas.checker import SchemaChecker
from draftsman.json_schemas.parameter_schema import ParameterSchema
from draftsman.people.actor import Actor
from draftsman.people.policy import Policy, Verb
from draftsman.schedules import store
from draftsman.schedules.names import check_name
from draftsman.schedules.template import (
    Template,
    TemplateDefinition,
)
from draftsman.settings import Settings


class Templates:
    """Storage of templates, and requests made from them."""

    def __init__(
        self,
        *,
        db: Database,
        policy: Policy,
        settings: Settings,
        checks: RequestChecks,
        published: PublishedTypes,
    ) -> None:
        self._published = published
        self._db = db
        self._policy = policy
        self._settings = settings
        self._checks = checks

    all = on_connection(store.newest_templates)

    async def get(self, name: str) -> Template:
        """Return a template: `nightly`, or `nightly@3` for a version; raises NotFound."""
        name, version = parse_name(name)
        async with self._db.connection() as conn:
            return await find_template(conn, name, version)

    async def inputs(self, template: Template) -> ParameterSchema:
        """Return what people give: its parameters, and those of its type that it does not fix.

        Raises NotFound for a template that was removed.
        """
        if template.definition is None:
            raise removed_template(template.name)
        return template.definition.inputs.beside(await self._rest(template.definition))

    async def versions(self, name: str) -> list[Template]:
        """Return all versions of a template, newest first; raises NotFound."""
        async with self._db.connection() as conn:
            versions = await store.template_versions(conn, name, limit=store.MAX_TEMPLATES)
            return versions or [await find_template(conn, name)]

    async def add(self, name: str, definition: TemplateDefinition, actor: Actor) -> Template:
        """Store a new template; raises NotPermitted, UsageError, and Conflict where it exists."""
        check_name(name)
        definition = _located(definition)
        async with self._db.connection() as conn:
            versions = await store.template_versions(conn, name)
        if versions and versions[0].definition is not None:
            raise Conflict(f"template {name} exists", hint=CommandHint("templates edit", name))
        return await self._store(name, versions, definition, actor)

    async def edit(self, base: Template, definition: TemplateDefinition, actor: Actor) -> Template:
        """Store the next version after `base`; the same definition creates none.

        Raises NotPermitted, UsageError, and Conflict if there is a newer version.
        """
        definition = _located(definition)
        if base.definition == definition:
            self._authorize(actor)
            return base
        return await self._store(base.name, [base], definition, actor)

    async def remove(self, name: str, actor: Actor) -> None:
        """Remove a template; its versions are kept for its jobs. Raises NotFound, NotPermitted."""
        actor = self._authorize(actor)
        template = await self.get(name)
        async with self._db.connection() as conn:
            if await store.add_template(conn, name, template.version + 1, None, actor.name) is None:
                raise _changed(name)

    async def request(
        self,
        name: str,
        form: EnteredForm,
        *,
        unchecked: bool = False,
        removed: bool = False,
    ) -> Invocation:
        """Return the checked request of a template.

        `removed`: whether a named version of a removed template is allowed, as for a schedule.
        Raises NotFound, UsageError.
        """
        template = await self.get(name)
        if not removed:
            await self.get(template.name)
        async with SchemaChecker() as checker:
            request = await self.build(template, form, checker)
        request = await self._checks.resolve(request, unchecked=unchecked, chats=form.chats)
        return form.addressed(request)

    async def build(
        self,
        template: Template,
        form: EnteredForm,
        checker: SchemaChecker,
    ) -> Invocation:
        """Return the request of a template, whose repository and agent are not checked yet.

        Raises InvalidParameters, and UsageError for a name that is no parameter.
        """
        definition = template.definition
        if definition is None:
            raise removed_template(template.name)
        rest = await self._rest(definition)
        inputs = definition.inputs.beside(rest)
        inputs.check_names(form.values)
        given = inputs.parsed(form.values) if form.typed else dict(form.values)
        params = definition.inputs.defaults | given
        await checker.check_parameters(
            inputs.schema, params, f"parameters of template {template.name}"
        )
        rendered = definition.render(params) | form.request_fields
        if passed_on := {name: params[name] for name in rest.properties if name in params}:
            rendered["payload"] = rendered.get("payload", {}) | passed_on
        require_instructions(rendered)
        request = build_request(rendered, self._settings)
        ref = template.ref.model_copy(update={"parameters": params})
        return request.model_copy(update={"template": ref})

    async def _rest(self, definition: TemplateDefinition) -> ParameterSchema:
        """Return the parameters of the described type that the payload does not fix."""
        name = definition.type or AGENT_TYPE
        type = (await self._published.of([name])).get(name)
        return type.inputs.without(definition.fixed) if type else ParameterSchema({})

    async def _store(
        self,
        name: str,
        versions: Sequence[Template],
        definition: TemplateDefinition,
        actor: Actor,
    ) -> Template:
        """Store the version after the newest of these."""
        actor = self._authorize(actor)
        names = {name: None for name in definition.overrides or {} if "{" not in name}
        check_override_names(definition.type or AGENT_TYPE, names, self._settings.handlers)
        async with SchemaChecker() as checker:
            schema = {"type": "object", **definition.parameters}
            if (problem := await checker.schema_problem(schema)) is not None:
                raise UsageError(f"parameters: {problem}")
        version = versions[0].version + 1 if versions else 1
        async with self._db.connection() as conn:
            added = await store.add_template(conn, name, version, definition, actor.name)
        if added is None:
            raise _changed(name)
        return added

    def _authorize(self, actor: Actor) -> Actor:
        actor = self._policy.resolve(actor)
        self._policy.check(actor, Verb.TEMPLATES)
        return actor


def parse_name(text: str) -> tuple[str, int | None]:
    """Return the name and version of `nightly@3`; raises UsageError."""
    name, at, version = text.partition("@")
    if at and not (version.isascii() and version.isdigit() and 0 < int(version) < 2**31):
        raise UsageError(f"{text[:80]!r}: a version is a number from 1, such as {name[:60]}@1")
    return name, int(version) if at else None


async def find_template(conn: Connection, name: str, version: int | None = None) -> Template:
    """Return a template, in its newest version or in this version; raises NotFound."""
    versions = await store.template_versions(conn, name, version)
    if versions and versions[0].definition is None and version is None:
        raise removed_template(name)
    if versions and version in (None, versions[0].version) and versions[0].definition is not None:
        return versions[0]
    if versions:
        raise NotFound(
            f"template {name} has no version {version}", hint=CommandHint("templates show", name)
        )
    names = [template.name for template in await store.newest_templates(conn)]
    tail = did_you_mean(name, names)
    raise NotFound(f"unknown template {name[:80]!r}{tail}", hint=CommandHint("templates list"))


def _located(definition: TemplateDefinition) -> TemplateDefinition:
    """Return the definition with an absolute path of its repository."""
    if definition.repo is None or "repo" not in definition.literal_fields:
        return definition
    return definition.model_copy(update={"repo": absolute_repo(definition.repo)})


def removed_template(name: str) -> NotFound:
    """Return the error of a template that was removed."""
    return NotFound(f"template {name} was removed", hint=CommandHint("templates list"))


def _changed(name: str) -> Conflict:
    return Conflict(
        f"template {name} was changed meanwhile; read it again",
        hint=CommandHint("templates show", name),
    )
