"""The directory of a search: its state after each generation, and its finds."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from anabranch.errors import UserError
from anabranch.files.output import MANIFEST, check_target, follow, write_manifest
from anabranch.files.output_file import write_whole
from anabranch.stress.genome import Genome
from anabranch.stress.search import Find, State
from anabranch.text.spoken import argument

STATE = "search.json"
FORMAT = 1
_MOST_BYTES = 256 * 1024 * 1024


class Store:
    """The directory of a search.

    Args:
        directory: The directory; it is made on the first save.
        settings: Everything on which the choices depend. A search with other settings is refused.

    Raises:
        UserError: The directory has something else, or another search.
    """

    def __init__(self, directory: Path, settings: Mapping[str, Any]) -> None:
        check_target(directory, "stress")
        self.directory = follow(directory)
        self._shown = directory
        self._settings = dict(settings)

    def load(self) -> State | None:
        """The state of the earlier call; ``None`` if there is none.

        Raises:
            UserError: It is of another search, or damaged.
        """
        path = self.directory / STATE
        if not path.exists():
            return None
        try:
            entry = json.loads(path.read_bytes()[:_MOST_BYTES])
            settings = entry["settings"]
            state = State(
                generation=entry["generation"],
                evaluations=entry["evaluations"],
                random=entry["random"],
                archive={
                    goal: {niche: (score, Genome.from_json(genome)) for niche, score, genome in niches}
                    for goal, niches in entry["archive"].items()
                },
                finds=[
                    Find(f["goal"], Genome.from_json(f["genome"]), f["score"], f["evaluation"], f["case"], f["paths"])
                    for f in entry["finds"]
                ],
                tried=entry["tried"],
            )
        except (ValueError, KeyError, TypeError, OSError) as error:
            raise UserError(f"{path}: the state of the search cannot be read: {error}") from None
        different = [name for name, value in self._settings.items() if settings.get(name) != value]
        if different:
            raise UserError(
                f"{argument('out', self._shown)} holds a search with another {' and '.join(different)}",
                hint="choose a new directory",
            )
        return state

    def save(self, state: State) -> None:
        """Write the state; a signal leaves the earlier one."""
        self._prepare()
        content = {
            "format": FORMAT,
            "settings": self._settings,
            "generation": state.generation,
            "evaluations": state.evaluations,
            "random": state.random,
            "archive": {
                goal: [[niche, score, genome.to_json()] for niche, (score, genome) in niches.items()]
                for goal, niches in state.archive.items()
            },
            "finds": [find_json(find) for find in state.finds],
            "tried": state.tried,
        }
        write_whole(self.directory / STATE, json.dumps(content).encode())

    def write(self, name: str, content: str) -> None:
        """Write a file of the results, unless it has this content."""
        path = self.directory / name
        if path.exists() and path.read_bytes() == content.encode():
            return
        self._prepare()
        write_whole(self.directory / name, content.encode())

    def _prepare(self) -> None:
        """Make the directory, and mark it as ours before anything else is in it."""
        self.directory.mkdir(parents=True, exist_ok=True)
        if not (self.directory / MANIFEST).exists():
            write_manifest(self.directory, "stress", [STATE])

    def finish(self) -> None:
        """Write the manifest of all files."""
        write_manifest(self.directory, "stress")


def find_json(find: Find) -> dict[str, Any]:
    """A find in the form of files."""
    return {
        "goal": find.goal,
        "genome": find.genome.to_json(),
        "score": find.score,
        "evaluation": find.evaluation,
        "case": find.case,
        "paths": find.paths,
    }
