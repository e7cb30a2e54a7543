//! The positions of `latest`, whose window of present keys moves.

use crate::choice::Choice;
use crate::stream::next_around;
use crate::{Block, Op, Window};

/// The operations of `latest`. Threads take turns in the insertion order: thread t of T inserts
/// numbers t, t + T, t + 2T … from where the run started. Each assumes that the others have
/// progressed as far as itself.
#[derive(Clone, Debug)]
pub(crate) struct Latest<'a> {
    pub(crate) choice: &'a Choice,
    pub(crate) ages: &'a [u32],
    pub(crate) at: usize,
    pub(crate) thread: u64,
    pub(crate) threads: u64,
}

impl Latest<'_> {
    pub(crate) fn fill(&mut self, block: &mut Block, window: &mut Window) {
        let len = self.choice.len() as u64;
        let kinds = block.runs.iter().flat_map(|&(op, len)| std::iter::repeat_n(op, len));
        for (op, position) in kinds.zip(&mut block.positions) {
            let age = u64::from(next_around(self.ages, &mut self.at));
            let number = match op {
                Op::Insert => {
                    window.inserted += self.threads;
                    window.inserted - self.threads + self.thread
                }
                Op::Remove => {
                    window.removed += self.threads;
                    window.removed - self.threads + self.thread
                }
                // Ages are below `present`, the initial value of `inserted`.
                Op::Lookup | Op::Scan | Op::Upsert => window.inserted - 1 - age,
            };
            *position = self.choice.order().apply(number % len) as u32;
        }
    }
}
