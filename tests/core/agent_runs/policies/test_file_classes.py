"""Classes of files: what they do when the work is merged, opened or installed."""

from __future__ import annotations

import pytest

from draftsman.agent_runs.policies.file_classes import CLASSES, classes_of
from draftsman.settings.policies import PolicySettings

FILES = {
    "ci": ".github/workflows/ci.yml .github/actions/x/action.yml action.yml action.yaml"
    " .github/dependabot.yml azure-pipelines.yml .azure-pipelines/release.yml"
    " bitbucket-pipelines.yml .cirrus.yml .cirrus.star .tekton/push.yaml .teamcity/settings.kts"
    " cloudbuild.yaml deploy/cloudbuild.prod.yaml buildspec.yml buildspec-test.yaml"
    " .gitlab-ci.yml .gitlab/ci/test.yml Jenkinsfile ci/Jenkinsfile.nightly .travis.yml"
    " .circleci/config.yml .buildkite/pipeline.yml .drone.yml appveyor.yml .woodpecker.yaml"
    " .pre-commit-config.yaml renovate.json .github/CODEOWNERS codecov.yml .mergify.yml",
    "agent_config": ".claude/settings.json .claude/hooks/a.sh .mcp.json ui/.mcp.json .codex/rules"
    " AGENTS.md pay/AGENTS.override.md CLAUDE.md CLAUDE.local.md GEMINI.md .cursor/rules/a.mdc"
    " .cursorrules .windsurfrules .github/copilot-instructions.md .opencode/plugin/a.ts"
    " opencode.json opencode.jsonc .gemini/settings.json .qwen/settings.json .goosehints"
    " .aider.conf.yml .roo/mcp.json .kiro/steering/a.md .github/instructions/a.instructions.md"
    " .CLAUDE/settings.json agents.md skills/SKILL.md",
    "developer_machine": ".vscode/tasks.json .devcontainer/devcontainer.json .envrc"
    " .githooks/pre-commit lefthook.yml .lefthook/pre-push/a.sh .husky/pre-commit .gitmodules"
    " .idea/runConfigurations/a.xml .npmrc .yarnrc.yml .pnpmfile.cjs .gitattributes .gitconfig"
    " x.code-workspace .mise.toml .tool-versions .mvn/extensions.xml sitecustomize.py .nvim.lua",
    "licenses": "LICENSE COPYING.txt LICENSES/MIT.txt",
    "migrations": "migrations/1.sql db/migrate/2.rb V1__a.sql",
    "lock_files": "uv.lock go.sum package-lock.json Cargo.lock Package.resolved",
}


@pytest.mark.parametrize("name", CLASSES)
def test_files_are_of_their_class(name: str) -> None:
    missing = [path for path in FILES[name].split() if name not in classes_of(path)]
    assert missing == []
    assert name in PolicySettings.model_fields


def test_the_classes_of_what_acts_elsewhere_ask_by_default() -> None:
    settings = PolicySettings()
    assert {settings.ci, settings.agent_config, settings.developer_machine} == {"ask"}


def test_ordinary_files_have_no_class() -> None:
    paths = "src/pay.py docs/agents/howto.md Makefile package.json src/action.py vscode/tasks.json"
    assert [path for path in paths.split() if classes_of(path)] == []


@pytest.mark.parametrize(
    ("path", "line", "acts"),
    [
        ("package.json", '    "postinstall": "node steal.js",', True),
        ("ui/package.json", '{"scripts": {"prepare": "husky"}}', True),
        ("package.json", '    "test": "vitest",', False),
        ("package.json", '    "left-pad": "^1.3.0"', False),
        ("composer.json", '"post-install-cmd": ["sh x"]', True),
        ("Makefile", "include .env.mk", True),
        ("Makefile", "-include local.mk", True),
        ("rules.mk", "X := $(shell id)", True),
        ("Makefile", "X != id", True),
        ("Makefile", "test: ; pytest", False),
        ("src/pay.py", "include x", False),
    ],
)
def test_lines_that_run_elsewhere_make_a_file_one_of_the_class(
    path: str, line: str, acts: bool
) -> None:
    assert ("developer_machine" in classes_of(path, [line])) is acts
