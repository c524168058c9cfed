# shellcheck shell=sh
# Facts of a built binary, and the files and scripts of every package. Sourced, never run, from the root of the checkout.
#
# The facts of a package are in packaging/NAME.package.

# Reads the facts of the package $1; $2 is the program that needs them.
package_facts() {
    package=$1
    [ -f "packaging/$package.package" ] || {
        known=$(cd packaging && ls ./*.package | sed 's#^\./\(.*\)\.package$#\1#' | paste -sd ' ' -)
        echo "$2: there is no package $package; expected one of: $known" >&2
        exit 2
    }
    # shellcheck source=/dev/null
    . "packaging/$package.package"
}

# The version of the sources: a binary for another machine cannot be asked.
package_version() {
    sed -n '/^\[workspace.package\]/,/^\[/s/^version = "\(.*\)"/\1/p' Cargo.toml
}

# x86_64 or aarch64, from the binary's header.
package_machine() {
    case $(od -An -tx1 -j18 -N2 "$1" | tr -d ' \n') in
        3e00) echo x86_64 ;;
        b700) echo aarch64 ;;
        *)
            echo "$1 is no program for x86-64 or aarch64" >&2
            return 2
            ;;
    esac
}

# Whether the binary $1 needs no library of the system.
package_is_static() {
    ! LC_ALL=C grep -q 'ld-linux\|ld-musl' "$1"
}

# Installs the files of a package with systemd below $2; $1 is the binary.
package_stage() {
    doc=$2/usr/share/doc/$package
    install -D -m 755 "$1" "$2/usr/bin/$package"
    for unit in $units; do
        install -D -m 644 "packaging/$unit" "$2/usr/lib/systemd/system/$unit"
    done
    for file in $examples; do
        install -D -m 644 "packaging/$file" "$doc/examples/$file"
    done
    install -D -m 644 LICENSE "$doc/copyright"
    install -d "$2/usr/share/man/man8"
    gzip -9n <"packaging/$package.8" >"$2/usr/share/man/man8/$package.8.gz"
}

# The parts of the scripts that run at the machine, for every kind of package. Each expects `set -f`: names of units
# have patterns.

# After the first install.
package_started() {
    cat <<HOOK
    systemctl daemon-reload
HOOK
    [ -z "$enabled" ] || echo "    systemctl enable --now $enabled"
}

# After an upgrade.
package_restarted() {
    cat <<HOOK
    systemctl daemon-reload
    systemctl try-restart $restarted
HOOK
}

# Before the removal. A template's instances end, and none is enabled.
package_stopped() {
    cat <<HOOK
    systemctl stop $(echo "$units" | sed 's/@\./@*./g')
    systemctl disable $units
HOOK
}

# The next command to type.
package_notice() {
    if [ -n "$configuration" ]; then
        echo "if [ ! -e $configuration ]; then echo '$notice'; fi"
    else
        echo "if [ -z \"\$upgraded\" ]; then echo '$notice'; fi"
    fi
}
