"""What our commands add to typer's: ``-V`` behind each, an option that may have a value, and options read quickly."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, get_args, get_origin

import typer
from typer.core import TyperCommand, TyperGroup

from anabranch.cli.version import print_version


class _Quiet:
    """A command whose help and version may lose their reader: nothing is wrong then, where click ends with status 1."""

    def make_context(self, *arguments: Any, **named: Any) -> Any:
        """Read the arguments; help is printed here."""
        try:
            return super().make_context(*arguments, **named)  # type: ignore[misc]
        except BrokenPipeError:
            from anabranch.cli.common import silence

            silence()
            raise typer.Exit(0) from None


class Group(_Quiet, TyperGroup):
    """A group of commands of ours."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse, unless the version is asked for."""
        _answer_version(args)
        return super().parse_args(ctx, args)

    def get_params(self, ctx: Any) -> list[Any]:
        """The parameters, which are read quickly."""
        return _read_quickly(super().get_params(ctx))


class Command(_Quiet, TyperCommand):
    """A command of ours."""

    def get_params(self, ctx: Any) -> list[Any]:
        """The parameters, which are read quickly."""
        return _read_quickly(super().get_params(ctx))

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse, unless the version is asked for."""
        _answer_version(args)
        return super().parse_args(ctx, args)

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        """The usage line, with arguments as they are declared."""
        return ["[OPTIONS]", *(one.metavar for one in self.get_params(ctx) if one.param_type_name == "argument")]

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Arguments and options, without the names of Python's types."""
        parameters = self.get_params(ctx)
        arguments = [(one.metavar, one.help) for one in parameters if one.param_type_name == "argument"]
        options = [one.get_help_record(ctx) for one in parameters if one.param_type_name == "option"]
        for title, rows in (("Arguments", arguments), ("Options", [row for row in options if row is not None])):
            if rows:
                with formatter.section(title):
                    formatter.write_dl(rows)


class RunCommand(Command):
    """``run``, whose ``--why`` stands alone or as ``--why=all``; with a blank, what follows is the scenario file."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse, with the value that ``--why`` alone stands for."""
        return super().parse_args(ctx, ["--why=summary" if word == "--why" else word for word in args])


def _answer_version(args: list[str]) -> None:
    if args in (["-V"], ["--version"]):
        print_version()
        raise typer.Exit


class _Reader:
    """Reads an option's text; in the place of typer's own, whose import of pydantic costs more than a small run."""

    def __init__(self, read: Callable[[str], Any], kind: str) -> None:
        self._read = read
        self._kind = kind

    def coerce(self, value: Any, param: Any, ctx: Any) -> Any:  # noqa: ARG002 - the name is typer's
        """The value, or values, that an option is given."""
        many = param.multiple or param.nargs == -1
        if value is None:
            return () if many else None
        return [self._one(each) for each in value] if many else self._one(value)

    def _one(self, value: Any) -> Any:
        if not isinstance(value, str):
            return value
        try:
            return self._read(value)
        except ValueError:
            raise typer.BadParameter(f"{value!r}: {self._kind} was expected.") from None


# A flag that is left out has no text to read.
_KINDS: dict[Any, str] = {str: "text", Path: "a path", int: "a whole number", float: "a number", bool: "a flag"}


def _read_quickly(parameters: list[Any]) -> list[Any]:
    """The parameters, with a reader of ours where we know the type; other versions of typer have none to replace."""
    for parameter in parameters:
        declared = getattr(parameter, "type_descriptor", None)
        if declared is None or getattr(parameter, "_runtime_param", parameter) is not None:
            continue
        kind = declared.annotation
        if get_origin(kind) is list:
            (kind,) = get_args(kind)
        parser = declared.parameter_info.parser
        if parser is not None or kind in _KINDS:
            parameter._runtime_param = _Reader(parser or kind, _KINDS.get(kind, "another value"))
    return parameters


class Verbatim(Command):
    """A command that takes its arguments as they are, options among them."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Keep the arguments."""
        ctx.args = list(args)
        return args


class GatewayGroup(Group):
    """``gateway``: what is no command of ours is one of ``anabranch-gateway``."""

    PASSED = "anabranch-gateway"

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """The command, or the hidden one that hands over, whose first argument is then the other program's command."""
        if args[0] in self.commands and args[0] != self.PASSED:
            return super().resolve_command(ctx, args)
        return self.PASSED, self.commands[self.PASSED], args
