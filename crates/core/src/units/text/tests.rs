use proptest::prelude::*;
use serde::{
    Deserialize as _,
    de::{IntoDeserializer as _, value},
};

use super::*;
use crate::units::Fraction;

fn message<T: FromStr<Err = ParseQuantityError> + fmt::Debug>(text: &str) -> String {
    text.parse::<T>().expect_err(text).to_string()
}

#[test]
fn reads_common_spellings() {
    let duration = |text: &str| text.parse().map(Duration::as_picos);
    assert_eq!(duration("15 ms"), Ok(15_000_000_000));
    assert_eq!(duration("10.2 s"), Ok(10_200_000_000_000));
    assert_eq!(duration("10.2s"), Ok(10_200_000_000_000));
    assert_eq!(duration("1e-05 s"), Ok(10_000_000));
    assert_eq!(duration("0.30000000000000004 s"), Ok(300_000_000_000));
    assert_eq!(duration("2 h"), Ok(7_200_000_000_000_000));
    assert_eq!(duration("0 ms"), Ok(0));
    assert_eq!(duration("-0 s"), Ok(0));
    let rate = |text: &str| text.parse().map(Rate::bits_per_s);
    assert_eq!(rate("100 Mbit/s"), Ok(100_000_000));
    assert_eq!(rate("1 Mibit/s"), Ok(1_048_576));
    let size = |text: &str| text.parse().map(Bytes::get);
    assert_eq!(size("64 KiB"), Ok(65_536));
    assert_eq!(size("2 MB"), Ok(2_000_000));
    assert_eq!(size("1.5 KiB"), Ok(1_536));
    assert_eq!("100 packets".parse(), Ok(Limit::Packets(100)));
    assert_eq!("1 bdp".parse(), Ok(Limit::Bdp(1.0)));
    assert_eq!("0.5 bdp".parse(), Ok(Limit::Bdp(0.5)));
    assert_eq!("64 KiB".parse(), Ok(Limit::Bytes(Bytes::new(65_536))));
    assert_eq!("unlimited".parse(), Ok(LinkRate::Unlimited));
}

#[test]
fn messages_for_invalid_text() {
    let messages = [
        message::<Rate>("15 ms"),
        message::<Duration>("100 Mbit/s"),
        message::<Rate>("100 Mbps"),
        message::<Rate>("-3 Mbit/s"),
        message::<Rate>("0 bit/s"),
        message::<Rate>("0.1 bit/s"),
        message::<Rate>("100"),
        message::<Duration>("nan s"),
        message::<Duration>("1e9 h"),
        message::<Duration>("1e30 s"),
        message::<Duration>("9223373 s"),
        message::<Rate>("1e30 bit/s"),
        message::<Duration>("200 days"),
        message::<Limit>("2.5 packets"),
        message::<Limit>("20 ms"),
        message::<Limit>("1e7 bdp"),
        message::<Limit>("1e30 packets"),
        message::<Limit>("1e30 KiB"),
        message::<Bytes>("1.2.3 MB"),
    ];
    insta::assert_snapshot!(messages.join("\n"));
}

#[test]
fn the_largest_value_in_a_message_is_valid() {
    for kind in [&RATE, &DURATION, &SIZE] {
        let text = kind.largest.split(" (").next().expect("a first part");
        assert!(kind.parse(text).is_ok(), "{text}");
    }
    let day = 86_400;
    assert!(format!("{} s", day * 106).parse::<Duration>().is_ok());
    assert!(format!("{} s", day * 107).parse::<Duration>().is_err());
    assert!("9223372 s".parse::<Duration>().is_ok());
}

fn round_trip<T>(value: &T)
where
    T: FromStr<Err = ParseQuantityError> + fmt::Display + fmt::Debug + PartialEq,
{
    let text = value.to_string();
    assert_eq!(text.parse::<T>().as_ref(), Ok(value), "{text}");
}

#[test]
fn messages_for_common_errors_suggest_the_right_spelling() {
    let help = |message: String, meant: &str| {
        assert!(
            message.contains(&format!("did you mean {meant}?")),
            "{message}"
        );
    };
    help(message::<Rate>("20 MB/s"), "\"160 Mbit/s\"");
    help(message::<Rate>("2.5 MBps"), "\"20 Mbit/s\"");
    help(message::<Rate>("1 KiB/s"), "\"8.192 kbit/s\"");
    help(message::<LinkRate>("20 MB/s"), "\"160 Mbit/s\"");
    help(message::<Limit>("1 BDP"), "\"1 bdp\"");
    help(message::<Limit>("50 pkts"), "\"50 packets\"");
    let fraction = |text: &str| {
        let error: value::Error = Fraction::deserialize(text.into_deserializer()).expect_err(text);
        error.to_string()
    };
    help(fraction("0.1%"), "0.001");
    help(fraction("50 %"), "0.5");
    help(fraction("0.25"), "0.25");
    assert!(!fraction("often").contains("did you mean"));
    assert!(!fraction("200 %").contains("did you mean"));
    let error: value::Error =
        Duration::deserialize(10_u64.into_deserializer()).expect_err("no unit");
    help(error.to_string(), "\"10 ms\" or \"10 s\"");
}

proptest! {
    #[test]
    fn a_written_quantity_reads_back(bits in 1_u64.., ps in 0..=MAX_DURATION.as_picos(), n: u64, zeros in 0_u32..15, shift in 0_u32..40, factor in 0.0..1e6) {
        let bits = (bits % 1_000_000).max(1).saturating_mul(10_u64.pow(zeros)).max(1);
        round_trip(&Rate::new(bits).expect("positive"));
        round_trip(&LinkRate::Rate(Rate::new(bits).expect("positive")));
        round_trip(&Duration::from_picos(ps));
        round_trip(&Duration::from_picos((ps % 1_000).saturating_mul(10_u64.pow(zeros))));
        round_trip(&Bytes::new(n));
        round_trip(&Bytes::new((n % 5_000) << shift));
        round_trip(&Bytes::new(n % 5_000 * 10_u64.pow(zeros)));
        round_trip(&Limit::Packets(n));
        round_trip(&Limit::Bytes(Bytes::new(n)));
        round_trip(&Limit::Bdp(factor));
    }

    #[test]
    fn any_text_is_read_or_rejected(text in "\\PC{0,40}", digits in "[-+0-9.eE]{0,130} ?(ms|bdp|packets|bytes|Mbit/s)?") {
        for text in [text, digits] {
            let _ = text.parse::<Rate>();
            let _ = text.parse::<Duration>();
            let _ = text.parse::<Bytes>();
            let _ = text.parse::<Limit>();
        }
    }

    #[test]
    fn reads_any_spelling_of_a_number(whole in 0_u32..1_000_000, thousandths in 0_u32..1000) {
        let text = format!("{whole}.{thousandths:03} ms");
        let expected = (u64::from(whole) * 1000 + u64::from(thousandths)) * 1_000_000;
        prop_assert_eq!(text.parse().map(Duration::as_picos), Ok(expected));
    }
}
