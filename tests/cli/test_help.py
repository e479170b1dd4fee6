"""Every command has a help page with an example, and the arguments of the example are valid."""

import re
import shlex
from collections.abc import Iterator

import click
import pytest

from sso.cli import program

# What may precede and follow a command in an example.
ENDS = {"|", ">", ">>"}


def commands(command: click.Command, ctx: click.Context) -> Iterator[tuple[str, click.Command, click.Context]]:
    """The command and those below it, with their names as they are typed."""
    yield ctx.command_path, command, ctx
    if isinstance(command, click.Group):
        for name in command.list_commands(ctx):
            subcommand = command.get_command(ctx, name)
            assert subcommand is not None, name
            yield from commands(subcommand, click.Context(subcommand, info_name=name, parent=ctx))


ALL = {name: (command, ctx) for name, command, ctx in commands(program, click.Context(program, info_name="sso"))}


def example_lines(name: str) -> list[str]:
    """The lines of the last paragraph of the description, without its heading."""
    command, _ = ALL[name]
    paragraph = (command.help or "").strip().replace("\\\n", "").split("\n\n")[-1]
    heading, *lines = paragraph.replace("\b\n", "").splitlines()
    assert heading.strip() == "Example:", f"{name}: the help has to end with an example"
    return [line.strip() for line in lines]


def arguments(line: str) -> list[str]:
    """The arguments of `sso` in a line of shell."""
    inner = re.search(r"\$\((sso .*?)\)", line)  # as in eval "$(sso …)"
    words = shlex.split(inner[1] if inner else re.sub(r"\$\(.*?\)", "", line))
    rest = words[words.index("sso") + 1 :]
    return rest[: next((index for index, word in enumerate(rest) if word in ENDS), len(rest))]


def parse(words: list[str]) -> str:
    """Parses the arguments of `sso` without running anything; returns the name of the command."""
    ctx = program.make_context("sso", words)
    while isinstance(ctx.command, click.Group):
        words = [*ctx._protected_args, *ctx.args]
        if not words and ctx.command.invoke_without_command:
            break
        with ctx:
            name, command, rest = ctx.command.resolve_command(ctx, words)
        assert command is not None
        ctx = command.make_context(name, rest, parent=ctx)
    return ctx.command_path.removesuffix(" ")


def typed_name(ctx_path: str) -> str:
    """A command path of click without the names of arguments."""
    return " ".join(word for word in ctx_path.split() if word.islower())


@pytest.fixture(autouse=True)
def every_file_exists(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(click.Path, "convert", lambda _self, value, _param, _ctx: value)


@pytest.mark.parametrize("name", ALL)
def test_help_ends_with_an_example_that_parses(name: str) -> None:
    parsed = [typed_name(parse(arguments(line))) for line in example_lines(name)]
    assert parsed
    if not isinstance(ALL[name][0], click.Group):
        assert name in parsed
    assert all(path.startswith(name.split()[0]) for path in parsed)


def test_example_with_a_wrong_option_is_found() -> None:
    assert parse(["user", "show", "ann@example.com"]).startswith("sso user show")
    with pytest.raises(click.UsageError):
        parse(["user", "show", "ann@example.com", "--wrong"])
    with pytest.raises(click.UsageError):
        parse(["user", "show"])
    assert arguments("A=1 sso export > state.json") == ["export"]
    assert arguments("""echo '{"users": []}' | sso apply -""") == ["apply", "-"]
    assert arguments('eval "$(sso completion bash)"') == ["completion", "bash"]


@pytest.mark.parametrize("name", ALL)
def test_help_page_is_complete(name: str) -> None:
    command, ctx = ALL[name]
    page = command.get_help(ctx)
    assert "..." not in page.replace("[ARGS]...", "").replace("USER...", "").replace("CONDITION...", "").replace(
        "[EVENT]...", ""
    ), "cut off"
    for parameter in command.params:
        if isinstance(parameter, click.Option):
            assert parameter.help, f"{name} {parameter.opts[0]}"
            assert parameter.help.endswith((".", ")")), f"{name} {parameter.opts[0]}"


@pytest.mark.parametrize("name", [name for name in ALL if re.search(r" (list|show|members)$", name)])
def test_lists_and_records_are_available_as_json_and_tsv(name: str) -> None:
    options = {option for parameter in ALL[name][0].params for option in parameter.opts}
    assert {"--json", "--tsv"} <= options
