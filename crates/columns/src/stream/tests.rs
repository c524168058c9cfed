//! A consumer that follows the specification: it copies structures, moves children and releases in any order.

use std::{
    ffi::{CStr, c_int},
    mem::MaybeUninit,
    slice,
};

use super::{ArrowArray, ArrowSchema, Stream};
use crate::{Column, Plain, Table};

fn table() -> Table {
    let columns = [
        ("rate", Column::floats([Some(1.5), None, Some(-2.0)])),
        ("count", Column::counts([Some(7), Some(8), Some(u64::MAX)])),
        ("index", Column::short_counts([0, 1, u32::MAX])),
        ("is_late", Column::flags([None, Some(true), Some(false)])),
        (
            "state",
            Column::strings([Some("open"), None, Some("congestion avoidance")]),
        ),
    ];
    Table::new(columns).expect("equal lengths")
}

fn schema(stream: &mut Stream) -> ArrowSchema {
    let mut out = MaybeUninit::uninit();
    // SAFETY: the stream has not been released, and `out` holds a schema afterwards.
    unsafe {
        assert_eq!((stream.get_schema)(stream, out.as_mut_ptr()), 0 as c_int);
        out.assume_init()
    }
}

fn next(stream: &mut Stream) -> ArrowArray {
    let mut out = MaybeUninit::uninit();
    // SAFETY: the stream has not been released, and `out` holds an array afterwards.
    unsafe {
        assert_eq!((stream.get_next)(stream, out.as_mut_ptr()), 0 as c_int);
        out.assume_init()
    }
}

fn release(mut array: ArrowArray) {
    // SAFETY: the array has not been released.
    unsafe { array.release.expect("not released")(&raw mut array) };
    assert!(array.release.is_none());
}

/// Moves a child out of an array, as a consumer that keeps one column does.
fn take(array: &mut ArrowArray, index: usize) -> ArrowArray {
    // SAFETY: the array has this child.
    let child = unsafe { &mut **array.children.add(index) };
    let mut taken = ArrowArray::released();
    std::mem::swap(&mut taken, child);
    taken
}

fn buffer<T: Copy>(array: &ArrowArray, index: usize, length: usize) -> Vec<T> {
    // SAFETY: the buffer has that many values of that type, by the layout of the column's type.
    unsafe { slice::from_raw_parts((*array.buffers.add(index)).cast::<T>(), length).to_vec() }
}

#[test]
fn schema_names_types_and_nullable_columns() {
    let mut stream = table().stream();
    let mut schema = schema(&mut stream);
    let mut fields = Vec::new();
    for index in 0..usize::try_from(schema.n_children).unwrap() {
        // SAFETY: the schema has that many children, with strings that end in NUL.
        unsafe {
            let field = &**schema.children.add(index);
            fields.push((
                CStr::from_ptr(field.name).to_str().unwrap().to_owned(),
                CStr::from_ptr(field.format).to_str().unwrap().to_owned(),
                field.flags,
            ));
        }
    }
    // SAFETY: the schema has not been released.
    unsafe { schema.release.unwrap()(&raw mut schema) };
    let expected = [
        ("rate", "g", 2),
        ("count", "L", 0),
        ("index", "I", 0),
        ("is_late", "b", 2),
        ("state", "vu", 2),
    ];
    let expected =
        expected.map(|(name, format, flags)| (name.to_owned(), format.to_owned(), flags));
    assert_eq!(fields, expected);
}

