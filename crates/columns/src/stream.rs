//! The structures of the Arrow C stream interface, and their callbacks.
//!
//! Each structure owns a box in `private_data`, which its `release` frees. A consumer may move a child out of an array and
//! release it later, so that each child shares the table and owns its list of buffers.

#![expect(
    unsafe_code,
    reason = "the interface consists of C structures and callbacks"
)]

use std::{
    ffi::{CString, c_char, c_int, c_void},
    ptr::{null, null_mut},
};

use crate::{Table, column::length_of};

/// `ARROW_FLAG_NULLABLE`.
const NULLABLE: i64 = 2;

#[repr(C)]
struct ArrowSchema {
    format: *const c_char,
    name: *const c_char,
    metadata: *const c_char,
    flags: i64,
    n_children: i64,
    children: *mut *mut ArrowSchema,
    dictionary: *mut ArrowSchema,
    release: Option<unsafe extern "C" fn(*mut ArrowSchema)>,
    private_data: *mut c_void,
}

#[repr(C)]
struct ArrowArray {
    length: i64,
    null_count: i64,
    offset: i64,
    n_buffers: i64,
    n_children: i64,
    buffers: *mut *const c_void,
    children: *mut *mut ArrowArray,
    dictionary: *mut ArrowArray,
    release: Option<unsafe extern "C" fn(*mut ArrowArray)>,
    private_data: *mut c_void,
}

/// `struct ArrowArrayStream`, as a consumer takes it out of a capsule named `arrow_array_stream`.
#[repr(C)]
pub struct Stream {
    get_schema: unsafe extern "C" fn(*mut Stream, *mut ArrowSchema) -> c_int,
    get_next: unsafe extern "C" fn(*mut Stream, *mut ArrowArray) -> c_int,
    get_last_error: unsafe extern "C" fn(*mut Stream) -> *const c_char,
    release: Option<unsafe extern "C" fn(*mut Stream)>,
    private_data: *mut c_void,
}

// SAFETY: the private data is a `Producer`, which is `Send`, and a consumer calls the callbacks of a stream from one thread
// at a time (Arrow C stream interface, *thread safety*).
unsafe impl Send for Stream {}

/// The private data of a stream.
struct Producer {
    table: Table,
    is_read: bool,
}

/// The private data of a schema.
struct SchemaData {
    name: CString,
    children: Vec<*mut ArrowSchema>,
}

/// The private data of an array. The table keeps the buffers alive.
struct ArrayData {
    _table: Table,
    buffers: Vec<*const c_void>,
    children: Vec<*mut ArrowArray>,
}

impl Stream {
    pub(crate) fn new(table: Table) -> Self {
        let producer = Box::new(Producer {
            table,
            is_read: false,
        });
        Self {
            get_schema,
            get_next,
            get_last_error,
            release: Some(release_stream),
            private_data: Box::into_raw(producer).cast(),
        }
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        if let Some(release) = self.release {
            // SAFETY: a stream that has a release callback owns its private data.
            unsafe { release(self) }
        }
    }
}

unsafe extern "C" fn release_stream(stream: *mut Stream) {
    // SAFETY: a consumer passes a stream that it has not released; its private data is the box that `new` made.
    unsafe {
        drop(Box::from_raw((*stream).private_data.cast::<Producer>()));
        (*stream).private_data = null_mut();
        (*stream).release = None;
    }
}

unsafe extern "C" fn get_schema(stream: *mut Stream, out: *mut ArrowSchema) -> c_int {
    // SAFETY: the stream has not been released, so that its private data is a `Producer`.
    let producer = unsafe { &*(*stream).private_data.cast::<Producer>() };
    // SAFETY: `out` is memory for a schema, which need not be initialised.
    unsafe { out.write(ArrowSchema::of(&producer.table)) };
    0
}

