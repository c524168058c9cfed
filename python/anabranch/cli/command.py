"""Commands: each declares its options as fields of a dataclass, and click reads the command line into it.

A field's type is ``Annotated`` with an :class:`Option` or :class:`Argument`; its default is the option's.
"""

from __future__ import annotations

import importlib
import shlex
import types
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, TypeVar, get_args, get_origin, get_type_hints

import click

from anabranch.cli.common import exit_status
from anabranch.cli.version import print_version

T = TypeVar("T")
if TYPE_CHECKING:
    _ParamType = click.ParamType[Any]
else:
    # No generic type before click 8.5.
    _ParamType = click.ParamType


class Option(NamedTuple):
    """An option.

    Attributes:
        name: Its spelling.
        help: Its help text.
        metavar: The name of its value.
        read: Makes the value of a text.
        alone: The value of the bare option. Another value follows ``=``; after a blank comes an argument.
    """

    name: str
    help: str
    metavar: str | None = None
    read: Callable[[str], Any] | None = None
    alone: str | None = None


class Argument(NamedTuple):
    """An argument: its name in usage lines, its help text, and the function that reads it."""

    metavar: str
    help: str
    read: Callable[[str], Any] | None = None


def command(options: type[T], *examples: str, name: str | None = None) -> Callable[[Callable[[T], None]], Command[T]]:
    """Make a command of a function, whose docstring is the help text.

    Args:
        options: The dataclass of the function's argument.
        examples: Lines of the example that ends the help text.
        name: The command's name, if it differs from the name of the module.
    """

    def made(work: Callable[[T], None]) -> Command[T]:
        return Command(name or work.__module__.rpartition(".")[2], options, work, examples)

    return made


def typed(command: str, options: Any, *names: str) -> str:
    """The text of a command with these options, except those with default values."""
    hints = get_type_hints(type(options), include_extras=True)
    words = ["anabranch", command]
    for name in names:
        (declared,) = hints[name].__metadata__
        value = getattr(options, name)
        if value == getattr(type(options), name, None):
            continue
        if isinstance(value, bool):
            words.append(declared.name.split("/")[0 if value else 1])
            continue
        for one in value if isinstance(value, tuple) else (value,):
            text = f"{one:g}" if isinstance(one, float) else str(one)
            words += [text] if isinstance(declared, Argument) else [declared.name, text]
    return shlex.join(words)


