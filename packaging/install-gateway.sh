#!/bin/sh
# Installs the gateway's static binary of this machine, after a check of its SHA-256; with --package that of another daemon.
#
#   curl -fsSL URL/install-gateway.sh | sudo sh -s -- [--package NAME] [--version VERSION] [--url URL] [--sha256 SUM] \
#       [--prefix FOLDER]
#
# URL has the archives and SHA256SUMS. A checksum from the same place detects damage, not a forger: give --sha256 with the
# sum from a second source against one. Nothing is changed before the check; an installed binary is replaced in one step.
# Runs nothing that it installs.
set -eu

main() {
    package=anabranch-gateway
    version=latest
    url=https://github.com/anabranch/anabranch/releases
    sum=
    prefix=/usr
    while [ $# -gt 0 ]; do
        case $1 in
            --package | --version | --url | --sha256 | --prefix)
                [ $# -ge 2 ] || fail "$1 has no value"
                case $1 in
                    --package) package=$2 ;;
                    --version) version=$2 ;;
                    --url) url=$2 ;;
                    --sha256) sum=$2 ;;
                    --prefix) prefix=$2 ;;
                esac
                shift 2
                ;;
            *) fail "there is no option $1; expected --package, --version, --url, --sha256 or --prefix" ;;
        esac
    done
    case $package in
        anabranch-gateway) next="anabranch-gateway init" ;;
        anabranch-group) next="anabranch-group check bond0" ;;
        *) fail "there is no package $package; expected anabranch-gateway or anabranch-group" ;;
    esac
    case $url in
        */releases) [ "$version" = latest ] && url=$url/latest/download || url=$url/download/v$version ;;
    esac
    [ "$(uname -s)" = Linux ] || fail "this is $(uname -s); expected Linux"
    case $(uname -m) in
        x86_64 | amd64) machine=x86_64 ;;
        aarch64 | arm64) machine=aarch64 ;;
        *) fail "there is no binary for $(uname -m); expected x86_64 or aarch64, or build it from the sources" ;;
    esac
    command -v sha256sum >/dev/null || fail "sha256sum is not there"
    work=$(mktemp -d)
    trap 'rm -rf "$work"' EXIT
    trap 'exit 1' HUP INT TERM
    get "$url/SHA256SUMS" "$work/SHA256SUMS"
    if [ "$version" = latest ]; then
        name=$(sed -n "s/^[0-9a-f]\{64\}  \($package-[0-9][0-9A-Za-z.-]*-$machine-linux\.tar\.gz\)\$/\1/p" "$work/SHA256SUMS" | tail -n 1)
    else
        name=$package-$version-$machine-linux.tar.gz
    fi
    line=$(grep -x "[0-9a-f]\{64\}  $name" "$work/SHA256SUMS") || fail "$url/SHA256SUMS has no archive of $package for $machine${version:+, version $version}"
    if [ -n "$sum" ] && [ "$sum" != "${line%% *}" ]; then
        fail "SHA256SUMS has ${line%% *} for $name, not $sum; nothing was installed"
    fi
    get "$url/$name" "$work/$name"
    (cd "$work" && echo "$line" | sha256sum -c - >/dev/null 2>&1) || fail "$name does not have the sum of SHA256SUMS; nothing was installed"
    base=${name%.tar.gz}
    tar -xzf "$work/$name" -C "$work" "$base/$package" "$base/$package.8"
    mkdir -p "$prefix/bin" "$prefix/share/man/man8"
    install -m 755 "$work/$base/$package" "$prefix/bin/.$package.new"
    mv -f "$prefix/bin/.$package.new" "$prefix/bin/$package"
    install -m 644 "$work/$base/$package.8" "$prefix/share/man/man8/$package.8"
    echo "installed $prefix/bin/$package ($base, sum verified)"
    echo "next: $next"
}

get() {
    if command -v curl >/dev/null; then
        curl -fsSL --proto '=https,http,file' --retry 2 -o "$2" "$1" || fail "$1 cannot be read"
    elif command -v wget >/dev/null; then
        wget -q -O "$2" "$1" || fail "$1 cannot be read"
    else
        fail "neither curl nor wget is there"
    fi
}

fail() {
    echo "install-gateway: $*" >&2
    exit 1
}

# The whole script was read before anything of it runs.
main "$@"
