"""``anabranch cc``: congestion controls in the running kernel, as eBPF programs."""

from __future__ import annotations

import json as json_module
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from anabranch.cli.command import Argument, Group, command
from anabranch.cli.common import console, note, print_json
from anabranch.cli.options import Json

controls = Group(
    "cc",
    "Congestion controls in the running kernel, as eBPF programs.",
    {
        "list": ("controls:list_controls", "List shipped controls, loaded controls, and the kernel's own."),
        "load": ("controls:load_control", "Load a control into the kernel until it is unloaded."),
        "unload": ("controls:unload_control", "Remove a control from the kernel."),
        "install": ("cc_install:install", "Load a control now and at each start, as the default of connections."),
        "status": ("cc_install:status", "Show installed controls and the connections that use them."),
        "remove": ("cc_install:remove", "Undo an installation, and restore the former controls."),
    },
)


@dataclass(frozen=True, kw_only=True)
class ListOptions:
    """The options of ``cc list``."""

    json: Json = False


@command(ListOptions, "anabranch cc list", name="list")
def list_controls(options: ListOptions) -> None:
    """List shipped controls, loaded controls, and the kernel's own."""
    from anabranch import _engine
    from anabranch.cli.columns import Column, print_table

    listed: dict[str, Any] = json_module.loads(_engine.cc_list())
    if options.json:
        print_json(listed)
        return
    shipped = {one["kernel_name"]: one["name"] for one in listed["shipped"]}
    loaded, available, allowed = ((listed[key] or []) for key in ("loaded", "available", "allowed"))
    rows = []
    for name in dict.fromkeys([*shipped, *loaded, *available]):
        parts = ["there"] if name in available else ["not loaded"]
        if name in loaded:
            parts[0] = "loaded by `anabranch cc load`"
        if name in allowed:
            parts.append("any user may choose it")
        rows.append((name, shipped.get(name, ""), ", ".join(parts)))
    heads = ("in the kernel", "ships as", "state")
    columns = [Column(head, [row[i] for row in rows], is_text=True) for i, head in enumerate(heads)]
    print_table(console(), columns, [])
    if listed["loaded"] is None:
        note("which of them `anabranch cc load` has loaded only root may see: they are kept in /sys/fs/bpf")


@dataclass(frozen=True, kw_only=True)
class LoadOptions:
    """The options of ``cc load``."""

    name: Annotated[str, Argument("NAME|FILE", "As `anabranch cc list` shows it, or a C file.")]


@command(LoadOptions, "anabranch cc load westwood-plus", name="load")
def load_control(options: LoadOptions) -> None:
    """Load a control into the kernel until it is unloaded.

    Any program can choose it then, by its name in the kernel.
    """
    from anabranch import _engine
    from anabranch.errors import UserError, nearest

    what = options.name
    shipped = [one["name"] for one in json_module.loads(_engine.cc_list())["shipped"]]
    is_file = what not in shipped
    if is_file and not Path(what).exists():
        hint = nearest(what, shipped)
        raise UserError(f'no control "{what}" ships, and there is no such file', hint=hint)
    try:
        loaded = json_module.loads(_engine.cc_load(what, is_file))
    except _engine.ControlError as error:
        raise _refusal(error) from None
    if loaded["mounted"] is not None:
        note(f"mounted a BPF file system at {loaded['mounted']}: controls are kept in it")
    note(f"{loaded['name']} is in the kernel until `anabranch cc unload {loaded['name']}` or a restart")


@dataclass(frozen=True, kw_only=True)
class UnloadOptions:
    """The options of ``cc unload``."""

    name: Annotated[str, Argument("NAME", "As `anabranch cc list` shows it.")]


@command(UnloadOptions, "anabranch cc unload westwood-plus", name="unload")
def unload_control(options: UnloadOptions) -> None:
    """Remove a control from the kernel.

    Connections that use it keep it.
    """
    from anabranch import _engine

    name = options.name
    names = {one["name"]: one["kernel_name"] for one in json_module.loads(_engine.cc_list())["shipped"]}
    try:
        _engine.cc_unload(names.get(name, name))
    except _engine.ControlError as error:
        raise _refusal(error) from None
    note(f"{names.get(name, name)} is unloaded")


def _refusal(error: ValueError) -> Exception:
    """The engine's message; the part after its first semicolon is advice."""
    from anabranch.errors import UserError

    message, _, hint = str(error).partition("; ")
    return UserError(message, hint=hint or None)
