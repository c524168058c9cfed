"""``anabranch completion SHELL``: a script for a shell, from the commands' definitions.

The script contains all words, so that completion starts no program.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Annotated, Any

from anabranch.cli.command import Argument, command

SHELLS = ("bash", "zsh", "fish")

FILES, SCENARIOS, DIRECTORIES, NOTHING = "files", "scenarios", "directories", "nothing"
"""Kinds that the shell itself completes; other values are words."""


@dataclass(frozen=True)
class Option:
    """An option of a command.

    Attributes:
        names: Its spellings.
        value: Its value: words, or one of the kinds above; ``None`` for a flag.
        meaning: Its help.
    """

    names: tuple[str, ...]
    value: str | Sequence[str] | None
    meaning: str


@dataclass(frozen=True)
class Command:
    """A command that a shell completes.

    Attributes:
        path: The words that call it, "" for the program itself.
        options: Its options.
        arguments: Its arguments: words, and kinds.
        meaning: Its help.
    """

    path: str
    options: tuple[Option, ...]
    arguments: tuple[str | Sequence[str], ...]
    meaning: str


@dataclass(frozen=True, kw_only=True)
class CompletionOptions:
    """The options of the command."""

    shell: Annotated[str, Argument("bash|zsh|fish", "The shell that the script is for.")]


@command(
    CompletionOptions,
    'eval "$(anabranch completion bash)"',
    "anabranch completion fish > ~/.config/fish/completions/anabranch.fish",
)
def print_script(options: CompletionOptions) -> None:
    """Print a script that completes commands in a shell.

    It completes commands, options, names of components and studies, and scenario files. It starts no program.
    """
    sys.stdout.write(script(options.shell))


def script(shell: str) -> str:
    """The completion script of a shell.

    Raises:
        UserError: The shell is not supported.
    """
    from anabranch.errors import UserError, nearest

    if shell not in SHELLS:
        raise UserError(f'there is no completion for "{shell}"', hint=nearest(shell, SHELLS))
    found = list(commands())
    return _fish(found) if shell == "fish" else _bash(found, zsh=shell == "zsh")


def commands() -> Iterator[Command]:
    """Every command of the help, the program first."""
    from anabranch.cli.app import app

    words = _words()

    def walk(path: str, command: Any) -> Iterator[Command]:
        children = {name: child for name, child in getattr(command, "commands", {}).items() if not child.hidden}
        shown = [parameter for parameter in command.params if not getattr(parameter, "hidden", False)]
        options = tuple(_option(one) for one in shown if one.param_type_name == "option")
        files = any("FILE" in str(one.metavar) for one in shown if one.param_type_name == "argument")
        arguments = words.get(path, (FILES,) if files else ()) + ((list(children),) if children else ())
        help_option = Option(("-h", "--help"), None, "Show this message and exit.")
        yield Command(path, (*options, help_option), arguments, (command.help or "").partition("\n")[0])
        for name, child in children.items():
            yield from walk(f"{path} {name}".strip(), child)

    yield from walk("", app)


def _words() -> dict[str, tuple[str | Sequence[str], ...]]:
    """Values of the arguments of some commands."""
    from anabranch.cli.explain import registry
    from anabranch.files.checkout import shipped_studies
    from anabranch.keys.registry import aliases

    items = registry()
    names = sorted({name for item in items for name in (item["name"], *aliases(item))})
    kinds = list(dict.fromkeys(item["kind"] for item in items))
    studies = list(shipped_studies())
    scenarios = dict.fromkeys(("run", "sweep", "validate", "shell"), (SCENARIOS,))
    return {
        **scenarios, "compare": (FILES,), "explain": (names,), "list": (kinds,), "study": (studies, DIRECTORIES),
        "completion": (SHELLS,),
    }  # fmt: skip


def _option(option: Any) -> Option:
    names = (*option.opts, *option.secondary_opts)
    metavar = str(option.metavar or "")
    value: str | Sequence[str] | None
    if option.is_flag:
        value = None
    elif metavar.startswith("["):
        # The option may be bare, or have a value after "=".
        names, value = (*names, *(f"{name}{metavar.strip('[]')}" for name in names)), None
    elif re.fullmatch(r"[a-z-]+(\|[a-z-]+)+", metavar):
        value = metavar.split("|")
    else:
        value = DIRECTORIES if metavar == "DIR" else FILES if metavar == "FILE" else NOTHING
    return Option(names, value, option.help or "")


_BASH = """\
# Completion of anabranch for bash: source it, or keep it in a folder of bash-completion.
_anabranch() {
    local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]} command= word i
    for ((i = 1; i < COMP_CWORD; i++)); do
        word=${COMP_WORDS[i]}
        case "$command $word" in
            PATHS) command="${command:+$command }$word" ;;
        esac
    done
    COMPREPLY=()
    case "$command:$prev" in
