//! Python's objects as keys, and back.

use super::error::no_memory;
use super::owned::locked;
use crate::key::{
    Part, float_to_word, int_to_word, read_parts, word_to_float, word_to_int, write_parts,
};
use crate::shape::{Kind, Mismatch, Shape};
use crate::store::{Key, Keys, OwnedKey};
use pyo3::exceptions::{PyOverflowError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyFloat, PyInt, PyString, PyTuple};
use pyo3::{PyTypeCheck, ffi};
use std::borrow::Cow;
use std::ffi::c_int;
use std::sync::Mutex;

/// The most levels of tuples in a key. Tuples are read, written and released by recursive
/// functions, so this bounds their use of the stack.
const LEVELS: usize = 64;

/// A key that was read from an object.
#[derive(Debug)]
pub(super) enum Made<'a> {
    Word(u64),
    Block(Cow<'a, [u8]>),
    /// The key of a tuple with elements at positions that have no types yet, so it is absent.
    New(Vec<u8>),
}

impl Made<'_> {
    #[inline]
    pub(super) fn key(&self) -> Key<'_> {
        match self {
            Self::Word(word) => Key::Word(*word),
            Self::Block(block) => Key::Block(block),
            Self::New(block) => Key::Block(block),
        }
    }

    pub(super) fn into_owned(self) -> OwnedKey {
        match self {
            Self::Word(word) => OwnedKey::Word(word),
            Self::Block(block) => OwnedKey::Block(block.into_owned()),
            Self::New(block) => OwnedKey::Block(block),
        }
    }
}

/// The reason why an object is no key of a map. A lookup then finds nothing, and a write or a range
/// raises an exception.
#[derive(Debug)]
pub(super) enum Unfit {
    /// The object is of another type than the keys.
    Type(Kind, String),
    /// The object is of no type that keys have.
    NoKey(String),
    /// The integer needs more than 64 bits.
    Overflow,
    /// The number is NaN.
    Nan,
    /// No float is equal to the number.
    Inexact,
    /// An element of the tuple is of another type than its position.
    Position(Mismatch),
    /// The tuple has more than [`LEVELS`] levels.
    Depth,
    /// The object raised an exception.
    Raised(PyErr),
}

impl From<PyErr> for Unfit {
    fn from(error: PyErr) -> Self {
        Self::Raised(error)
    }
}

impl From<Unfit> for PyErr {
    fn from(unfit: Unfit) -> Self {
        match unfit {
            Unfit::Type(wanted, found) => PyTypeError::new_err(format!(
                "the keys of this map are of type {}, not {found}",
                wanted.name()
            )),
            Unfit::NoKey(found) => PyTypeError::new_err(format!(
                "an object of type {found} cannot be a key: keys are int, float, str, bytes, or \
                 tuples of these"
            )),
            Unfit::Overflow => PyOverflowError::new_err(
                "an integer key has 64 bits with sign: it is at least -2**63 and less than 2**63",
            ),
            Unfit::Nan => PyValueError::new_err("NaN cannot be a key, because it has no order"),
            Unfit::Inexact => PyTypeError::new_err(
                "the keys of this map are floats, and none is equal to this number",
            ),
            Unfit::Position(mismatch) => PyTypeError::new_err(mismatch.to_string()),
            Unfit::Depth => PyValueError::new_err(format!(
                "a tuple that is a key has at most {LEVELS} levels of tuples, itself included"
            )),
            Unfit::Raised(error) => error,
        }
    }
}

impl Unfit {
    /// Nothing, for a lookup; an exception that the object raised is an error also there.
    #[cold]
    pub(super) fn absent(self) -> PyResult<()> {
        match self {
            Self::Raised(error) => Err(error),
            _ => Ok(()),
        }
    }
}

/// The name of an object's type.
fn name_of(object: &Bound<'_, PyAny>) -> String {
    object.get_type().name().map_or_else(|_| "unknown".into(), |name| name.to_string())
}

fn is<T: PyTypeCheck>(object: &Bound<'_, PyAny>) -> bool {
    object.is_instance_of::<T>()
}

/// The reason why an object with a conversion to a number is none. An array (`ndarray`) is such an
/// object: its conversion raises `TypeError` if it has several elements.
fn no_number(object: &Bound<'_, PyAny>, kind: Kind, error: PyErr) -> Unfit {
    if error.is_instance_of::<PyTypeError>(object.py()) {
        Unfit::Type(kind, name_of(object))
    } else {
        Unfit::Raised(error)
    }
}

