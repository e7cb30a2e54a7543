//! The writer of a trace.

use silvics_sync::atomic::{AtomicBool, Ordering};
use silvics_sync::per_thread::thread_index;
use std::fmt;
use std::io::{self, BufWriter, Write};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, PoisonError};

use super::Recording;
use crate::encoding::IndexKey;
use crate::index::Lookup;

/// A form of keys that a trace can hold: `u64`, `u128` and `[u8]`.
pub trait TraceKey: IndexKey + sealed::Sealed {
    /// Its name in traces.
    #[doc(hidden)]
    const NAME: &'static str;
    /// Writes a key as JSON.
    #[doc(hidden)]
    fn write(key: Self::Ref<'_>, line: &mut Vec<u8>);
}

mod sealed {
    pub trait Sealed {}
    impl Sealed for u64 {}
    impl Sealed for u128 {}
    impl Sealed for [u8] {}
}

impl TraceKey for u64 {
    const NAME: &'static str = "u64";
    fn write(key: u64, line: &mut Vec<u8>) {
        line.extend(key.to_string().as_bytes());
    }
}

impl TraceKey for u128 {
    const NAME: &'static str = "u128";
    fn write(key: u128, line: &mut Vec<u8>) {
        line.extend(format!("\"{key}\"").as_bytes());
    }
}

impl TraceKey for [u8] {
    const NAME: &'static str = "bytes";
    fn write(key: &[u8], line: &mut Vec<u8>) {
        let Ok(text) = std::str::from_utf8(key) else {
            line.extend(b"{\"hex\": \"");
            line.extend(key.iter().flat_map(|byte| format!("{byte:02x}").into_bytes()));
            return line.extend(b"\"}");
        };
        line.push(b'"');
        for c in text.chars() {
            match c {
                '"' | '\\' => line.extend([b'\\', c as u8]),
                '\0'..='\x1f' | '\x7f' => {
                    line.extend(format!("\\u{:04x}", u32::from(c)).as_bytes());
                }
                _ => line.extend(c.encode_utf8(&mut [0; 4]).as_bytes()),
            }
        }
        line.push(b'"');
    }
}

/// The lines of a trace, on their way to the writer.
pub(crate) struct Log {
    /// Whether operations are recorded. Relaxed: it guards no data, and an operation beside the end
    /// of the recording may be on either side of it.
    open: AtomicBool,
    /// Whether the writer has panicked. Relaxed: it guards no data, and a line beside the panic may
    /// be on either side of it.
    panicked: AtomicBool,
    state: Mutex<State>,
}

struct State {
    /// `None` once the recording has ended.
    to: Option<BufWriter<Box<dyn Write + Send>>>,
    operations: u64,
    /// The first error of the writer. No line follows it.
    error: Option<io::Error>,
}

impl Log {
    fn with(open: bool, state: Mutex<State>) -> Self {
        Self { open: AtomicBool::new(open), panicked: AtomicBool::new(false), state }
    }

    /// A log that takes no operations.
    pub(crate) fn closed() -> Arc<Self> {
        let state = Mutex::new(State { to: None, operations: 0, error: None });
        Arc::new(Self::with(false, state))
    }

