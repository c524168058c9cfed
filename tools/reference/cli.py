"""The command page, from the command line's own definitions."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from typing import Any

from reference.markdown import NOTICE, code, table

EXIT_STATUS = """\
Exit status: 0 done; 1 the run or a check failed; 2 bad input, with a message on standard error that
names its place and the expected values; 130 ended by Ctrl-C (SIGINT), 143 by SIGTERM. A signal ends a
command within 0.2 s: finished results are kept, and no file is incomplete. With `--json` a
command prints one JSON document on standard output and nothing else there.
"""


def page(root: Any) -> str:
    """Return the page of a command and of all its subcommands."""
    out = [NOTICE, "# Commands\n", EXIT_STATUS]
    for path, command in walk("anabranch", root):
        out += _section(path, command)
    return "\n".join(out)


def walk(path: str, command: Any) -> Iterator[tuple[str, Any]]:
    """Yield every command that is not a group, with the words that call it."""
    children = getattr(command, "commands", None)
    if not children:
        yield path, command
        return
    if any(not is_help(parameter) for parameter in command.params):
        yield path, command
    for name, child in children.items():
        if not child.hidden:
            yield from walk(f"{path} {name}", child)


def _section(path: str, command: Any) -> list[str]:
    arguments = [p for p in command.params if p.param_type_name == "argument"]
    options = [p for p in command.params if p.param_type_name == "option" and not is_help(p)]
    usage = " ".join([path, *(metavar(argument) for argument in arguments), *(["[OPTIONS]"] if options else [])])
    out = [f"## {path}\n", f"```text\n{usage}\n```\n"]
    if command.help:
        out.append(inspect.cleandoc(command.help).replace("\b\n", "") + "\n")
    described = [(code(metavar(a)), getattr(a, "help", None) or "") for a in arguments]
    if any(text for _, text in described):
        out.append(table(("argument", "meaning"), described))
    if getattr(command, "epilog", None) and not hasattr(command, "commands"):
        lines = inspect.cleandoc(command.epilog).replace("\b\n", "").split("\n")[1:]
        out.append("```sh\n" + inspect.cleandoc("\n".join(lines)) + "\n```\n")
    if options:
        rows = [(_names(o), default(o), getattr(o, "help", None) or "") for o in options if not o.hidden]
        out.append(table(("option", "default", "meaning"), rows))
    return out


def metavar(argument: Any) -> str:
    """The name of an argument in a usage line."""
    name = argument.metavar or argument.name.upper()
    name = name.strip("[].…")
    if argument.nargs == -1:
        name += "…"
    return name if argument.required else f"[{name}]"


def _names(option: Any) -> str:
    names = ", ".join(code(name) for name in [*option.opts, *option.secondary_opts])
    if option.is_flag:
        return names
    value = option.metavar or option.name.upper()
    return f"{names} {code(value)}" + ("…" if option.multiple else "")


def default(option: Any) -> str:
    """An option's default as code; "" if it has none or a trivial one."""
    value = option.default
    if callable(value) or value is None or value is False or value in ((), []):
        return ""
    if value is True:
        return "on"
    return code(str(value)) if isinstance(value, str | int | float) else ""


def is_help(parameter: Any) -> bool:
    """Whether a parameter is the option for help."""
    return "--help" in parameter.opts or parameter.name in {"install_completion", "show_completion"}