fn has_index(object: &Bound<'_, PyAny>) -> bool {
    // SAFETY: the object is valid.
    unsafe { ffi::PyIndex_Check(object.as_ptr()) != 0 }
}

/// The type of keys that an object has as the first key of a map.
pub(super) fn kind_of(object: &Bound<'_, PyAny>) -> Result<Kind, Unfit> {
    if is::<PyInt>(object) {
        Ok(Kind::Int)
    } else if is::<PyString>(object) {
        Ok(Kind::Str)
    } else if is::<PyFloat>(object) {
        Ok(Kind::Float)
    } else if is::<PyTuple>(object) {
        Ok(Kind::Tuple)
    } else if is::<PyBytes>(object) {
        Ok(Kind::Bytes)
    } else if has_index(object) {
        Ok(Kind::Int)
    } else {
        Err(Unfit::NoKey(name_of(object)))
    }
}

/// The type that an argument `keys=` names.
pub(super) fn kind_named(argument: &Bound<'_, PyAny>) -> PyResult<Kind> {
    let py = argument.py();
    let classes = [Kind::Int, Kind::Float, Kind::Str, Kind::Bytes, Kind::Tuple];
    let named = classes.into_iter().find(|kind| argument.is(class_of(py, *kind)));
    let message = "`keys` is `int`, `float`, `str`, `bytes` or `tuple`";
    named.ok_or_else(|| PyTypeError::new_err(message))
}

/// The type as Python has it.
pub(super) fn class_of(py: Python<'_>, kind: Kind) -> Bound<'_, PyAny> {
    match kind {
        Kind::Int => py.get_type::<PyInt>().into_any(),
        Kind::Float => py.get_type::<PyFloat>().into_any(),
        Kind::Str => py.get_type::<PyString>().into_any(),
        Kind::Bytes => py.get_type::<PyBytes>().into_any(),
        Kind::Tuple => py.get_type::<PyTuple>().into_any(),
    }
}

/// The number of an `int` of at most 64 bits.
#[inline]
fn small_int(int: &Bound<'_, PyAny>) -> Result<i64, Unfit> {
    let mut overflow: c_int = 0;
    // SAFETY: the object is valid, and so is the address of the flag.
    let number = unsafe { ffi::PyLong_AsLongLongAndOverflow(int.as_ptr(), &raw mut overflow) };
    if overflow != 0 {
        return Err(Unfit::Overflow);
    }
    if number == -1
        && let Some(error) = PyErr::take(int.py())
    {
        return Err(Unfit::Raised(error));
    }
    Ok(number)
}

/// The number of an `int`, or of an object with `__index__`.
#[inline]
fn int(object: &Bound<'_, PyAny>) -> Result<i64, Unfit> {
    if is::<PyInt>(object) {
        return small_int(object);
    }
    if !has_index(object) {
        return Err(Unfit::Type(Kind::Int, name_of(object)));
    }
    small_int(&index_of(object).map_err(|error| no_number(object, Kind::Int, error))?)
}

/// The `int` of an object with `__index__`.
fn index_of<'py>(object: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    // SAFETY: the object is valid, and the call returns a new reference or raises.
    unsafe { Bound::from_owned_ptr_or_err(object.py(), ffi::PyNumber_Index(object.as_ptr())) }
}

/// The `int` of an object with `__index__`, and any other object itself. The comparison of an `int`
/// with a float is exact; that of a `numpy.int64` is not.
pub(super) fn exact<'py>(object: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    if has_index(object) { index_of(object) } else { Ok(object.clone()) }
}

/// The float that is equal to a number.
fn float(object: &Bound<'_, PyAny>) -> Result<f64, Unfit> {
    let number = if is::<PyFloat>(object) {
        object.extract::<f64>()?
    } else {
        if !has_index(object) && !object.hasattr("__float__")? {
            return Err(Unfit::Type(Kind::Float, name_of(object)));
        }
        let exact = exact(object).map_err(|error| no_number(object, Kind::Float, error))?;
        let number: f64 = match exact.extract() {
            Ok(number) => number,
            Err(error) if error.is_instance_of::<PyOverflowError>(object.py()) => {
                return Err(Unfit::Inexact);
            }
            Err(error) => return Err(no_number(object, Kind::Float, error)),
        };
        if !number.is_nan() && !exact.eq(number)? {
            return Err(Unfit::Inexact);
        }
        number
    };
    if number.is_nan() { Err(Unfit::Nan) } else { Ok(number + 0.0) }
}

