"""``anabranch group``: all its commands are those of ``anabranch-group``."""

from __future__ import annotations

from typing import Any

import click

from anabranch.cli.command import Group
from anabranch.cli.common import exit_status

_PASSED = "anabranch-group"


class _Daemon(click.Command):
    """The hidden command that passes all its arguments to the daemon."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Keep the arguments."""
        ctx.args = list(args)
        return args

    def invoke(self, ctx: click.Context) -> None:
        """Hand over."""
        with exit_status():
            from anabranch.gateway.daemon import GROUP, hand_over

            hand_over(ctx.args, GROUP)


class _Group(Group):
    """The ``group`` group, which passes all commands to ``anabranch-group``."""

    def resolve_command(self, _: click.Context, args: list[str]) -> Any:
        """The hidden command, whose first argument is the daemon's command."""
        return _PASSED, self.commands[_PASSED], args


daemon = _Daemon(_PASSED, hidden=True, add_help_option=False)
group = _Group(
    "group",
    "Put links of a bond to sleep during low load.\n\nAll commands are those of the daemon, anabranch-group: control, "
    "status, release, check.",
    {_PASSED: ("group:daemon", "")},
    epilog="\b\nExample:\n  anabranch group control bond0 --method dynamic-lacp",
)
