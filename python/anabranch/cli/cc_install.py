"""``anabranch cc install``, ``cc status`` and ``cc remove``: congestion controls that stay."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from anabranch.cli.command import Argument, Option, command
from anabranch.cli.common import console, note, print_json
from anabranch.cli.options import Json, Prometheus


@dataclass(frozen=True, kw_only=True)
class InstallOptions:
    """The options of ``cc install``."""

    name: Annotated[str, Argument("NAME|FILE", "As `anabranch cc list` shows it, or a C file.")]
    default: Annotated[bool, Option("--default", "For all connections of this machine (network namespace).")] = False
    routes: Annotated[
        tuple[str, ...],
        Option("--route", "For connections over the route of exactly this prefix; may be given again.", "PREFIX"),
    ] = ()
    cgroups: Annotated[
        tuple[str, ...],
        Option("--cgroup", "For connections of this cgroup (version 2); may be given again.", "PATH"),
    ] = ()


@command(
    InstallOptions,
    "anabranch cc install westwood-plus --route 192.0.2.0/24",
    "anabranch cc install westwood-plus --cgroup web.slice",
    "anabranch cc install westwood-plus --default",
    name="install",
)
def install(options: InstallOptions) -> None:
    """Load a control now and at each start, as the default of connections.

    Open connections keep their control. A program's own choice (TCP_CONGESTION) precedes --default and --route.
    Without --default, --route and --cgroup only programs that choose the control use it. `cc remove` restores the
    former state.

    systemd removes a service's cgroup when the service stops, and the installation of it with it: give a slice, or
    install again in the service's ExecStartPost=.
    """
    from anabranch.installed import controls

    controls.install(options.name, controls.Scopes(options.default, options.routes, options.cgroups), note)


@dataclass(frozen=True, kw_only=True)
class StatusOptions:
    """The options of ``cc status``."""

    name: Annotated[str | None, Argument("[NAME]", "Only this control.")] = None
    json: Json = False
    prometheus: Prometheus = False


@command(StatusOptions, "anabranch cc status", "anabranch cc status westwood-plus --json", name="status")
def status(options: StatusOptions) -> None:
    """Show installed controls and the connections that use them.

    Connections are the open ones of this network namespace.
    """
    from anabranch.cli.blocks import write
    from anabranch.errors import UserError
    from anabranch.installed import controls, text

    if options.json and options.prometheus:
        raise UserError("--json and --prometheus both write standard output", hint="give one of them")
    document = controls.status(options.name)
    if options.json:
        print_json(document)
    else:
        write(console(), text.metrics(document) if options.prometheus else text.lines(document))


@dataclass(frozen=True, kw_only=True)
class RemoveOptions:
    """The options of ``cc remove``."""

    name: Annotated[str, Argument("NAME", "As `anabranch cc status` shows it.")]


@command(RemoveOptions, "anabranch cc remove westwood-plus", name="remove")
def remove(options: RemoveOptions) -> None:
    """Undo an installation, and restore the former controls.

    Connections that use the control keep it until they end.
    """
    from anabranch.installed import controls

    controls.remove(options.name, note)