class _Quiet(click.Command):
    """A command with ``-V``. A closed pipe during help or version is no error."""

    def make_context(self, *arguments: Any, **named: Any) -> click.Context:
        """Read the arguments; help is printed here, because click would end with status 1."""
        try:
            return super().make_context(*arguments, **named)
        except BrokenPipeError:
            from anabranch.cli.common import silence

            silence()
            raise click.exceptions.Exit(0) from None

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse, unless the version is requested."""
        if args in (["-V"], ["--version"]):
            print_version()
            ctx.exit()
        return super().parse_args(ctx, args)


class Command(_Quiet, Generic[T]):
    """A command of this package."""

    def __init__(self, name: str, options: type[T], work: Callable[[T], None], examples: tuple[str, ...]) -> None:
        self._options = options
        self._parameters: list[click.Parameter] = []
        epilog = "\n".join(["\b", "Example:", *(f"  {line}" for line in examples)])
        super().__init__(name, callback=lambda **given: work(options(**given)), help=work.__doc__, epilog=epilog)

    @property
    def params(self) -> list[click.Parameter]:
        """The parameters, made on first use: the list of all commands needs none."""
        if not self._parameters:
            hints = get_type_hints(self._options, include_extras=True)
            self._parameters = [_parameter(self._options, name, hint) for name, hint in hints.items()]
        return self._parameters

    @params.setter
    def params(self, value: list[click.Parameter]) -> None:
        """Ignore the empty list that click sets."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse, and give bare options their values."""
        hints = get_type_hints(self._options, include_extras=True).values()
        alone = {one.name: one.alone for hint in hints for one in hint.__metadata__ if getattr(one, "alone", None)}
        return super().parse_args(ctx, [f"{word}={alone[word]}" if word in alone else word for word in args])

    def invoke(self, ctx: click.Context) -> Any:
        """Do the work; an error becomes a message and an exit status."""
        with exit_status():
            return super().invoke(ctx)

    def format_arguments(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Nothing: click shows arguments below the options (since 8.5), and :meth:`format_options` above them."""

    def collect_usage_pieces(self, ctx: click.Context) -> list[str]:
        """The usage line, with arguments as they are declared."""
        return ["[OPTIONS]", *(str(one.metavar) for one in self.get_params(ctx) if isinstance(one, click.Argument))]

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Arguments and options."""
        records: dict[str, list[tuple[str, str]]] = {"Arguments": [], "Options": []}
        for one in self.get_params(ctx):
            if record := one.get_help_record(ctx):
                records["Arguments" if isinstance(one, click.Argument) else "Options"].append(record)
        for title, rows in records.items():
            if rows:
                with formatter.section(title):
                    formatter.write_dl(rows)


class DeclaredArgument(click.Argument):
    """An argument with a help text; click has them since 8.5."""

    def __init__(self, *declarations: Any, help: str, **attributes: Any) -> None:  # noqa: A002 - as options have it
        super().__init__(*declarations, **attributes)
        self.help = help

    def get_help_record(self, ctx: click.Context) -> tuple[str, str]:  # noqa: ARG002 - click's
        """The row of the help."""
        return str(self.metavar), self.help or ""


class Kind(_ParamType):
    """A type of values, and its name in messages."""

    def __init__(self, read: Callable[[str], Any], name: str) -> None:
        self.read = read
        self.name = name

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """The value of a text; a default is a value already."""
        try:
            return self.read(value) if isinstance(value, str) else value
        except ValueError:
            self.fail(f"{value!r}: {self.name} was expected.", param, ctx)


_KINDS = {str: "text", Path: "a path", int: "a whole number", float: "a number"}


def _parameter(options: type, name: str, hint: Any) -> click.Parameter:
    """The parameter of click that a field declares."""
    (declared,) = hint.__metadata__
    kind = hint.__origin__
    if get_origin(kind) in (types.UnionType, tuple):
        kind, is_many = get_args(kind)[0], get_origin(kind) is tuple
    else:
        is_many = False
    is_required = not hasattr(options, name)
    # click itself makes an empty tuple for repeated options.
    given: dict[str, Any] = {} if is_required or is_many else {"default": getattr(options, name)}
    if kind is not bool:
        read = Kind(declared.read or kind, _KINDS.get(kind, "another value"))
        given |= {"type": read, "metavar": declared.metavar}
    if isinstance(declared, Argument):
        return DeclaredArgument([name], help=declared.help, required=is_required, nargs=-1 if is_many else 1, **given)
    if is_many:
        given["multiple"] = True
    if kind is bool:
        given["is_flag"] = True
    show = "/" not in declared.name and not is_many
    return click.Option([declared.name, name], help=declared.help, show_default=show, **given)


class _Members(Mapping[str, click.Command]):
    """The commands of a group, each imported on first use."""

    def __init__(self, places: Mapping[str, str]) -> None:
        self._places = places

    def __getitem__(self, name: str) -> click.Command:
        module, _, attribute = self._places[name].partition(":")
        found: click.Command = getattr(importlib.import_module(f"anabranch.cli.{module}"), attribute)
        return found

    def __iter__(self) -> Iterator[str]:
        return iter(self._places)

    def __len__(self) -> int:
        return len(self._places)


class Group(_Quiet, click.Group):
    """A group of commands.

    Args:
        name: The group's name on the command line.
        help: The help text.
        members: Each command's place, ``module:name`` in this folder, and the first line of its help: the list of
            commands imports none. A command without a line is hidden.
        named: Further arguments of click's group.
    """

    def __init__(self, name: str, help: str, members: Mapping[str, tuple[str, str]], **named: Any) -> None:  # noqa: A002 - click's
        places = {word: place for word, (place, _) in members.items()}
        # A group without further commands never writes into the mapping.
        super().__init__(name, commands=_Members(places), help=help, no_args_is_help=True, **named)  # type: ignore[arg-type]
        self.lines = {word: line for word, (_, line) in members.items() if line}

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's
        """The names, in the order in which they are declared."""
        return list(self.commands)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002 - click's
        """The list of commands."""
        if self.lines:
            with formatter.section("Commands"):
                formatter.write_dl(list(self.lines.items()))
