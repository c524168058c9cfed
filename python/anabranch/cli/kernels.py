"""``anabranch kernel``: Linux kernels that run in virtual time."""

from __future__ import annotations

from typing import TYPE_CHECKING

from anabranch.cli.common import console, note, print_json

if TYPE_CHECKING:
    from anabranch.kernel.images import Image


def build_kernel(source: str | None, jobs: int | None) -> None:
    """Build a kernel.

    Raises:
        UserError: There is no such source, or a program is missing.
        RunFailedError: The build failed.
    """
    from anabranch import interrupt
    from anabranch.errors import UserError
    from anabranch.kernel.build import build

    if jobs is not None and jobs < 1:
        raise UserError(f"--jobs {jobs}: 1 or more was expected")
    interrupt.watch()
    image = build(source, jobs=jobs, say=note)
    console().print(f"Linux {image.release}: {image.folder}", soft_wrap=True)


def list_kernels(json: bool) -> None:
    """Print the kernels that are built."""
    from anabranch.cli.columns import Column, print_table
    from anabranch.kernel.build import recipe
    from anabranch.kernel.images import images

    there = images()
    now = recipe()
    if json:
        print_json([
            {
                "release": one.release, "recipe": one.recipe, "source": one.source, "folder": str(one.folder),
                "current": one.recipe == now, "lacks": list(one.lacks),
            }
            for one in there
        ])  # fmt: skip
        return
    if not there:
        note("no kernel is built; type: anabranch kernel build")
        return
    states = ["current" if one.recipe == now else "older" for one in there]
    releases = Column("release", [one.release for one in there], is_text=True)
    groups = (
        ("state", states),
        ("source", [one.source for one in there]),
        ("folder", [str(one.folder) for one in there]),
    )
    print_table(console(), [releases], [[Column(head, values, is_text=True)] for head, values in groups])
    for one in there:
        _note_state(one)


def check_kernel(name: str | None) -> None:
    """Try a kernel.

    Raises:
        UserError: There is no such kernel.
        RunFailedError: It does not run, or its time is not virtual.
    """
    from anabranch import interrupt
    from anabranch.kernel.build import check
    from anabranch.kernel.images import chosen

    interrupt.watch()
    image = chosen(name)
    check(image)
    console().print(
        f"Linux {image.release} runs, its time is virtual, and a seed determines what it draws", soft_wrap=True
    )
    _note_state(image)


def _note_state(image: Image) -> None:
    """Say what a kernel lacks, and how to renew it."""
    from anabranch.kernel.build import recipe

    if image.recipe != recipe():
        note(
            f"an earlier version built Linux {image.release}; to renew it, type: anabranch kernel build {image.version}"
        )
    if image.lacks:
        note(f"Linux {image.release} has no {', '.join(image.lacks)}")
