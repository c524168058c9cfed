"""``anabranch kernel``: Linux kernels that run in virtual time."""

from __future__ import annotations

from anabranch.cli.common import console, note, print_json


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
    if json:
        print_json([
            {"release": one.release, "recipe": one.recipe, "source": one.source, "folder": str(one.folder)}
            for one in there
        ])  # fmt: skip
        return
    if not there:
        note("no kernel is built; type: anabranch kernel build")
        return
    states = ["as this version builds it" if one.recipe == recipe() else "of another recipe" for one in there]
    cells = (("release", [one.release for one in there]), ("built", states), ("in", [str(one.folder) for one in there]))
    print_table(console(), [Column(head, values, is_text=True) for head, values in cells], [])


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
    console().print(f"Linux {image.release} runs, and its time is virtual", soft_wrap=True)
