"""Print pip's settings as shell lines that give uv the same index, certificates and proxy.

If a mirror is configured for pip only, uv would use another index. The settings are read at each
run and never written to a file. uv's own settings take precedence. The script uses the standard
library only, and its Python must have pip.
"""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

# pip prefers the environment to the command's section, and that to [global].
SECTIONS = (":env:", "install", "global")

# uv's variables that select the index: if one is set, uv keeps its own settings.
INDEX_VARIABLES = ("UV_DEFAULT_INDEX", "UV_INDEX_URL")


def parse_config_list(text: str) -> dict[str, str]:
    """Turn the output of ``pip config list`` into one value per option name."""
    found: dict[str, dict[str, str]] = {section: {} for section in SECTIONS}
    for line in text.splitlines():
        key, separator, value = line.partition("=")
        section, dot, name = key.partition(".")
        if separator and dot and section in found:
            found[section][name] = value.strip().strip("'\"")
    merged: dict[str, str] = {}
    for section in reversed(SECTIONS):
        merged.update(found[section])
    return merged


def words(value: str) -> list[str]:
    """Split a pip option with several values, one per line or word."""
    return value.replace("\\n", " ").split()


def uv_environment(pip: Mapping[str, str], environment: Mapping[str, str]) -> dict[str, str]:
    """Return the variables that make uv follow pip's settings."""
    wanted: dict[str, str] = {}
    if not any(environment.get(name) for name in INDEX_VARIABLES):
        if url := pip.get("index-url"):
            wanted["UV_DEFAULT_INDEX"] = url
        if extra := words(pip.get("extra-index-url", "")):
            wanted["UV_INDEX"] = " ".join(extra)
            # pip searches all its indexes for a version; the hashes make that safe here.
            wanted["UV_INDEX_STRATEGY"] = "unsafe-best-match"
    if pip.get("no-index", "").lower() in {"1", "true", "yes", "on"}:
        wanted["UV_NO_INDEX"] = "1"
    links = [link for link in words(pip.get("find-links", "")) if "://" in link or Path(link).is_dir()]
    if links:
        wanted["UV_FIND_LINKS"] = ",".join(links)
    if hosts := words(pip.get("trusted-host", "")):
        wanted["UV_INSECURE_HOST"] = " ".join(hosts)
    if certificates := pip.get("cert"):
        wanted["SSL_CERT_FILE"] = certificates
    if proxy := pip.get("proxy"):
        wanted["HTTPS_PROXY"] = wanted["HTTP_PROXY"] = proxy
    if timeout := pip.get("timeout", pip.get("default-timeout")):
        wanted["UV_HTTP_TIMEOUT"] = timeout
    return {name: value for name, value in wanted.items() if not environment.get(name)}


def main() -> int:
    """Print one ``export`` line per variable."""
    listing = subprocess.run(
        [sys.executable, "-m", "pip", "config", "list"],
        capture_output=True,
        text=True,
        check=False,
    )
    for name, value in uv_environment(parse_config_list(listing.stdout), os.environ).items():
        print(f"export {name}={shlex.quote(value)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