/// The UTF-8 of a `str`, with three bytes for a lone surrogate.
fn utf8<'a>(text: Borrowed<'a, '_, PyAny>) -> Result<Cow<'a, [u8]>, Unfit> {
    let mut len: ffi::Py_ssize_t = 0;
    // SAFETY: the object is a `str`, and the address of the length is valid.
    let start = unsafe { ffi::PyUnicode_AsUTF8AndSize(text.as_ptr(), &raw mut len) };
    if !start.is_null() {
        // SAFETY: the `str` keeps these bytes unchanged for as long as it lives, which is at least
        // as long as it is borrowed.
        return Ok(Cow::Borrowed(unsafe {
            std::slice::from_raw_parts(start.cast(), len as usize)
        }));
    }
    drop(PyErr::take(text.py()));
    let (utf8, pass) = (c"utf-8".as_ptr(), c"surrogatepass".as_ptr());
    // SAFETY: the object is a `str`, and the call returns a new `bytes` or raises.
    let encoded = unsafe {
        let encoded = ffi::PyUnicode_AsEncodedString(text.as_ptr(), utf8, pass);
        Bound::from_owned_ptr_or_err(text.py(), encoded)
    }?;
    Ok(Cow::Owned(bytes(encoded.as_borrowed())?.to_vec()))
}

/// The bytes of a `bytes`.
fn bytes<'a>(object: Borrowed<'a, '_, PyAny>) -> Result<&'a [u8], Unfit> {
    if !is::<PyBytes>(&object) {
        return Err(Unfit::Type(Kind::Bytes, name_of(&object)));
    }
    // SAFETY: the object is a `bytes`. It keeps its bytes unchanged for as long as it lives, which
    // is at least as long as it is borrowed.
    unsafe {
        let len = ffi::PyBytes_Size(object.as_ptr()) as usize;
        let start: *const u8 = ffi::PyBytes_AsString(object.as_ptr()).cast();
        Ok(std::slice::from_raw_parts(start, len))
    }
}

/// An element of a tuple. It may have `levels` levels of tuples.
fn part<'a>(object: Borrowed<'a, '_, PyAny>, levels: usize) -> Result<Part<'a>, Unfit> {
    Ok(match kind_of(&object)? {
        Kind::Int => Part::Int(int(&object)?),
        Kind::Float => Part::Float(float(&object)?),
        Kind::Str => Part::Str(utf8(object)?),
        Kind::Bytes => Part::Bytes(Cow::Borrowed(bytes(object)?)),
        Kind::Tuple => Part::Tuple(parts(object, levels)?),
    })
}

/// The elements of a tuple, which may have `levels` levels of tuples.
fn parts<'a>(object: Borrowed<'a, '_, PyAny>, levels: usize) -> Result<Vec<Part<'a>>, Unfit> {
    if !is::<PyTuple>(&object) {
        return Err(Unfit::Type(Kind::Tuple, name_of(&object)));
    }
    let inner = levels.checked_sub(1).ok_or(Unfit::Depth)?;
    // SAFETY: the object is a tuple.
    let len = unsafe { ffi::PyTuple_Size(object.as_ptr()) };
    let mut parts = Vec::with_capacity(len as usize);
    for at in 0..len {
        // SAFETY: the tuple has this position. It keeps its elements for as long as it lives, which
        // is at least as long as it is borrowed.
        let element =
            unsafe { Borrowed::from_ptr(object.py(), ffi::PyTuple_GetItem(object.as_ptr(), at)) };
        parts.push(part(element, inner)?);
    }
    Ok(parts)
}

/// Reads a key of a map whose keys have a type. [`learn`] follows if the key is inserted.
#[inline]
pub(super) fn read<'a>(
    kind: Kind,
    shape: &Mutex<Shape>,
    object: &'a Bound<'_, PyAny>,
) -> Result<Made<'a>, Unfit> {
    match kind {
        Kind::Int => Ok(Made::Word(int_to_word(int(object)?))),
        Kind::Float => float_to_word(float(object)?).map(Made::Word).ok_or(Unfit::Nan),
        Kind::Str if is::<PyString>(object) => Ok(Made::Block(utf8(object.as_borrowed())?)),
        Kind::Str => Err(Unfit::Type(kind, name_of(object))),
        Kind::Bytes => Ok(Made::Block(Cow::Borrowed(bytes(object.as_borrowed())?))),
        Kind::Tuple => read_tuple(shape, object),
    }
}

