//! Settings of the kernel that paths need.

use std::{collections::BTreeSet, fs};

use super::PathFact;

/// Interfaces with a default route of either family.
pub fn with_default_route() -> BTreeSet<String> {
    let v4 = fs::read_to_string("/proc/net/route").unwrap_or_default();
    let v6 = fs::read_to_string("/proc/net/ipv6_route").unwrap_or_default();
    default_routes(&v4, &v6)
}

/// The interfaces of default routes in the kernel's tables.
fn default_routes(v4: &str, v6: &str) -> BTreeSet<String> {
    let v4 = v4.lines().skip(1).filter_map(|line| {
        let fields: Vec<&str> = line.split_whitespace().collect();
        match fields.as_slice() {
            [name, "00000000", _, _, _, _, _, "00000000", ..] => Some((*name).to_owned()),
            _ => None,
        }
    });
    let nowhere = "0".repeat(32);
    let v6 = v6.lines().filter_map(|line| {
        let fields: Vec<&str> = line.split_whitespace().collect();
        match fields.as_slice() {
            // The route that rejects all is on lo.
            [to, "00", _, _, _, _, _, _, _, name] if *to == nowhere && *name != "lo" => {
                Some((*name).to_owned())
            }
            _ => None,
        }
    });
    v4.chain(v6).collect()
}

/// Changes of the system that these paths need.
pub fn remarks(paths: &[PathFact]) -> Vec<String> {
    let routed = with_default_route();
    let mut remarks = Vec::new();
    for path in paths {
        if !routed.contains(&path.interface) {
            remarks.push(format!(
                "{0} has no default route, so the path {1} reaches only its own network. Add one, with a metric that\n\
                 no other has: ip route add default via ROUTER dev {0} metric 200",
                path.interface, path.name
            ));
        }
    }
    let strict = |name: &str| {
        let file = format!("/proc/sys/net/ipv4/conf/{name}/rp_filter");
        fs::read_to_string(file).is_ok_and(|value| value.trim() == "1")
    };
    let is_strict = strict("all") || paths.iter().any(|path| strict(&path.interface));
    if is_strict && paths.len() > 1 {
        remarks.push(
            "The reverse path filter is strict: it drops what arrives on the links that routes do not prefer.\n\
             Change it: sysctl -w net.ipv4.conf.all.rp_filter=2"
                .to_owned(),
        );
    }
    remarks
}

#[cfg(test)]
mod tests {
    use super::default_routes;

    #[test]
    fn interfaces_of_default_routes_are_found() {
        let v4 = "Iface\tDestination\tGateway\tFlags\tRefCnt\tUse\tMetric\tMask\tMTU\tWindow\tIRTT\n\
                  eth0\t00000000\t0102000A\t0003\t0\t0\t0\t00000000\t0\t0\t0\n\
                  eth1\t0002000A\t00000000\t0001\t0\t0\t0\t00FFFFFF\t0\t0\t0\n";
        let zero = "0".repeat(32);
        let v6 = format!(
            "{zero} 00 {zero} 00 fe800000000000000000000000000001 00000400 1 0 00000003    wwan0\n\
             {zero} 00 {zero} 00 {zero} ffffffff 1 0 00200200       lo\n"
        );
        let found: Vec<String> = default_routes(v4, &v6).into_iter().collect();
        assert_eq!(found, ["eth0", "wwan0"]);
        assert!(default_routes("", "").is_empty());
    }
}
