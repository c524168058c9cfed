//! A table that hands itself over through the Arrow C stream interface.

use std::sync::Arc;

use arrow_array::{ArrayRef, RecordBatch, RecordBatchIterator, ffi_stream::FFI_ArrowArrayStream};
use arrow_schema::{Field, Schema};
use pyo3::{exceptions::PyRuntimeError, prelude::*, types::PyCapsule};

/// Columns in Arrow's memory layout. Polars, pyarrow, DuckDB and pandas take it without a copy:
/// `polars.DataFrame(table)`.
#[pyclass(frozen, module = "anabranch._engine")]
pub struct ArrowTable {
    batch: RecordBatch,
}

impl ArrowTable {
    /// From named columns of equal length.
    pub fn new(columns: Vec<(&str, ArrayRef)>) -> PyResult<Self> {
        let fields: Vec<Field> = columns
            .iter()
            .map(|(name, array)| {
                Field::new(*name, array.data_type().clone(), array.null_count() > 0)
            })
            .collect();
        let arrays = columns.into_iter().map(|(_, array)| array).collect();
        let batch = RecordBatch::try_new(Arc::new(Schema::new(fields)), arrays)
            .map_err(|error| PyRuntimeError::new_err(error.to_string()))?;
        Ok(Self { batch })
    }

    /// Whether it has no rows.
    pub fn is_empty(&self) -> bool {
        self.batch.num_rows() == 0
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
        let schema = self.batch.schema();
        let reader = RecordBatchIterator::new([Ok(self.batch.clone())], schema);
        let stream = FFI_ArrowArrayStream::new(Box::new(reader));
        PyCapsule::new_with_value(py, stream, c"arrow_array_stream")
    }
    /// Rows.
    fn __len__(&self) -> usize {
        self.batch.num_rows()
    }
}
