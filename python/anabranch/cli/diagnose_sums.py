"""``anabranch diagnose --by``: sums of a capture's connections."""

from __future__ import annotations

from typing import TYPE_CHECKING

from anabranch.cli.blocks import write
from anabranch.cli.common import console, print_json
from anabranch.errors import UserError

if TYPE_CHECKING:
    from anabranch.cli.diagnose import DiagnoseOptions


def sum_up(by: str, options: DiagnoseOptions) -> None:
    """Print the connections of a capture, summed up by a key, and the outliers.

    Raises:
        UserError: There is no such key, an option does not fit, or the capture cannot be read.
    """
    from anabranch.diagnosis.choice import choose
    from anabranch.diagnosis.diagnosis import diagnose
    from anabranch.diagnosis.rollup import check_key, roll_up
    from anabranch.diagnosis.rollup_text import whole
    from anabranch.progress import Progress
    from anabranch.text.shown import plain

    key = check_key(by)
    _check(by, options)
    capture = options.capture
    if capture is None:
        raise UserError(f"--by {by}: expected a capture", hint="anabranch diagnose slow.pcapng --by server")
    with Progress(plain(capture.name), 1) as bar:
        found = diagnose(capture, any_expansion=options.any_expansion, progress=bar.update)
    sums = roll_up(choose(found, options.choice))
    if options.json:
        print_json(sums)
    else:
        write(console(), whole(sums, key))


def _check(by: str, options: DiagnoseOptions) -> None:
    """Refuse options of a diagnosis of single connections.

    Raises:
        UserError: There is one.
    """
    refused = {
        "--connection": options.connection is not None,
        "--out": options.out is not None,
        "--annotate": options.annotate is not None,
        "--replay": options.replay,
        "--advise": options.advise,
        "--live": options.live,
        "--names": options.names is not None,
    }
    for name, is_given in refused.items():
        if is_given:
            raise UserError(f"--by {by} prints sums of all connections, and {name} is given", hint="leave one out")
