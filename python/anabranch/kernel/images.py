"""The kernels that have been built, and the choice of one."""

from __future__ import annotations

import json
import os
import re
from dataclasses import dataclass
from pathlib import Path

from anabranch.errors import UserError, nearest, require_linux

VARIABLE = "ANABRANCH_KERNEL"
"""The environment variable that names an image, or the release of one in the cache."""
LINUX, INIT, PRELOAD, FACTS = "linux", "init", "preload.so", "image.json"
"""Files of an image: the kernel, the guest's first process, the preloaded library, and the facts of the build."""


@dataclass(frozen=True)
class Image:
    """A kernel that can run in virtual time.

    Attributes:
        folder: Where its files lie.
        release: The kernel's, for example ``"6.12.117"``.
        recipe: Hash of the configuration and of the programs beside the kernel.
        source: The tree or the archive that it was built from.
        lacks: Options of our configuration that this Linux does not have.
    """

    folder: Path
    release: str
    recipe: str
    source: str
    lacks: tuple[str, ...] = ()

    @property
    def linux(self) -> Path:
        """The kernel, a program."""
        return self.folder / LINUX

    @property
    def init(self) -> Path:
        """The guest's first process."""
        return self.folder / INIT

    @property
    def preload(self) -> Path:
        """The library that is loaded before the kernel: its source of random numbers."""
        return self.folder / PRELOAD

    @property
    def version(self) -> str:
        """The first two numbers of the release, as a build names them."""
        return ".".join(map(str, numbers(self.release)[:2]))


def cache() -> Path:
    """The folder of all images: ``anabranch/kernels`` in ``XDG_CACHE_HOME``, or in ``~/.cache``."""
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "anabranch" / "kernels"


def read(folder: Path) -> Image | None:
    """The image in a folder; ``None`` if there is none or it is incomplete."""
    try:
        facts = json.loads((folder / FACTS).read_text("utf-8"))
        lacks = tuple(map(str, facts.get("lacks", ())))
        image = Image(folder, str(facts["release"]), str(facts["recipe"]), str(facts["source"]), lacks)
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None
    return image if os.access(image.linux, os.X_OK) and os.access(image.init, os.X_OK) else None


def images() -> list[Image]:
    """All images of the cache, the newest release first."""
    try:
        folders = sorted(cache().iterdir())
    except OSError:
        return []
    found = [image for image in map(read, folders) if image is not None]
    return sorted(found, key=lambda image: numbers(image.release), reverse=True)


def chosen(wish: str | None = None) -> Image:
    """The image to run: ``wish`` if given, else the image of ``ANABRANCH_KERNEL``, else the newest.

    Args:
        wish: The beginning of a release (``"6.12"``), or the folder of an image.

    Raises:
        UserError: There is no such image, or none at all, or an earlier version of Anabranch has made it.
    """
    image = _wished(wish)
    if not image.preload.is_file():
        raise UserError(
            f"an earlier version of Anabranch built the kernel {image.release}, without a seed",
            hint=f"type: anabranch kernel build {image.version}",
        )
    return image


def _wished(wish: str | None) -> Image:
    require_linux("a kernel in virtual time")
    said = wish or os.environ.get(VARIABLE) or ""
    there = images()
    if not said:
        if there:
            return there[0]
        raise UserError("no kernel is built that could run in virtual time", hint="type: anabranch kernel build")
    if "/" in said:
        path = Path(said)
        image = read(path.parent if path.name == LINUX else path)
        if image is None:
            raise UserError(f"{said} is no kernel that `anabranch kernel build` has made")
        return image
    for image in there:
        if image.release == said or image.release.startswith(f"{said}."):
            return image
    hint = nearest(said, [image.release for image in there]) if there else f"type: anabranch kernel build {said}"
    raise UserError(f"no kernel {said} is built", hint=hint)


def numbers(release: str) -> tuple[int, ...]:
    """A release as comparable numbers: 6.12 is later than 6.1."""
    return tuple(int(number) for number in re.findall(r"\d+", release))
