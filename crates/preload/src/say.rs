//! Messages on standard error.

use crate::file::{Identity, Refused};
use crate::text::Text;
use libc::c_int;
use std::ffi::CStr;

/// The reason why a program runs untraced.
pub(crate) enum Refusal<'a> {
    NoPath,
    LongPath,
    Depth(&'a [u8]),
    NoKey,
    File(Refused),
}

/// The standard error of the program's start. Messages go to no other file.
pub(crate) struct Stderr(Option<Identity>);

impl Stderr {
    /// No standard error: messages are dropped.
    pub(crate) const fn none() -> Self {
        Self(None)
    }

    /// The current standard error.
    pub(crate) fn now() -> Self {
        Self(Identity::of(2))
    }

    /// Reports why a program runs untraced. Its trace was to go to `path`.
    pub(crate) fn untraced(&self, refusal: &Refusal<'_>, path: &[u8]) {
        /// Appends a value, or its first bytes.
        fn push_shown(text: &mut Text<[u8; 512]>, value: &[u8]) {
            text.push_clean(value.get(..value.len().min(200)).unwrap_or_default());
        }
        let mut text = Text::new([0; 512]);
        text.push(b"silvics-preload: the program runs untraced: ");
        match refusal {
            Refusal::NoPath => text.push(b"SILVICS_TRACE is empty: name the file to write to"),
            Refusal::LongPath => {
                text.push(b"SILVICS_TRACE is too long: name a file by a shorter path");
            }
            Refusal::Depth(value) => {
                text.push(b"SILVICS_TRACE_DEPTH is `");
                push_shown(&mut text, value);
                text.push(b"`: give a number of frames from 1 to 16, or none");
            }
            Refusal::NoKey => {
                text.push(b"there are no thread-specific keys left: preload this object first");
            }
            Refusal::File(refused) => {
                text.push(b"SILVICS_TRACE is `");
                push_shown(&mut text, path);
                text.push(b"`, which ");
                match refused {
                    Refused::System(error) => {
                        text.push(b"cannot be written (");
                        push_error(&mut text, *error);
                        text.push(b"): name a file that can");
                    }
                    Refused::NotRegular => text.push(b"is not a regular file: name one"),
                    // Usually a child meets its parent's file, which is no mistake.
                    Refused::Busy => return,
                }
            }
        }
        text.push(b"\n");
        self.say(&text);
    }

    /// Reports by an error number why the trace ends before the program.
    pub(crate) fn ends_early(&self, error: c_int) {
        let mut text = Text::new([0_u8; 512]);
        text.push(b"silvics-preload: the trace ends early because it cannot be written (");
        push_error(&mut text, error);
        text.push(b"): the part written is valid; remove the cause and run the program again\n");
        self.say(&text);
    }

    /// Reports how many events are missing in the trace because children could not write them.
    pub(crate) fn lacks(&self, events: usize) {
        let mut text = Text::new([0_u8; 512]);
        text.push(b"silvics-preload: ");
        text.push_decimal(events);
        text.push(
            b" events are missing in the trace: a child of vfork could not write them; \
              let it close descriptors and lower limits after it allocates\n",
        );
        self.say(&text);
    }

    fn say<const N: usize>(&self, text: &Text<[u8; N]>) {
        if self.0.is_some() && Identity::of(2) == self.0 {
            let text = text.written();
            // SAFETY: readable bytes. Bytes that standard error does not accept are lost.
            unsafe { libc::syscall(libc::SYS_write, 2, text.as_ptr(), text.len()) };
        }
    }
}

fn push_error<const N: usize>(text: &mut Text<[u8; N]>, error: c_int) {
    let mut message = [0_u8; 128];
    // SAFETY: `message` has room for the text that the call writes.
    let failed = unsafe { libc::strerror_r(error, message.as_mut_ptr().cast(), message.len()) };
    match CStr::from_bytes_until_nul(&message) {
        Ok(message) if failed == 0 => text.push(message.to_bytes()),
        _ => {
            text.push(b"error ");
            text.push_decimal(error as usize);
        }
    }
}