#[test]
fn arrays_hold_values_and_validity() {
    let mut stream = table().stream();
    let mut batch = next(&mut stream);
    assert_eq!(
        (batch.length, batch.null_count, batch.n_children),
        (3, 0, 5)
    );
    let [rate, count, index, is_late, state] = [0, 1, 2, 3, 4].map(|child| take(&mut batch, child));
    assert_eq!(buffer::<f64>(&rate, 1, 3), [1.5, 0.0, -2.0]);
    assert_eq!((buffer::<u8>(&rate, 0, 1)[0], rate.null_count), (0b101, 1));
    assert_eq!(buffer::<u64>(&count, 1, 3), [7, 8, u64::MAX]);
    // SAFETY: the array has this buffer.
    assert!(unsafe { (*count.buffers).is_null() });
    assert_eq!(buffer::<u32>(&index, 1, 3), [0, 1, u32::MAX]);
    assert_eq!(buffer::<u8>(&is_late, 1, 1)[0] & 0b111, 0b010);
    assert_eq!(buffer::<u8>(&is_late, 0, 1)[0], 0b110);
    let views = buffer::<[u8; 16]>(&state, 1, 3);
    assert_eq!(views[0][..8], *b"\x04\0\0\0open");
    assert_eq!(views[2], *b"\x14\0\0\0cong\0\0\0\0\0\0\0\0");
    assert_eq!(state.n_buffers, 4);
    assert_eq!(buffer::<u8>(&state, 2, 20), b"congestion avoidance");
    assert_eq!(buffer::<i64>(&state, 3, 1), [20]);
    for column in [rate, count, index, is_late, state] {
        release(column);
    }
    release(batch);
    assert!(next(&mut stream).release.is_none());
}

#[test]
fn a_moved_child_outlives_batch_stream_and_table() {
    let mut stream = table().stream();
    let mut batch = next(&mut stream);
    let count = take(&mut batch, 1);
    release(batch);
    drop(stream);
    assert_eq!(buffer::<u64>(&count, 1, 3), [7, 8, u64::MAX]);
    release(count);
}

#[test]
fn a_stream_without_rows_has_one_empty_batch() {
    let columns = [("state", Column::strings([])), ("rate", Column::floats([]))];
    let mut stream = Table::new(columns).expect("equal lengths").stream();
    let batch = next(&mut stream);
    assert_eq!((batch.length, batch.n_children), (0, 2));
    release(batch);
    assert!(next(&mut stream).release.is_none());
}

#[test]
fn equal_long_strings_are_stored_once() {
    let text = "a name of more than twelve octets";
    let column = Column::strings(std::iter::repeat_n(Some(text), 1_000));
    let mut stream = Table::new([("name", column)])
        .expect("equal lengths")
        .stream();
    let mut batch = next(&mut stream);
    let names = take(&mut batch, 0);
    assert_eq!(buffer::<i64>(&names, 3, 1), [33]);
    release(names);
    release(batch);
}

#[test]
fn columns_of_unequal_length_are_refused() {
    let columns = [
        ("rate", Column::floats([Some(1.0)])),
        ("count", Column::counts([])),
    ];
    let error = Table::new(columns).expect_err("unequal lengths");
    assert_eq!(
        error.to_string(),
        "column \"count\" has 0 rows; 1 were expected"
    );
}

#[test]
fn plain_columns_have_the_values_and_the_validity() {
    let table = table();
    let column = |name: &str| {
        let found = table.columns().iter().find(|(own, _)| **own == *name);
        &found.expect("a column of the table").1
    };
    assert!(matches!(
        column("rate").plain(),
        Plain::Floats([1.5, _, -2.0])
    ));
    assert_eq!(column("rate").validity(), Some(vec![true, false, true]));
    assert!(matches!(
        column("count").plain(),
        Plain::Counts([7, 8, u64::MAX])
    ));
    assert_eq!(column("count").validity(), None);
    let Plain::Flags(late) = column("is_late").plain() else {
        panic!("flags");
    };
    assert_eq!(late[1..], [true, false]);
}

#[test]
fn plain_strings_are_coded_in_the_order_of_their_rows() {
    let long = "a string of more than twelve octets";
    let other = "a string of more than eleven octets";
    let texts = [long, "", other, long, "ten", ""];
    let Plain::Strings { codes, names } = Column::strings(texts.map(Some)).plain() else {
        panic!("strings");
    };
    assert_eq!(names, [long, "", other, "ten"]);
    assert_eq!(codes, [0, 1, 2, 0, 3, 1]);
}

#[test]
fn signed_integers_are_exported_as_such() {
    let column = Column::integers([Some(-1), None, Some(i64::MAX)]);
    assert_eq!(column.format(), c"l");
    assert!(matches!(column.plain(), Plain::Integers([-1, _, i64::MAX])));
}
