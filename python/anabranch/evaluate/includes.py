"""The content of an eBPF program: its file, and the user's headers that it includes."""

from __future__ import annotations

import hashlib
import re
from pathlib import Path

_INCLUDE = re.compile(rb'^[ \t]*#[ \t]*include[ \t]*"([^"\n]+)"', re.MULTILINE)


def hash_of_program(path: Path) -> str:
    """A hash of a program and of the headers of its folder, so that results of another version are not reused.

    Raises:
        OSError: The program cannot be read.
    """
    digest = hashlib.sha256(path.read_bytes())
    waiting, seen = [path], {path}
    while waiting:
        file = waiting.pop()
        for name in _INCLUDE.findall(file.read_bytes()):
            # A quoted name is looked for beside the file that has it, then in the program's folder.
            beside = (file.parent / name.decode("utf-8", "replace"), path.parent / name.decode("utf-8", "replace"))
            found = next((one.resolve() for one in beside if one.is_file()), None)
            if found is not None and found not in seen:
                seen.add(found)
                waiting.append(found)
                digest.update(name + b"\0" + found.read_bytes())
    return digest.hexdigest()
