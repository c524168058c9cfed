"""Test programs of the crates: cargo builds them on the host, and a guest runs them."""

from __future__ import annotations

import json
import subprocess

from anabranch.kernel.machine import Job

from .inside import ROOT

FILE = "programs"
"""The job's file with the paths by package and target, as JSON."""
TESTS = "test_crates.py"
"""The module whose tests need the programs."""

TARGETS = (("test", "--no-run", "--test", "all"), ("build", "--example", "scripts"))
# With a subset of the workspace's packages cargo selects other features, and would recompile the
# results of `make test`.
OPTIONS = ("--profile", "release", "--locked", "--workspace", "--message-format", "json-render-diagnostics")


class BuildError(Exception):
    """The output of cargo."""


def built() -> str:
    """The file's text, after all programs are up to date.

    Raises:
        BuildError: They do not compile.
    """
    lines: list[str] = []
    for words in TARGETS:
        cargo = [ROOT / "tools" / "env", "cargo", *words, *OPTIONS]
        done = subprocess.run(cargo, cwd=ROOT, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise BuildError(done.stderr)
        lines += done.stdout.splitlines()
    made = [one for one in map(json.loads, lines) if one.get("executable")]
    return json.dumps({f"{_package(one['package_id'])} {one['target']['name']}": one["executable"] for one in made})


def _package(identity: str) -> str:
    """The folder of a package: `live` in ``path+file:///checkout/crates/live#anabranch-live@0.1.0``."""
    return identity.partition("#")[0].rpartition("/")[2]


def path(name: str) -> str:
    """The path of a program in the guest."""
    return str(json.loads((Job.INSIDE / FILE).read_text("utf-8"))[name])
