//! Parses the commands that set up a kernel: lines of a shell in backquotes, and the init scripts
//! that they name. Nothing is executed.

use std::{collections::BTreeMap, path::Path};

use crate::syntax::Setting;

/// Most init scripts within each other.
const DEEPEST: usize = 4;

/// A problem of a command.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Problem {
    /// The command is wrong.
    Wrong(String),
    /// A shell accepts it; the subset does not have it.
    Unsupported(String),
}

/// The init scripts that the commands of a script name, each once, as written there.
#[must_use]
pub fn init_scripts(text: &str) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    // Texts between backquotes; comments are not known here, and a name too many does no harm.
    for command in text.split('`').skip(1).step_by(2) {
        for name in lines(command)
            .into_iter()
            .filter_map(|words| words.into_iter().next())
        {
            if is_init_script(&name) && !names.contains(&name) {
                names.push(name);
            }
        }
    }
    names
}

fn is_init_script(word: &str) -> bool {
    let is_shell = Path::new(word).extension().is_some_and(|end| end == "sh");
    is_shell && word.contains('/') && !is_restore(word)
}

/// Whether this is the script that undoes `set_sysctls.py`.
fn is_restore(word: &str) -> bool {
    word.starts_with("/tmp/sysctl_restore_")
}

/// The settings of a command. `files` has the init scripts' texts by their names.
pub(super) fn settings(
    text: &str,
    files: &BTreeMap<String, String>,
) -> Result<Vec<Setting>, Problem> {
    let mut settings = Vec::new();
    append(text, files, 0, &mut settings)?;
    Ok(settings)
}

fn append(
    text: &str,
    files: &BTreeMap<String, String>,
    depth: usize,
    settings: &mut Vec<Setting>,
) -> Result<(), Problem> {
    let mut last = settings.len();
    for words in lines(text) {
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        if let ["||", rest @ ..] = &*words {
            let first = settings.split_off(last);
            let mut second = Vec::new();
            append(&rest.join(" "), files, depth, &mut second)?;
            settings.push(Setting::Either(first, second));
            continue;
        }
        last = settings.len();
        match &*words {
            ["sysctl", pairs @ ..] => {
                let pairs: Vec<&&str> =
                    pairs.iter().filter(|word| !word.starts_with('-')).collect();
                if pairs.is_empty() {
                    return Err(Problem::Wrong(
                        "expected `sysctl -q NAME=VALUE`, found no setting".to_owned(),
                    ));
                }
                for pair in pairs {
                    settings.push(sysctl(pair)?);
                }
            }
            [program, pairs @ ..] if program.ends_with("/set_sysctls.py") => {
                for pair in pairs {
                    let name = pair.strip_prefix("/proc/sys/").unwrap_or(pair);
                    let (name, value) = name.split_once('=').unwrap_or((name, ""));
                    settings.push(sysctl(&format!("{name}={value}"))?);
                }
            }
            ["ip", "link", "set", .., "mtu", mtu] => {
                let mtu = mtu.parse().map_err(|_| {
                    Problem::Wrong(format!("`mtu {mtu}`: expected octets of a packet"))
                })?;
                settings.push(Setting::Mtu(mtu));
            }
            ["ethtool", "-K", _, features @ ..] => {
                let off = |name: &str| features.windows(2).any(|pair| *pair == [name, "off"]);
                if off("tso") || off("gso") {
                    settings.push(Setting::SegmentsAlone);
                }
            }
            ["tc", "qdisc", "add" | "replace", "dev", _, "root", "fq"] => {
                settings.push(Setting::Paced);
            }
            ["ip", "tcp_metrics", ..] => settings.push(Setting::ForgetCookies),
            // Without effect in a new network, which keeps no metrics and whose device has no queue that
            // delays packets.
            []
            | [
                "tc",
                "qdisc",
                "add" | "replace",
                "dev",
                _,
                "root",
                "pfifo" | "noqueue",
            ]
            | ["nstat" | "true" | ":" | "|", ..] => {}
            [program] if is_restore(program) => {}
            [name, ..] if is_init_script(name) => {
                let Some(text) = files.get(*name) else {
                    return Err(Problem::Wrong(format!(
                        "the init script `{name}` is missing: expected a file at this path from \
                         the script's folder"
                    )));
                };
                if depth == DEEPEST {
                    return Err(Problem::Wrong(format!(
                        "`{name}`: init scripts name each other more than {DEEPEST} deep"
                    )));
                }
                let own = settings.len();
                append(text, files, depth + 1, settings)?;
                for setting in &mut settings[own..] {
                    if let Setting::Sysctl(name, value) = setting {
                        *setting = Setting::Default(std::mem::take(name), std::mem::take(value));
                    }
                }
            }
            [program, ..] => {
                return Err(Problem::Unsupported(format!(
                    "packetdrill's command `{program}` is not supported; expected `sysctl -q \
                     NAME=VALUE`, `ip link set dev tun0 mtu N`, `ethtool -K tun0 gso off` or an \
                     init script of these"
                )));
            }
        }
    }
    Ok(())
}

fn sysctl(pair: &str) -> Result<Setting, Problem> {
    match pair.split_once('=') {
        Some((name, value)) if !name.is_empty() && !value.trim().is_empty() => Ok(Setting::Sysctl(
            name.replace('/', "."),
            value.trim().to_owned(),
        )),
        _ => Err(Problem::Wrong(format!(
            "`{pair}`: expected `sysctl -q NAME=VALUE`"
        ))),
    }
}

