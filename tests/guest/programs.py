"""Test programs of the crates: cargo builds them on the host, and a guest runs them."""

from __future__ import annotations

import json
import subprocess

from anabranch.kernel.machine import Job

from .inside import ROOT

FILE = "programs"
"""The job's file: paths by package and target, as JSON."""
TESTS = "test_crates.py"
"""The module whose tests need them."""

# All packages of the workspace: with some of them cargo chooses other features, and `make test` has built nothing.
BUILD = (
    "cargo", "test", "--no-run", "--profile", "release", "--locked", "--workspace", "--test", "all",
    "--example", "scripts", "--message-format", "json-render-diagnostics",
)  # fmt: skip


class BuildError(Exception):
    """What cargo said."""


def built() -> str:
    """The file's text, once all programs are up to date.

    Raises:
        BuildError: They do not compile.
    """
    done = subprocess.run([ROOT / "tools" / "env", *BUILD], cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise BuildError(done.stderr)
    artifacts = [line for line in map(json.loads, done.stdout.splitlines()) if line.get("executable")]
    return json.dumps(
        {f"{_package(one['package_id'])} {one['target']['name']}": one["executable"] for one in artifacts}
    )


def _package(identity: str) -> str:
    """The folder of a package: ``path+file:///checkout/crates/live#anabranch-live@0.1.0`` has ``live``."""
    return identity.partition("#")[0].rpartition("/")[2]


def path(name: str) -> str:
    """In a guest: a program's path."""
    return str(json.loads((Job.INSIDE / FILE).read_text("utf-8"))[name])