    /// Begins a trace of an index with these keys, in ascending order.
    fn begin<K: TraceKey + ?Sized>(
        to: impl Write + Send + 'static,
        present: usize,
        keys: impl FnOnce(&mut dyn FnMut(K::Ref<'_>)),
    ) -> io::Result<Arc<Self>> {
        let mut to: BufWriter<Box<dyn Write + Send>> = BufWriter::new(Box::new(to));
        let name = K::NAME;
        writeln!(to, "{{\"silvics_trace\": 1, \"key_type\": \"{name}\", \"present\": {present}}}")?;
        let (mut line, mut result) = (Vec::new(), Ok(()));
        keys(&mut |key| {
            if result.is_ok() {
                line.clear();
                line.extend(b"{\"present\": ");
                K::write(key, &mut line);
                line.extend(b"}\n");
                result = to.write_all(&line);
            }
        });
        result?;
        let state = Mutex::new(State { to: Some(to), operations: 0, error: None });
        Ok(Arc::new(Self::with(true, state)))
    }

    /// Writes the line of an operation.
    pub(crate) fn operation(&self, op: &str, rest: impl FnOnce(&mut Vec<u8>)) {
        if !self.open.load(Ordering::Relaxed) {
            return;
        }
        let mut line = format!("{{\"op\": \"{op}\", \"thread\": ").into_bytes();
        match thread_index() {
            Some(index) => line.extend(index.get().to_string().as_bytes()),
            None => line.extend(b"null"),
        }
        rest(&mut line);
        line.extend(b"}\n");
        // The operation has taken effect, so its caller must learn of it: whatever the writer does
        // ends the recording, and nothing else. So the writer, whose drop may panic, stays until
        // `end`, and a panic's payload, whose drop may, too, stays for good. A writer that calls
        // the map waits for itself, or panics where a system's locks do.
        if let Err(payload) = catch_unwind(AssertUnwindSafe(|| self.write(&line))) {
            std::mem::forget(payload);
            self.panicked.store(true, Ordering::Relaxed);
            self.open.store(false, Ordering::Relaxed);
        }
    }

    /// Writes a line, unless the recording has ended.
    fn write(&self, line: &[u8]) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if state.error.is_some() || self.panicked.load(Ordering::Relaxed) {
            return;
        }
        let Some(to) = &mut state.to else { return };
        match to.write_all(line) {
            Ok(()) => state.operations += 1,
            Err(error) => {
                state.error = Some(error);
                self.open.store(false, Ordering::Relaxed);
            }
        }
    }

    fn end(&self) -> io::Result<u64> {
        self.open.store(false, Ordering::Relaxed);
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let (to, error, operations) = (state.to.take(), state.error.take(), state.operations);
        drop(state); // the writer is the caller's code
        let panicked = self.panicked.load(Ordering::Relaxed);
        let error = error
            .or_else(|| panicked.then(|| io::Error::other("the writer of the trace panicked")));
        if let Some(error) = error {
            drop(to.map(BufWriter::into_parts)); // without another write
            return Err(error);
        }
        if let Some(mut to) = to {
            writeln!(to, "{{\"end\": {operations}}}")?;
            to.flush()?;
        }
        Ok(operations)
    }
}

/// A trace that has begun: the keys that are present are in it.
pub(crate) struct Begun(Arc<Log>);

impl Begun {
    /// Begins a trace. `keys` passes each key that is present, in ascending order.
    pub(crate) fn new<K: TraceKey + ?Sized>(
        to: impl Write + Send + 'static,
        present: usize,
        keys: impl FnOnce(&mut dyn FnMut(K::Ref<'_>)),
    ) -> io::Result<Self> {
        Log::begin::<K>(to, present, keys).map(Self)
    }

    /// Records the operations of an index from now on.
    pub(crate) fn around<I: Lookup<Key: TraceKey>>(self, index: I) -> (Recording<I>, Recorder) {
        let recorder = Recorder(Arc::clone(&self.0));
        (Recording::new(index, self.0), recorder)
    }
}

/// A recording that could not begin, with the map. The writer may have a part of the keys.
pub struct RecordError<M> {
    /// The map, as it was.
    pub map: M,
    /// The error of the writer.
    pub error: io::Error,
}

impl<M> fmt::Debug for RecordError<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RecordError").field("error", &self.error).finish_non_exhaustive()
    }
}

impl<M> fmt::Display for RecordError<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the keys of the map could not be written to the trace: {}", self.error)
    }
}

impl<M> std::error::Error for RecordError<M> {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&self.error)
    }
}

/// Ends the recording of a map. Dropping it ends the recording, too, and ignores errors.
pub struct Recorder(Arc<Log>);

impl fmt::Debug for Recorder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Recorder")
    }
}

impl Recorder {
    /// Writes the last line, and returns the number of operations in the trace. From now on the map
    /// records nothing. If a line could not be written, the recording ended there, and this returns
    /// the error.
    pub fn finish(self) -> io::Result<u64> {
        self.0.end()
    }
}

impl Drop for Recorder {
    fn drop(&mut self) {
        let _ = self.0.end(); // `finish` returns the error
    }
}
