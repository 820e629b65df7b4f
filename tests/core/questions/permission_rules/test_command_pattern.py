"""Plain commands and patterns: a pattern matches nothing that a shell reads in another way."""

from __future__ import annotations

import shlex
import string
from pathlib import PurePosixPath

from hypothesis import assume, given
from hypothesis import strategies as st

from draftsman.questions.permission_rules.command_pattern import (
    kind_of,
    matches,
    narrowest_pattern,
    parse_pattern,
    plain_words,
)
from tests.support.cases import cases

PATTERN = ("pytest", "tests/**", "-q")
HARMLESS = "pytest tests/unit/test_a.py -q"
META = [
    *(
        ";",
        "&",
        "&&",
        "||",
        "|",
        "|&",
        "\n",
        "\r",
        "\r\n",
        "\t",
        "\v",
        "\f",
        "\0",
        "\u2028",
        "\xa0",
    ),
    *("$(id)", "`id`", "$HOME", "${HOME}", "$'a'", "<(id)", ">(id)", ">", ">>", "<", "<<", "2>&1"),
    *("#", "!", "~", "*", "?", "[a]", "{a,b}", "(", ")", "\\", "'", '"', "%", "^", "…", "\u202e"),
]
SAFE = string.ascii_letters + string.digits + "_./:=@,+-"
words = st.text(alphabet=SAFE, min_size=1, max_size=20)
anything = st.text(max_size=30)
names = st.from_regex(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,7}", fullmatch=True)


@cases("meta", META)
def test_no_operator_substitution_or_redirection_is_plain_anywhere(meta: str) -> None:
    assert matches(PATTERN, plain_words(HARMLESS) or ())
    for place in range(len(HARMLESS) + 1):
        for text in (meta, f" {meta} ", f"{meta} rm -rf ."):
            command = HARMLESS[:place] + text + HARMLESS[place:]
            assert plain_words(command) is None, command


@given(anything, anything)
def test_what_matches_is_the_same_to_a_shell_and_stays_in_the_folder(
    before: str, after: str
) -> None:
    command = f"pytest tests/{before}test_a.py{after} -q"
    plain = plain_words(command)
    if plain is None or not matches(PATTERN, plain):
        return
    assert shlex.split(command) == command.split(" ") == list(plain)
    assert len(plain) == 3
    path = PurePosixPath(plain[1].partition("::")[0])
    assert ".." not in path.parts
    assert path.parts[0] == "tests"
    assert not any(part.startswith(("-", ".")) for part in path.parts)


@given(st.lists(words, min_size=1, max_size=6))
def test_a_plain_command_is_its_words_to_a_shell(items: list[str]) -> None:
    command = " ".join(items)
    plain = plain_words(command)
    if plain is not None:
        assert shlex.split(command) == list(plain)
        assert plain[0].isascii()
        assert "=" not in plain[0]
        assert "/" not in plain[0]


@given(st.lists(names, min_size=1, max_size=4), names, names)
def test_the_narrowest_pattern_matches_its_evidence_and_no_other_folder(
    folders: list[str], one: str, two: str
) -> None:
    folder = "/".join(folders)
    evidence = [words for n in (one, two) if (words := plain_words(f"pytest {folder}/{n}"))]
    assume(len(evidence) == 2)
    pattern = narrowest_pattern(evidence)
    assert all(matches(pattern, command) for command in evidence)
    assert parse_pattern(" ".join(pattern)) == pattern
    for other in (f"{folder}/x/a.py", f"{folder}/../a.py", f"/{folder}/a.py", f"{folder}/.git", ""):
        assert not matches(pattern, ("pytest", other))
    assert not matches(pattern, (*evidence[0], "-x"))
    assert not matches(pattern, evidence[0][:-1])


