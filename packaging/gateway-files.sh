# shellcheck shell=sh
# Facts of a built binary, and the files of every package of the gateway. Sourced, never run, from the root of the checkout.

# The version of the sources: a binary for another machine cannot be asked.
gateway_version() {
    sed -n '/^\[workspace.package\]/,/^\[/s/^version = "\(.*\)"/\1/p' Cargo.toml
}

# x86_64 or aarch64, from the binary's header.
gateway_machine() {
    case $(od -An -tx1 -j18 -N2 "$1" | tr -d ' \n') in
        3e00) echo x86_64 ;;
        b700) echo aarch64 ;;
        *)
            echo "$1 is no program for x86-64 or aarch64" >&2
            return 2
            ;;
    esac
}

# Whether the binary needs no library of the system.
gateway_is_static() {
    ! LC_ALL=C grep -q 'ld-linux\|ld-musl' "$1"
}

# Installs the files of a package with systemd below $2.
gateway_stage() {
    doc=$2/usr/share/doc/anabranch-gateway
    install -D -m 755 "$1" "$2/usr/bin/anabranch-gateway"
    for unit in anabranch-gateway anabranch-gateway-page anabranch-gateway-protect; do
        install -D -m 644 "packaging/$unit.service" "$2/usr/lib/systemd/system/$unit.service"
    done
    for file in gateway.toml gateway-alerts.yml gateway-rules.yml gateway-dashboard.json; do
        install -D -m 644 "packaging/$file" "$doc/examples/$file"
    done
    install -D -m 644 LICENSE "$doc/copyright"
    install -d "$2/usr/share/man/man8"
    gzip -9n <packaging/anabranch-gateway.8 >"$2/usr/share/man/man8/anabranch-gateway.8.gz"
}
