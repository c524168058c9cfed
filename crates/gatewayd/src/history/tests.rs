use std::{path::Path, sync::LazyLock};

use proptest::prelude::*;

use super::{History, MOST_SERIES, Query, Range, SAMPLE, Subject, Value};

fn path(name: &str) -> Subject {
    Subject {
        peer: "hub".to_owned(),
        path: Some(name.to_owned()),
        class: None,
    }
}

fn values(total: u64, rtt: f64) -> Vec<Value> {
    let now = [60.0, 0.01, 0.01, rtt, rtt].map(Value::Now);
    let first = [Value::Now(1.0), Value::Total(total), Value::Total(0)];
    first.into_iter().chain(now).collect()
}

fn answer(history: &History, range: Range) -> serde_json::Value {
    let query = Query { range, peer: None };
    serde_json::from_str(&history.answer(&query)).expect("it is JSON")
}

/// Samples at 1,000 octets a second for some hours.
fn hours(hours: u64) -> History {
    let mut history = History::default();
    for n in 0..hours * 3600 / SAMPLE {
        let rtt = if n % 24 == 7 {
            f64::NAN
        } else {
            20.0 + (n % 24) as f64
        };
        history.add(vec![(path("lte"), values(n * 1000 * SAMPLE, rtt))]);
        history.advance(SAMPLE as f64);
    }
    history
}

#[test]
fn each_range_has_the_same_rate_in_its_own_steps() {
    let history = hours(50);
    for (range, points) in [(Range::Hour, 719), (Range::Day, 719), (Range::Month, 50)] {
        let answer = answer(&history, range);
        let series = &answer["series"][0];
        assert_eq!(series["path"], "lte");
        let sent = series["values"]["sent_bytes"].as_array().expect("a list");
        assert!(sent.len().abs_diff(points) <= 1, "{}", sent.len());
        assert!(sent.iter().all(|rate| rate == 1000.0), "{sent:?}");
        let age = series["age"].as_array().expect("a list");
        assert_eq!(age.len(), sent.len());
        assert!(age.last().and_then(serde_json::Value::as_u64) <= Some(1));
    }
    // The extremes of two minutes remain, and unknown values do not count.
    let answer = answer(&history, Range::Day);
    let values = &answer["series"][0]["values"];
    assert_eq!(values["rtt_ms_least"][5], 20.0);
    assert_eq!(values["rtt_ms_most"][5], 43.0);
}

#[test]
fn totals_that_begin_again_give_no_rate_below_zero() {
    let mut history = History::default();
    for total in [5_000_000, 6_000_000, 100] {
        history.add(vec![(path("lte"), values(total, 20.0))]);
        history.advance(SAMPLE as f64);
    }
    let answer = answer(&history, Range::Hour);
    let sent = &answer["series"][0]["values"]["sent_bytes"];
    assert_eq!(sent, &serde_json::json!([200_000.0, 0.0]));
}

#[test]
fn the_number_of_series_is_bounded_and_old_ones_give_way() {
    let mut history = History::default();
    let sample = |prefix: &str, count: usize| {
        (0..count)
            .map(|n| (path(&format!("{prefix}{n}")), values(0, 1.0)))
            .collect::<Vec<_>>()
    };
    history.add(sample("a", MOST_SERIES + 9));
    assert_eq!(history.series.len(), MOST_SERIES);
    history.advance(600.0);
    history.add(sample("b", 3));
    assert_eq!(history.series.len(), MOST_SERIES);
    let names = history
        .series
        .iter()
        .filter_map(|series| series.subject.path.as_deref());
    assert_eq!(names.filter(|name| name.starts_with('b')).count(), 3);
}

#[test]
fn a_peer_is_selected_by_name_and_requests_are_read_as_written() {
    let names = ["hub", "a \"b\" \\ \u{e9}", ""];
    for range in Range::ALL {
        for peer in names
            .map(|name| Some(name.to_owned()))
            .into_iter()
            .chain([None])
        {
            let query = Query { range, peer };
            assert_eq!(Query::read(query.line().as_bytes()), Some(query));
        }
    }
    for wrong in [
        "history\n",
        "history hour",
        "history year\n",
        "history hour hub\n",
    ] {
        assert_eq!(Query::read(wrong.as_bytes()), None, "{wrong}");
    }
    let history = hours(1);
    let query = Query {
        range: Range::Hour,
        peer: Some("other".to_owned()),
    };
    let answer: serde_json::Value = serde_json::from_str(&history.answer(&query)).expect("JSON");
    assert_eq!(answer["series"], serde_json::json!([]));
    assert_eq!(answer["peers"], serde_json::json!(["hub"]));
}

#[test]
fn a_stored_history_is_read_and_ages_by_the_time_since() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("history");
    let mut history = hours(2);
    history.note("path lte is dead");
    history.save(&file, 1e9).expect("it is written");
    let read = |unix: f64| {
        History::load(&file, unix)
            .expect("it is ours")
            .expect("it exists")
    };
    let same = read(1e9);
    assert_eq!(answer(&same, Range::Day), answer(&history, Range::Day));
    let later = read(1e9 + 600.0);
    assert_eq!(answer(&later, Range::Hour)["events"][0]["age_s"], 600.0);
    // A clock that was set back, as of a router after its boot.
    assert_eq!(answer(&read(1e6), Range::Hour)["events"][0]["age_s"], 0.0);
    assert!(
        History::load(Path::new("/absent/history"), 0.0)
            .expect("no error")
            .is_none()
    );
}

static GOOD: LazyLock<String> = LazyLock::new(|| {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("history");
    hours(1).save(&file, 1e9).expect("it is written");
    std::fs::read_to_string(&file).expect("it is text")
});

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    /// A file of any content is read or refused.
    #[test]
    fn a_damaged_file_is_refused(content in "\\PC*", cut in 0_usize..4000) {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("history");
        let good = &*GOOD;
        let end = good.char_indices().map(|(at, _)| at).nth(cut).unwrap_or(0);
        for text in [content.clone(), good[..end].to_owned(), format!("{}{content}", &good[..end])] {
            std::fs::write(&file, text).expect("written");
            let _ = History::load(&file, 1e9);
        }
    }
}
