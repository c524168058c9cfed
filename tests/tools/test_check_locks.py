"""The lock check finds addresses, and accepts Cargo's registry identifier."""

import pytest

import check_locks

IDENTIFIER = 'source = "registry+https://github.com/rust-lang/crates.io-index"'


@pytest.mark.parametrize(
    "path",
    [
        "Cargo.lock",
        "fuzz/Cargo.lock",
        "requirements.lock",
        "requirements-dev.txt",
        "package-lock.json",
        "a/pnpm-lock.yaml",
    ],
)
def test_lock_files_are_recognised(path: str) -> None:
    assert check_locks.is_lock(path)


@pytest.mark.parametrize("path", ["Cargo.toml", "docs/locks.md", "requirements.in", "blocks.rs"])
def test_other_files_are_not_lock_files(path: str) -> None:
    assert not check_locks.is_lock(path)


def test_the_registry_identifier_is_allowed_in_cargo_lock_only() -> None:
    assert check_locks.addresses("fuzz/Cargo.lock", f"{IDENTIFIER}\n") == []
    assert check_locks.addresses("requirements.lock", f"{IDENTIFIER}\n")


@pytest.mark.parametrize(
    "line",
    [
        "--index-url https://mirror.example/simple",
        "--find-links /srv/wheels",
        "package @ https://mirror.example/package.whl",
        "# from http://mirror.example",
        'source = "git+https://mirror.example/x#1"',
        '  "resolved": "https://mirror.example/x.tgz",',
    ],
)
def test_addresses_are_found_and_not_repeated(line: str) -> None:
    for path in ("Cargo.lock", "requirements.lock"):
        found = check_locks.addresses(path, f"ok==1\n{line}\n")
        assert found == [f"{path}:2: holds a download address"]


def test_versions_and_hashes_pass() -> None:
    text = "polars==1.0 \\\n    --hash=sha256:00ff\n    # via -r requirements.in\n"
    assert check_locks.addresses("requirements.lock", text) == []


def test_pages_of_authors_are_no_downloads() -> None:
    """npm copies them from the packages; an address after them is found."""
    text = '"funding": {\n  "url": "https://example.com/author"\n},\n"resolved": "https://example.com/a.tgz"\n'
    assert check_locks.addresses("package-lock.json", text) == ["package-lock.json:4: holds a download address"]
