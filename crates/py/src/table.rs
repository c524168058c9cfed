//! A table that exports itself through the Arrow C stream interface.

use anabranch_columns::{Column, Plain, Table};
use pyo3::{
    exceptions::{PyKeyError, PyRuntimeError, PyValueError},
    prelude::*,
    types::{PyBytes, PyCapsule},
};

/// Columns in Arrow's memory layout. Polars, pyarrow, DuckDB and pandas import it without a copy:
/// `polars.DataFrame(table)`.
#[pyclass(frozen, module = "anabranch._engine")]
pub struct ArrowTable(Table);

impl ArrowTable {
    /// Builds a table from named columns of equal length.
    pub fn new(columns: Vec<(&str, Column)>) -> PyResult<Self> {
        let table = Table::new(columns);
        table
            .map(Self)
            .map_err(|error| PyRuntimeError::new_err(error.to_string()))
    }

    /// A table of a run.
    pub fn of(table: Result<Table, anabranch_results::Error>) -> PyResult<Self> {
        table.map(Self).map_err(|error| match error {
            anabranch_results::Error::NoTable { .. } => PyKeyError::new_err(error.to_string()),
            anabranch_results::Error::Columns(_) => PyRuntimeError::new_err(error.to_string()),
        })
    }

    /// Whether the table has no rows.
    pub fn is_empty(&self) -> bool {
        self.0.rows() == 0
    }
}

/// A column in Python: its name; `f8`, `u8`, `u4`, `i8` (numbers in native byte order), `?` (an
/// octet per flag) or `text` (an index of four octets per row); the octets; an octet per row for
/// the presence of a value, if some rows have none; and the distinct strings.
type PlainColumn<'py> = (
    String,
    String,
    Bound<'py, PyBytes>,
    Option<Bound<'py, PyBytes>>,
    Option<Vec<String>>,
);

#[pymethods]
impl ArrowTable {
    /// A table of columns as [`Self::columns`] returns them.
    #[new]
    #[expect(
        clippy::needless_pass_by_value,
        reason = "arguments from Python come by value"
    )]
    fn from_columns(columns: Vec<PlainColumn<'_>>) -> PyResult<Self> {
        let read = |(name, kind, octets, valid, names): &PlainColumn<'_>| {
            let valid = valid.as_ref().map(PyBytesMethods::as_bytes);
            let column = column(kind, octets.as_bytes(), valid, names.as_deref());
            column
                .ok_or_else(|| PyValueError::new_err(format!("column {name:?} is not of its kind")))
        };
        let made: Vec<Column> = columns.iter().map(read).collect::<PyResult<_>>()?;
        Self::new(
            columns
                .iter()
                .map(|column| column.0.as_str())
                .zip(made)
                .collect(),
        )
    }

    /// A copy of the columns, without Arrow.
    fn columns<'py>(&self, py: Python<'py>) -> PyResult<Vec<PlainColumn<'py>>> {
        self.0
            .columns()
            .iter()
            .map(|(name, column)| plain(py, name, column))
            .collect()
    }

    /// The Arrow PyCapsule interface. A requested schema is ignored, as the interface allows.
    #[pyo3(signature = (requested_schema = None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        drop(requested_schema);
        PyCapsule::new_with_value(py, self.0.stream(), c"arrow_array_stream")
    }

    /// Number of rows.
    fn __len__(&self) -> usize {
        self.0.rows()
    }
}

fn plain<'py>(py: Python<'py>, name: &str, column: &Column) -> PyResult<PlainColumn<'py>> {
    let valid = column
        .validity()
        .map(|valid| flags(py, &valid))
        .transpose()?;
    let mut names = None;
    let (kind, octets) = match column.plain() {
        Plain::Floats(values) => ("f8", numbers(py, values, |value| value.to_ne_bytes())),
        Plain::Counts(values) => ("u8", numbers(py, values, |value| value.to_ne_bytes())),
        Plain::Integers(values) => ("i8", numbers(py, values, |value| value.to_ne_bytes())),
        Plain::ShortCounts(values) => ("u4", numbers(py, values, |value| value.to_ne_bytes())),
        Plain::Flags(values) => ("?", flags(py, &values)),
        Plain::Strings {
            codes,
            names: texts,
        } => {
            names = Some(texts);
            ("text", numbers(py, &codes, |code| code.to_ne_bytes()))
        }
    };
    Ok((name.to_owned(), kind.to_owned(), octets?, valid, names))
}

fn flags<'py>(py: Python<'py>, values: &[bool]) -> PyResult<Bound<'py, PyBytes>> {
    numbers(py, values, |&value| [u8::from(value)])
}

fn numbers<'py, T, const N: usize>(
    py: Python<'py>,
    values: &[T],
    octets: impl Fn(&T) -> [u8; N],
) -> PyResult<Bound<'py, PyBytes>> {
    PyBytes::new_with(py, values.len() * N, |buffer| {
        for (place, value) in buffer.chunks_exact_mut(N).zip(values) {
            place.copy_from_slice(&octets(value));
        }
        Ok(())
    })
}

/// Builds a column from plain octets; `None` if they do not match the kind.
fn column(
    kind: &str,
    octets: &[u8],
    valid: Option<&[u8]>,
    names: Option<&[String]>,
) -> Option<Column> {
    let width = match kind {
        "f8" | "u8" | "i8" => 8,
        "u4" | "text" => 4,
        _ => 1,
    };
    let rows = octets.len() / width;
    if !octets.len().is_multiple_of(width) || valid.is_some_and(|valid| valid.len() != rows) {
        return None;
    }
    let has_value = |row: usize| valid.is_none_or(|valid| valid[row] != 0);
    Some(match kind {
        "f8" => Column::floats(values(octets, f64::from_ne_bytes, has_value)),
        "u8" => Column::counts(values(octets, u64::from_ne_bytes, has_value)),
        "i8" => Column::integers(values(octets, i64::from_ne_bytes, has_value)),
        "u4" if valid.is_none() => {
            Column::short_counts(values(octets, u32::from_ne_bytes, has_value).flatten())
        }
        "u4" => {
            let short = values(octets, u32::from_ne_bytes, has_value);
            Column::counts(short.map(|value| value.map(u64::from)))
        }
        "?" => Column::flags(values(octets, |[flag]: [u8; 1]| flag != 0, has_value)),
        "text" => {
            let names = names?;
            let codes = || values(octets, u32::from_ne_bytes, has_value).flatten();
            if codes().any(|code| code as usize >= names.len()) {
                return None;
            }
            let texts = values(octets, u32::from_ne_bytes, has_value);
            Column::strings(texts.map(|code| code.map(|code| names[code as usize].as_str())))
        }
        _ => return None,
    })
}

fn values<'a, T, const N: usize>(
    octets: &'a [u8],
    read: impl Fn([u8; N]) -> T + 'a,
    has_value: impl Fn(usize) -> bool + 'a,
) -> impl Iterator<Item = Option<T>> + 'a {
    let rows = octets.chunks_exact(N).enumerate();
    rows.map(move |(row, octets)| {
        let octets = octets.try_into().expect("chunks of N octets");
        has_value(row).then(|| read(octets))
    })
}
