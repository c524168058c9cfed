# shellcheck shell=sh disable=SC2034
# Finds the Python and the cargo that this project may use. Sourced, never run.
#
# Sets PYTHON (a Python that is new enough and can make virtual environments, or empty) and
# CARGO_BIN (the folder of a cargo and rustc that are new enough, or empty); find_profdata sets PROFDATA.

MIN_PYTHON_MINOR=10 # 3.10
MIN_RUST_MINOR=88   # 1.88

# The minor number of "cargo 1.90.0 (…)"; 0 when there is none.
rust_minor() {
    printf '%s\n' "$1" | sed -n 's/^[a-z]* 1\.\([0-9][0-9]*\)\..*/\1/p' | grep . || echo 0
}

is_recent_rust() {
    # Asked from the root folder: a rustup override or toolchain file elsewhere must not answer.
    cargo_version=$("$1/cargo" --version 2>/dev/null) || return 1
    rustc_version=$("$1/rustc" --version 2>/dev/null) || return 1
    [ "$(rust_minor "$cargo_version")" -ge "$MIN_RUST_MINOR" ] &&
        [ "$(rust_minor "$rustc_version")" -ge "$MIN_RUST_MINOR" ]
}

is_recent_python() {
    "$1" -c "import sys; sys.exit(sys.version_info < (3, $MIN_PYTHON_MINOR))" 2>/dev/null
}

can_make_venv() {
    "$1" -c 'import ensurepip, venv' 2>/dev/null
}

find_python() {
    PYTHON_WITHOUT_VENV=
    for candidate in ${PYTHON:-} python3 python3.14 python3.13 python3.12 python3.11 python3.10 /usr/bin/python3; do
        command -v "$candidate" >/dev/null 2>&1 || continue
        is_recent_python "$candidate" || continue
        if can_make_venv "$candidate"; then
            PYTHON=$candidate
            return
        fi
        PYTHON_WITHOUT_VENV=${PYTHON_WITHOUT_VENV:-$candidate}
    done
    PYTHON=
}

find_cargo() {
    CARGO_BIN=
    on_path=$(command -v cargo 2>/dev/null) && on_path=$(dirname "$on_path") || on_path=
    for candidate in "$on_path" "${CARGO_HOME:-${HOME:-/nonexistent}/.cargo}/bin" "${HOME:-/nonexistent}/.cargo/bin" /usr/local/bin /usr/bin; do
        if [ -n "$candidate" ] && [ -x "$candidate/cargo" ] && is_recent_rust "$candidate"; then
            CARGO_BIN=$candidate
            return
        fi
    done
}

# Sets PROFDATA: the llvm-profdata that reads what programs of this rustc count, or empty. Another LLVM's cannot.
find_profdata() {
    PROFDATA=
    sysroot=$("$CARGO_BIN/rustc" --print sysroot 2>/dev/null) || return 0
    for candidate in "$sysroot"/lib/rustlib/*/bin/llvm-profdata; do
        if [ -x "$candidate" ]; then PROFDATA=$candidate; fi
    done
}