VALUES
    esac
    case "$command:$cur" in
OPTIONS
    esac
    case "$command" in
ARGUMENTS
    esac
}
complete -F _anabranch anabranch
"""
_ZSH = """\
#compdef anabranch
# Completion of anabranch for zsh: source it behind compinit.
autoload -U +X bashcompinit && bashcompinit
"""
_COMPGEN = {FILES: ("-f",), DIRECTORIES: ("-d",), SCENARIOS: ("-f -X '!*.toml'", "-d")}
_FISH = {
    FILES: "(__fish_complete_path)", DIRECTORIES: "(__fish_complete_directories)",
    SCENARIOS: "(__fish_complete_suffix .toml)",
}  # fmt: skip


def _bash(found: Sequence[Command], *, zsh: bool) -> str:
    """The script for bash, which zsh also reads."""
    values, options, arguments = [], [], []
    for one in found:
        for option in one.options:
            if option.value is not None:
                patterns = "|".join(f"{_quoted(one.path)}:{name}" for name in option.names)
                values.append(f"        {patterns}) {_replies([option.value])}return ;;")
        names = [name for option in one.options for name in option.names]
        options.append(f"        {_quoted(one.path)}:-*) {_replies([names])}return ;;")
        if one.arguments:
            arguments.append(f"        {_quoted(one.path)}) {_replies(one.arguments)};;")
    paths = "|".join(_quoted(one.path if " " in one.path else f" {one.path}")
                     for one in found if one.path)  # fmt: skip
    text = _BASH.replace("PATHS", paths)
    for place, lines in (("VALUES", values), ("OPTIONS", options), ("ARGUMENTS", arguments)):
        text = text.replace(place, "\n".join(lines))
    return (_ZSH + text.partition("\n")[2]) if zsh else text


def _replies(what: Sequence[str | Sequence[str]]) -> str:
    """Statements that add words, files or directories to the replies."""
    told = []
    for each in what:
        if each == NOTHING:
            continue
        if isinstance(each, str):
            # Names of files may have blanks.
            told.append("compopt -o filenames 2>/dev/null; local IFS=$'\\n'; ")
            told += [f'COMPREPLY+=($(compgen {flags} -- "$cur")); ' for flags in _COMPGEN[each]]
        else:
            told.append(f'COMPREPLY+=($(compgen -W "{" ".join(each)}" -- "$cur")); ')
    return "".join(told)


def _quoted(text: str) -> str:
    return f"'{text}'"


def _fish(found: Sequence[Command]) -> str:
    """The script for fish: a line for each option and each argument."""
    lines = ["# Completion of anabranch for fish: keep it as completions/anabranch.fish.", "complete -c anabranch -f"]
    for one in found:
        here = f"complete -c anabranch -n {_single(_fish_condition(one, found))}"
        for option in one.options:
            for name in option.names:
                form = f"-l {name[2:]}" if name.startswith("--") else f"-s {name[1:]}"
                lines.append(f"{here} {form}{_fish_value(option.value)} -d {_single(_sentence(option.meaning))}")
        for argument in one.arguments:
            if isinstance(argument, str):
                lines.append(f"{here} -a {_single(_FISH[argument])}")
            else:
                lines += [f"{here} -a {_single(word)}" + _fish_meaning(one, word, found) for word in argument]
    return "\n".join(lines) + "\n"


def _fish_condition(command: Command, found: Sequence[Command]) -> str:
    """The condition that a command is being typed."""
    below = [one.path.rpartition(" ")[2] for one in found if one.path.rpartition(" ")[0] == command.path and one.path]
    seen = [f"__fish_seen_subcommand_from {word}" for word in command.path.split()]
    if below:
        seen.append(f"not __fish_seen_subcommand_from {' '.join(below)}")
    return "; and ".join(seen)


def _fish_value(value: str | Sequence[str] | None) -> str:
    if value is None:
        return ""
    if value == NOTHING:
        return " -x"
    return f" -x -a {_single(_FISH[value] if isinstance(value, str) else ' '.join(value))}"


def _fish_meaning(command: Command, word: str, found: Sequence[Command]) -> str:
    meaning = next((one.meaning for one in found if one.path == f"{command.path} {word}".strip()), "")
    return f" -d {_single(_sentence(meaning))}" if meaning else ""


def _sentence(text: str) -> str:
    """The first sentence, on one line."""
    return re.split(r"(?<=\.)\s", " ".join(text.split()))[0].rstrip(".")


def _single(text: str) -> str:
    """Text in single quotation marks, as fish reads them."""
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"