/// Reads a tuple. It is no part of [`read`], so that the code for numbers stays small.
#[inline(never)]
fn read_tuple<'a>(shape: &Mutex<Shape>, object: &Bound<'_, PyAny>) -> Result<Made<'a>, Unfit> {
    let mut parts = parts(object.as_borrowed(), LEVELS)?;
    let shape = locked(shape);
    shape.fit(&mut parts).map_err(Unfit::Position)?;
    let known = shape.knows(&parts);
    drop(shape);
    let mut block = Vec::with_capacity(32);
    write_parts(&parts, &mut block);
    Ok(if known { Made::Block(Cow::Owned(block)) } else { Made::New(block) })
}

/// Gives the positions that an inserted key is the first one to have the types of its elements. No
/// Python code has run since the key was read.
#[inline]
pub(super) fn learn(shape: &Mutex<Shape>, made: &Made<'_>) {
    if let Made::New(block) = made {
        learn_block(shape, block);
    }
}

#[cold]
fn learn_block(shape: &Mutex<Shape>, block: &[u8]) {
    let admitted = read_parts(block).map(|mut parts| locked(shape).admit(&mut parts));
    debug_assert!(matches!(admitted, Some(Ok(()))), "the key fitted when it was read");
}

/// Reads keys that are to be inserted. Returns the shape that the map has after that.
pub(super) fn read_all(
    kind: Kind,
    shape: Option<&Mutex<Shape>>,
    objects: &[Bound<'_, PyAny>],
) -> Result<(Keys, Shape), Unfit> {
    let scratch = Mutex::new(shape.map_or_else(Shape::default, |shape| locked(shape).clone()));
    let mut keys = Keys::empty(are_words(kind));
    for object in objects {
        let made = read(kind, &scratch, object)?;
        keys.push(made.key()).map_err(no_memory)?;
        learn(&scratch, &made);
    }
    let scratch = locked(&scratch).clone();
    Ok((keys, scratch))
}

/// Whether keys of a type are words.
pub(super) fn are_words(kind: Kind) -> bool {
    matches!(kind, Kind::Int | Kind::Float)
}

/// The object of a key of a map.
#[inline]
pub(super) fn object<'py>(
    py: Python<'py>,
    kind: Kind,
    key: Key<'_>,
) -> PyResult<Bound<'py, PyAny>> {
    match (kind, key) {
        (Kind::Int, Key::Word(word)) => {
            // SAFETY: the call returns a new reference or raises.
            unsafe {
                let int = ffi::PyLong_FromLongLong(word_to_int(word));
                Bound::from_owned_ptr_or_err(py, int)
            }
        }
        (_, Key::Word(word)) => Ok(PyFloat::new(py, word_to_float(word)).into_any()),
        (Kind::Str, Key::Block(block)) => text(py, block),
        (Kind::Tuple, Key::Block(block)) => {
            let parts = read_parts(block);
            let parts =
                parts.ok_or_else(|| PyValueError::new_err("a key of the map is damaged"))?;
            tuple(py, &parts)
        }
        (_, Key::Block(block)) => Ok(PyBytes::new(py, block).into_any()),
    }
}

fn text<'py>(py: Python<'py>, utf8: &[u8]) -> PyResult<Bound<'py, PyAny>> {
    let (bytes, pass) = (utf8.as_ptr().cast(), c"surrogatepass".as_ptr());
    // SAFETY: the bytes are valid, and the call returns a new reference or raises.
    unsafe {
        let text = ffi::PyUnicode_DecodeUTF8(bytes, utf8.len() as ffi::Py_ssize_t, pass);
        Bound::from_owned_ptr_or_err(py, text)
    }
}

fn tuple<'py>(py: Python<'py>, parts: &[Part<'_>]) -> PyResult<Bound<'py, PyAny>> {
    let elements = parts.iter().map(|part| {
        Ok(match part {
            Part::Int(number) => PyInt::new(py, *number).into_any(),
            Part::Float(number) => PyFloat::new(py, *number).into_any(),
            Part::Str(utf8) => text(py, utf8)?,
            Part::Bytes(bytes) => PyBytes::new(py, bytes).into_any(),
            Part::Tuple(parts) => tuple(py, parts)?,
        })
    });
    let elements: Vec<_> = elements.collect::<PyResult<_>>()?;
    Ok(PyTuple::new(py, elements)?.into_any())
}
