"""``anabranch diagnose OLD NEW --compare``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from anabranch.cli.blocks import write
from anabranch.cli.common import console, print_json
from anabranch.errors import UserError

if TYPE_CHECKING:
    from anabranch.cli.diagnose import DiagnoseOptions


def diagnose_difference(options: DiagnoseOptions) -> None:
    """Print what changed from one capture to another.

    Raises:
        UserError: There are not two captures, an option does not fit, or the captures have nothing in common.
    """
    from anabranch.diagnosis.choice import choose
    from anabranch.diagnosis.diagnosis import diagnose
    from anabranch.diagnosis.difference import compare, lines
    from anabranch.progress import Progress
    from anabranch.text.shown import plain

    _check(options)
    found = []
    for capture in options.captures:
        with Progress(plain(capture.name), 1) as bar:
            whole = diagnose(capture, any_expansion=options.any_expansion, progress=bar.update)
        found.append(choose(whole, options.choice))
    comparison = compare(found[0], found[1])
    if options.json:
        print_json(comparison)
    else:
        write(console(), lines(comparison))


def _check(options: DiagnoseOptions) -> None:
    """Refuse another number of captures, and options that do not fit.

    Raises:
        UserError: There is one.
    """
    if len(options.captures) != 2:
        raise UserError(
            f"--compare: expected two captures, the old and the new one, and {len(options.captures)} are given",
            hint="anabranch diagnose before.pcapng after.pcapng --compare",
        )
    refused = {
        "--names": options.names is not None,
        "--by": options.by is not None,
        "--connection": options.connection is not None,
        "--slowest": options.slowest,
        "--out": options.out is not None,
        "--annotate": options.annotate is not None,
        "--force": options.force,
        "--replay": options.replay,
        "--advise": options.advise,
        "--live": options.live,
        "--engine": options.engine != "sim",
        "--follow": options.follow is not None,
    }
    for name, is_given in refused.items():
        if is_given:
            raise UserError(
                f"--compare compares all connections of two captures, and {name} is given", hint="leave one out"
            )
