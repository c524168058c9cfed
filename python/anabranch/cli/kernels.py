"""``anabranch kernel``: Linux kernels that run in virtual time."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

from anabranch.cli.command import Argument, Group, Option, command
from anabranch.cli.common import console, note, print_json
from anabranch.cli.options import Json

if TYPE_CHECKING:
    from anabranch.kernel.images import Image


kernels = Group(
    "kernel",
    "Linux kernels that run in virtual time, for --engine kernel.",
    {
        "build": ("kernels:build_kernel", "Build a kernel into the cache, and try it."),
        "list": ("kernels:list_kernels", "Show the kernels that are built; the first is used."),
        "check": ("kernels:check_kernel", "Start a kernel and see whether its time is virtual."),
    },
)


@dataclass(frozen=True, kw_only=True)
class BuildOptions:
    """The options of ``kernel build``."""

    source: Annotated[
        str | None,
        Argument(
            "[VERSION|DIR|FILE]",
            "A version of Debian's linux-source packages, a source tree, or an archive of one; the newest package "
            "that is installed when left out.",
        ),
    ] = None
    jobs: Annotated[
        int | None, Option("--jobs", "Compilers at once; as many as there are cores when left out.", "N")
    ] = None


@command(BuildOptions, "anabranch kernel build 6.12", name="build")
def build_kernel(options: BuildOptions) -> None:
    """Build a kernel into the cache, and try it.

    As root on Debian this installs the source and the programs that it needs.
    """
    from anabranch import interrupt
    from anabranch.errors import UserError
    from anabranch.kernel.build import build

    source, jobs = options.source, options.jobs
    if jobs is not None and jobs < 1:
        raise UserError(f"--jobs {jobs}: 1 or more was expected")
    interrupt.watch()
    image = build(source, jobs=jobs, say=note)
    console().print(f"Linux {image.release}: {image.folder}", soft_wrap=True)


@dataclass(frozen=True, kw_only=True)
class ListOptions:
    """The options of ``kernel list``."""

    json: Json = False


@command(ListOptions, "anabranch kernel list", name="list")
def list_kernels(options: ListOptions) -> None:
    """Show the kernels that are built; the first is used."""
    from anabranch.cli.columns import Column, print_table
    from anabranch.kernel.build import recipe
    from anabranch.kernel.images import images

    there = images()
    now = recipe()
    if options.json:
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


@dataclass(frozen=True, kw_only=True)
class CheckOptions:
    """The options of ``kernel check``."""

    name: Annotated[
        str | None, Argument("[RELEASE|DIR]", "As `anabranch kernel list` shows it; the first when left out.")
    ] = None


@command(CheckOptions, "anabranch kernel check", name="check")
def check_kernel(options: CheckOptions) -> None:
    """Start a kernel and see whether its time is virtual."""
    from anabranch import interrupt
    from anabranch.kernel.build import check
    from anabranch.kernel.images import chosen

    interrupt.watch()
    image = chosen(options.name)
    check(image)
    console().print(
        f"Linux {image.release} runs, its time is virtual, and a seed determines its random numbers", soft_wrap=True
    )
    _note_state(image)


def _note_state(image: Image) -> None:
    """Report the features that a kernel lacks, and how to rebuild it."""
    from anabranch.kernel.build import recipe

    if image.recipe != recipe():
        note(
            f"an earlier version built Linux {image.release}; to renew it, type: anabranch kernel build {image.version}"
        )
    if image.lacks:
        note(f"Linux {image.release} has no {', '.join(image.lacks)}")
