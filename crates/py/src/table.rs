//! A table that exports itself through the Arrow C stream interface.

use anabranch_columns::{Column, Table};
use pyo3::{exceptions::PyRuntimeError, prelude::*, types::PyCapsule};

/// Columns in Arrow's memory layout. Polars, pyarrow, DuckDB and pandas take it without a copy:
/// `polars.DataFrame(table)`.
#[pyclass(frozen, module = "anabranch._engine")]
pub struct ArrowTable(Table);

impl ArrowTable {
    /// From named columns of equal length.
    pub fn new(columns: Vec<(&str, Column)>) -> PyResult<Self> {
        let table = Table::new(columns);
        table
            .map(Self)
            .map_err(|error| PyRuntimeError::new_err(error.to_string()))
    }

    /// Whether it has no rows.
    pub fn is_empty(&self) -> bool {
        self.0.rows() == 0
    }
}

#[pymethods]
impl ArrowTable {
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
    /// Rows.
    fn __len__(&self) -> usize {
        self.0.rows()
    }
}
