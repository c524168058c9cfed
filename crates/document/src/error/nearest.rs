//! The valid name nearest to an invalid one.

/// The help for an invalid name: the valid names, and the nearest of them.
pub fn choice<S: AsRef<str>>(wrong: &str, possible: &[S]) -> Vec<String> {
    const SHOWN: usize = 24;
    let mut names: Vec<_> = possible
        .iter()
        .take(SHOWN)
        .map(|s| format!("`{}`", s.as_ref()))
        .collect();
    if possible.len() > SHOWN {
        names.push(format!("… ({} in all)", possible.len()));
    }
    let mut help = vec![match names.len() {
        0 => "there are none to choose from".to_owned(),
        1 => format!("expected {}", names[0]),
        _ => format!("expected one of {}", names.join(", ")),
    }];
    if let Some(near) = nearest(wrong, possible) {
        help.push(format!("did you mean `{near}`?"));
    }
    help
}

/// Other names in the field, from other simulators, from Linux's `tc` and `sysctl`, and from
/// papers, each in lower case with hyphens, and their equivalent here: a component, a key, or a
/// path.
pub fn synonyms() -> impl Iterator<Item = (&'static str, &'static str)> {
    const TABLE: &str = include_str!("synonyms.tsv");
    let rows = TABLE.lines().filter_map(|line| line.split_once('\t'));
    rows.flat_map(|(name, others)| others.split(' ').map(move |other| (other, name)))
}

/// The name among `possible` that is meant: one with this synonym, one with a similar spelling, or
/// the shortest name that begins with the whole words of `wrong`.
pub fn nearest<'a, S: AsRef<str>>(wrong: &str, possible: &'a [S]) -> Option<&'a str> {
    const LONGEST: usize = 64;
    let plain = |s: &str| s.to_lowercase().replace(['_', ' '], "-");
    let letters = |s: &str| -> Vec<char> { plain(s).chars().collect() };
    if wrong.len() > LONGEST {
        return None;
    }
    let written = plain(wrong);
    let same = possible
        .iter()
        .map(AsRef::as_ref)
        .find(|name| plain(name) == written);
    let meant = synonyms()
        .find(|(other, _)| *other == written)
        .and_then(|(_, path)| path.rsplit('.').next())
        .and_then(|name| possible.iter().map(AsRef::as_ref).find(|one| *one == name));
    if let Some(name) = same.or(meant) {
        return Some(name);
    }
    let wrong = letters(wrong);
    let similar = possible
        .iter()
        .map(AsRef::as_ref)
        .filter(|name| name.len() <= LONGEST)
        .map(|name| {
            let name_letters = letters(name);
            let longer = name_letters.len().max(wrong.len());
            (edits(&wrong, &name_letters), longer, name)
        })
        .filter(|(edits, longer, _)| *edits <= (longer / 3).max(1) && edits < longer)
        .min_by_key(|(edits, _, _)| *edits)
        .map(|(_, _, name)| name);
    let begins = |name: &&str| {
        let rest = plain(name).strip_prefix(&*written).map(str::to_owned);
        !written.is_empty() && rest.is_some_and(|rest| rest.starts_with('-'))
    };
    let longer = || possible.iter().map(AsRef::as_ref).filter(begins);
    similar.or_else(|| longer().min_by_key(|name| name.len()))
}

/// The number of insertions, deletions, replacements and swaps of adjacent characters that turn `a`
/// into `b`.
fn edits(a: &[char], b: &[char]) -> usize {
    let mut two_back = vec![0; b.len() + 1];
    let mut back: Vec<usize> = (0..=b.len()).collect();
    for i in 1..=a.len() {
        let mut row = vec![i; b.len() + 1];
        for j in 1..=b.len() {
            let replace = back[j - 1] + usize::from(a[i - 1] != b[j - 1]);
            row[j] = replace.min(back[j] + 1).min(row[j - 1] + 1);
            if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                row[j] = row[j].min(two_back[j - 2] + 1);
            }
        }
        two_back = std::mem::replace(&mut back, row);
    }
    back[b.len()]
}
