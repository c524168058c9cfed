//! An answer: JSON, then columns that a page reads as typed arrays in place.
//!
//! Octets 0 to 3 hold the length of the JSON (little endian). The JSON begins at octet 8, and the
//! columns at the next multiple of 8 after it. `tables` in the JSON holds the columns of each table:
//! name, kind, and the distance in octets from the beginning of the columns:
//!
//! | kind | values | no value |
//! | --- | --- | --- |
//! | `number` | `f64` | NaN |
//! | `flag` | `u8`, 0 or 1 | 2 |
//! | `text` | `u32`, an index into `names` | the number of names |

use anabranch_columns::{Column, Plain, Table};
use serde_json::{Map, Value, json};

/// Alignment of the columns.
const ALIGN: usize = 8;

/// An answer.
pub struct Message {
    head: Map<String, Value>,
    columns: Vec<u8>,
}

impl Message {
    /// An answer without tables. `head` is an object.
    #[must_use]
    pub fn of(head: &Value) -> Self {
        Self {
            head: head.as_object().cloned().unwrap_or_default(),
            columns: Vec::new(),
        }
    }

    /// Adds a table.
    pub fn table(&mut self, name: &str, table: &Table) {
        let columns: Vec<Value> = table
            .columns()
            .iter()
            .map(|(name, column)| self.column(name, column))
            .collect();
        let tables = self.head.entry("tables").or_insert_with(|| json!({}));
        tables[name] = json!({ "rows": table.rows(), "columns": columns });
    }

    fn column(&mut self, name: &str, column: &Column) -> Value {
        self.columns
            .resize(self.columns.len().next_multiple_of(ALIGN), 0);
        let at = self.columns.len();
        let valid = column.validity();
        let is_valid = |row: usize| valid.as_ref().is_none_or(|valid| valid[row]);
        let mut numbers = |values: &mut dyn Iterator<Item = f64>| {
            for (row, value) in values.enumerate() {
                let value = if is_valid(row) { value } else { f64::NAN };
                self.columns.extend_from_slice(&value.to_le_bytes());
            }
        };
        let kind = match column.plain() {
            Plain::Floats(values) => {
                numbers(&mut values.iter().copied());
                "number"
            }
            Plain::Counts(values) => {
                numbers(&mut values.iter().map(|&value| value as f64));
                "number"
            }
            Plain::Integers(values) => {
                numbers(&mut values.iter().map(|&value| value as f64));
                "number"
            }
            Plain::ShortCounts(values) => {
                numbers(&mut values.iter().map(|&value| f64::from(value)));
                "number"
            }
            Plain::Flags(values) => {
                let octet =
                    |(row, value): (usize, &bool)| if is_valid(row) { u8::from(*value) } else { 2 };
                self.columns.extend(values.iter().enumerate().map(octet));
                "flag"
            }
            Plain::Strings { codes, names } => {
                let none = u32::try_from(names.len()).unwrap_or(u32::MAX);
                for (row, &code) in codes.iter().enumerate() {
                    let code = if is_valid(row) { code } else { none };
                    self.columns.extend_from_slice(&code.to_le_bytes());
                }
                return json!({ "name": name, "kind": "text", "at": at, "names": names });
            }
        };
        json!({ "name": name, "kind": kind, "at": at })
    }

    /// The octets of the answer.
    #[must_use]
    pub fn into_octets(self) -> Vec<u8> {
        let head = Value::Object(self.head).to_string();
        let length = u32::try_from(head.len()).unwrap_or(u32::MAX);
        let begin = (ALIGN + head.len()).next_multiple_of(ALIGN);
        let mut octets = Vec::with_capacity(begin + self.columns.len());
        octets.extend_from_slice(&length.to_le_bytes());
        octets.resize(ALIGN, 0);
        octets.extend_from_slice(head.as_bytes());
        octets.resize(begin, 0);
        octets.extend_from_slice(&self.columns);
        octets
    }
}