@cases(
    "command",
    [
        *("git push", "git push origin main", "git -c alias.x=push x", "git merge a", "git clean"),
        *("git pull", "gh pr merge 1", "npm publish", "cargo publish", "twine upload dist/a"),
        *(
            "sh -c ls",
            "bash x.sh",
            "env ls",
            "xargs rm",
            "sudo ls",
            "find . -delete",
            "timeout 1 ls",
        ),
        *("sed -i s/ls/id/e a.txt", "awk -f a.awk", "rm a", "curl example.org", "ssh host ls"),
        *("FOO=1 pytest", "./run.sh", "/bin/ls", "../x", "-x", "", " ls", "ls  -a", "ls "),
        *("docker run a", "kubectl apply", "npm --push", "make deploy", "GIT push", "Bash -c x"),
        *("nc.openbsd a/b", "vim.basic -es a/b", "bash5 a/b", "sh.exe a/b", "gdb -x a/b", "dig a"),
        *("git-push origin", "git.exe push", "GIT push", "docker-compose up", "tmux new", "http a"),
        *("git log --ext-diff", "git log --ext-d", "git diff --output=a", "git show --outp a"),
        *("git diff --textconv", "git log -p --show-signature", "git show --o a/b"),
        "curl --header AUTHORIZATION:x",
        "deployer ghp_0123456789abcdefghijABCDEFGHIJ012345",
        "tool --token=glpat-0123456789abcdefghij",
        "tool postgres://user:secret@host/db",
        "a " * 40 + "a",
        "x" * 301,
    ],
)
def test_pushes_merges_wrappers_secrets_and_paths_of_programs_are_never_plain(command: str) -> None:
    assert plain_words(command) is None


@cases(
    ("command", "kind"),
    [
        ("pytest tests/a.py", "pytest tests/*"),
        ("pytest tests/a/b.py::test_x -q", "pytest tests/a/* -q"),
        ("python -m pytest tests/a.py", "python -m pytest tests/*"),
        ("python scripts/gen.py", "python scripts/gen.py"),
        ("node tools/a.js", "node tools/a.js"),
        ("perl -m tools/a.pl", "perl -m tools/a.pl"),
        ("python -m pdb tools/a.py", "python -m pdb tools/a.py"),
        ("python -m coverage run tools/a.py", "python -m coverage run tools/a.py"),
        ("coverage run tools/a.py", "coverage run tools/a.py"),
        ("go run cmd/a.go", "go run cmd/a.go"),
        ("go vet cmd/a.go", "go vet cmd/*"),
        ("npm install acme/a", "npm install acme/a"),
        ("python3.11-dbg tools/a.py", "python3.11-dbg tools/a.py"),
        ("gmake -f tools/a.mk", "gmake -f tools/a.mk"),
        ("vitest run tests/a.ts", "vitest run tests/*"),
        ("cargo test", "cargo test"),
        ("pytest a.py", "pytest a.py"),
        ("go test ./...", "go test ./..."),
        ("ruff check --fix src/a.py", "ruff check --fix src/*"),
        ("cat .github/workflows/ci.yml", "cat .github/workflows/ci.yml"),
        ("cat ../x/y", "cat ../x/y"),
        ("tool --file=src/a.py", "tool --file=src/a.py"),
        ("scanner a/b:/etc/passwd", "scanner a/b:/etc/passwd"),
        ("git log --oneline -p src/a.py", "git log --oneline -p src/*"),
        ("git diff --stat -- src/a.py", "git diff --stat -- src/*"),
        ("cp src/a.py src/b.py", "cp src/a.py src/b.py"),
        ("mv src/a.py tests/b.py", "mv src/a.py tests/b.py"),
        ("tar -xf a/b.tar", "tar -xf a/b.tar"),
        ("gcc src/a.c -o build/a", "gcc src/* -o build/a"),
        ("pytest tests/a.py --junitxml out/a.xml", "pytest tests/* --junitxml out/a.xml"),
    ],
)
def test_only_files_in_a_folder_are_of_the_same_kind(command: str, kind: str) -> None:
    found = plain_words(command)
    assert found is not None
    assert " ".join(kind_of(found)) == kind


@cases(
    ("text", "pattern"),
    [
        ("pytest tests/**", ("pytest", "tests/**")),
        ("pytest tests/*", ("pytest", "tests/*")),
        ("python -m pytest tests/unit/**", ("python", "-m", "pytest", "tests/unit/**")),
        ("cargo test", ("cargo", "test")),
        ("cp src/a src/b", ("cp", "src/a", "src/b")),
        *((wrong, None) for wrong in ("cp src/* src/*", "mv src/** a", "gcc a.c -o build/*")),
        *((wrong, None) for wrong in ("git log --ext-diff src/**", "tool --output-dir out/**")),
        *((wrong, None) for wrong in ("python scripts/**", "x/** a", "pytest /**", "pytest **")),
        *((wrong, None) for wrong in ("pytest tests/*/**", "pytest a/../**", "pytest .git/**")),
        *(
            (wrong, None)
            for wrong in (
                "make tasks/**",
                "git push a/**",
                "pytest tests/**/*",
                "*",
                "pytest tests/***",
                "pytest tests*",
            )
        ),
    ],
)
def test_a_pattern_is_read_as_a_person_writes_it(
    text: str, pattern: tuple[str, ...] | None
) -> None:
    assert parse_pattern(text) == pattern