/// The words of each command of a shell, without comments and redirections.
fn lines(text: &str) -> Vec<Vec<String>> {
    let mut all = vec![Vec::new()];
    let mut word: Option<String> = None;
    let mut quote = None;
    let text = text.replace("\\\n", " ");
    let mut rest = text.chars().peekable();
    let mut sums = 0_usize;
    let end = |word: &mut Option<String>, all: &mut Vec<Vec<String>>| {
        if let Some(done) = word.take() {
            all.last_mut()
                .expect("there is one")
                .push(calculated(&done));
        }
    };
    while let Some(c) = rest.next() {
        match c {
            '"' | '\'' if quote == Some(c) => quote = None,
            '"' | '\'' if quote.is_none() => {
                quote = Some(c);
                word.get_or_insert_default();
            }
            // Signs of a shell have no meaning within `$((…))`.
            '(' => {
                sums += 1;
                word.get_or_insert_default().push(c);
            }
            ')' => {
                sums = sums.saturating_sub(1);
                word.get_or_insert_default().push(c);
            }
            _ if quote.is_some() || sums > 0 && c != '\n' => word.get_or_insert_default().push(c),
            '#' if word.is_none() => while rest.next_if(|c| *c != '\n').is_some() {},
            '\n' | ';' => {
                end(&mut word, &mut all);
                sums = 0;
                all.push(Vec::new());
            }
            '>' | '<' => {
                // The number of a stream belongs to the redirection.
                if word
                    .as_ref()
                    .is_some_and(|word| word.chars().all(|c| c.is_ascii_digit()))
                {
                    word = None;
                }
                end(&mut word, &mut all);
                while rest.next_if(|c| ">&<".contains(*c)).is_some() {}
                while rest.next_if(|c| matches!(c, ' ' | '\t')).is_some() {}
                while rest.next_if(|c| !c.is_whitespace() && *c != ';').is_some() {}
            }
            // Another command: instead of one that fails, or the reader of this one's output.
            '|' => {
                end(&mut word, &mut all);
                let sign = if rest.next_if(|c| *c == '|').is_some() {
                    "||"
                } else {
                    "|"
                };
                all.push(vec![sign.to_owned()]);
            }
            '&' if rest.peek() == Some(&'>') => end(&mut word, &mut all),
            c if c.is_whitespace() => end(&mut word, &mut all),
            c => word.get_or_insert_default().push(c),
        }
    }
    end(&mut word, &mut all);
    all.retain(|words| !words.is_empty());
    all
}

/// `word` with products and sums in `$((…))` calculated; others stay as they are.
fn calculated(word: &str) -> String {
    let Some((before, rest)) = word.split_once("$((") else {
        return word.to_owned();
    };
    let Some((sum, after)) = rest.split_once("))") else {
        return word.to_owned();
    };
    let product = |text: &str| {
        text.split('*').try_fold(1_u64, |product, factor| {
            product.checked_mul(factor.trim().parse().ok()?)
        })
    };
    let total = sum
        .split('+')
        .try_fold(0_u64, |total, part| total.checked_add(product(part)?));
    match total {
        Some(total) => format!("{before}{total}{}", calculated(after)),
        None => word.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str, files: &[(&str, &str)]) -> Result<Vec<Setting>, Problem> {
        let files = files
            .iter()
            .map(|(name, text)| ((*name).to_owned(), (*text).to_owned()))
            .collect();
        settings(text, &files)
    }

    fn set(name: &str, value: &str) -> Setting {
        Setting::Sysctl(name.to_owned(), value.to_owned())
    }

    #[test]
    fn an_init_script_is_read_in_place() {
        let init = "#!/bin/bash\n# Buffers.\nip tcp_metrics flush all > /dev/null 2>&1\n\n\
                    sysctl -q a.rmem=\"4096 540000 $((15*1024*1024))\" a.b=1 2>/dev/null ; sysctl a.c=2\n\
                    tc qdisc add dev tun0 root pfifo\n";
        let found = of(
            "../x/init.sh\nsysctl -q a.b=0  # late",
            &[("../x/init.sh", init)],
        );
        let default = |name: &str, value: &str| Setting::Default(name.to_owned(), value.to_owned());
        let expected = vec![
            Setting::ForgetCookies,
            default("a.rmem", "4096 540000 15728640"),
            default("a.b", "1"),
            default("a.c", "2"),
            set("a.b", "0"),
        ];
        assert_eq!(found, Ok(expected));
    }

    #[test]
    fn programs_of_packetdrill_are_settings() {
        let text = "./set_sysctls.py /proc/sys/net/ipv4/tcp_sack=0\n\
                    ethtool -K tun0 tso off gso off\nip link set dev tun0 mtu 1040\n\
                    /tmp/sysctl_restore_${PPID}.sh";
        let expected = vec![
            set("net.ipv4.tcp_sack", "0"),
            Setting::SegmentsAlone,
            Setting::Mtu(1040),
        ];
        assert_eq!(of(text, &[]), Ok(expected));
        assert_eq!(init_scripts(&format!("`{text}`")), Vec::<String>::new());
        assert_eq!(
            init_scripts("`a/b.sh\nx`\n+0 `c/d.sh`"),
            ["a/b.sh", "c/d.sh"]
        );
    }

    #[test]
    fn other_commands_are_refused() {
        for text in [
            "rm -rf /",
            "for i in 1 2; do true; done",
            "iptables -F",
            "./x.py 3",
        ] {
            assert!(
                matches!(of(text, &[]), Err(Problem::Unsupported(_))),
                "{text}"
            );
        }
        for text in [
            "sysctl",
            "sysctl -q a",
            "sysctl -q =3",
            "./missing.sh",
            "ip link set dev t mtu x",
        ] {
            assert!(matches!(of(text, &[]), Err(Problem::Wrong(_))), "{text}");
        }
        let own = of("./a.sh", &[("./a.sh", "./a.sh")]);
        assert!(matches!(own, Err(Problem::Wrong(message)) if message.contains("deep")));
    }
}