unsafe extern "C" fn get_next(stream: *mut Stream, out: *mut ArrowArray) -> c_int {
    // SAFETY: the stream has not been released, and no other callback runs, so that the reference is the only one.
    let producer = unsafe { &mut *(*stream).private_data.cast::<Producer>() };
    let array = if producer.is_read {
        ArrowArray::released()
    } else {
        ArrowArray::of(&producer.table)
    };
    producer.is_read = true;
    // SAFETY: `out` is memory for an array, which need not be initialised.
    unsafe { out.write(array) };
    0
}

/// No callback fails.
const unsafe extern "C" fn get_last_error(_: *mut Stream) -> *const c_char {
    null()
}

impl ArrowSchema {
    /// A struct whose fields are the columns.
    fn of(table: &Table) -> Self {
        let fields = table.columns().iter().map(|(name, column)| {
            let flags = if column.nulls() > 0 { NULLABLE } else { 0 };
            Box::into_raw(Box::new(Self::new(
                column.format(),
                name,
                flags,
                Vec::new(),
            )))
        });
        Self::new(c"+s", "", 0, fields.collect())
    }

    fn new(
        format: &'static std::ffi::CStr,
        name: &str,
        flags: i64,
        children: Vec<*mut Self>,
    ) -> Self {
        let mut data = Box::new(SchemaData {
            // Names of columns are constants of the engine, without NUL.
            name: CString::new(name).unwrap_or_default(),
            children,
        });
        Self {
            format: format.as_ptr(),
            name: data.name.as_ptr(),
            metadata: null(),
            flags,
            n_children: length_of(data.children.len()),
            children: data.children.as_mut_ptr(),
            dictionary: null_mut(),
            release: Some(release_schema),
            private_data: Box::into_raw(data).cast(),
        }
    }
}

unsafe extern "C" fn release_schema(schema: *mut ArrowSchema) {
    // SAFETY: a consumer passes a schema that it has not released. Its private data is the box that `new` made, and its children
    // are boxes that only this schema owns; one that was moved out has no release callback any more.
    unsafe {
        let data = Box::from_raw((*schema).private_data.cast::<SchemaData>());
        for &child in &data.children {
            if let Some(release) = (*child).release {
                release(child);
            }
            drop(Box::from_raw(child));
        }
        (*schema).private_data = null_mut();
        (*schema).release = None;
    }
}

impl ArrowArray {
    /// A struct array whose children are the columns.
    fn of(table: &Table) -> Self {
        let children = table.columns().iter().map(|(_, column)| {
            let child = Self::new(
                (column.len(), column.nulls()),
                ArrayData {
                    _table: table.clone(),
                    buffers: column.buffers(),
                    children: Vec::new(),
                },
            );
            Box::into_raw(Box::new(child))
        });
        Self::new(
            (table.rows(), 0),
            ArrayData {
                _table: table.clone(),
                buffers: vec![null()],
                children: children.collect(),
            },
        )
    }

    fn new((length, nulls): (usize, usize), data: ArrayData) -> Self {
        let mut data = Box::new(data);
        Self {
            length: length_of(length),
            null_count: length_of(nulls),
            offset: 0,
            n_buffers: length_of(data.buffers.len()),
            n_children: length_of(data.children.len()),
            buffers: data.buffers.as_mut_ptr(),
            children: data.children.as_mut_ptr(),
            dictionary: null_mut(),
            release: Some(release_array),
            private_data: Box::into_raw(data).cast(),
        }
    }

    /// The end of a stream.
    const fn released() -> Self {
        Self {
            length: 0,
            null_count: 0,
            offset: 0,
            n_buffers: 0,
            n_children: 0,
            buffers: null_mut(),
            children: null_mut(),
            dictionary: null_mut(),
            release: None,
            private_data: null_mut(),
        }
    }
}

unsafe extern "C" fn release_array(array: *mut ArrowArray) {
    // SAFETY: as in `release_schema`.
    unsafe {
        let data = Box::from_raw((*array).private_data.cast::<ArrayData>());
        for &child in &data.children {
            if let Some(release) = (*child).release {
                release(child);
            }
            drop(Box::from_raw(child));
        }
        (*array).private_data = null_mut();
        (*array).release = None;
    }
}

#[cfg(test)]
mod tests;
