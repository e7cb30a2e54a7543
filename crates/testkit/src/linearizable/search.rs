//! The search for an order that explains calls, whatever they were called on.

use rustc_hash::FxHashSet;
use smallvec::SmallVec;
use std::fmt::Debug;
use std::hash::Hash;

/// A sequential object: what its calls do.
pub(crate) trait Object {
    /// What it holds.
    type State: Clone + Eq + Hash + Debug;
    /// A call with its answer.
    type Op: Clone + Debug;

    /// Whether the call may have given its answer in `state` and leaves it as it is.
    fn idles(op: &Self::Op, state: &Self::State) -> bool;
    /// Whether the answer says that the call has changed nothing, whatever the state was.
    fn changed_nothing(op: &Self::Op) -> bool;
    /// The state after the call if it took effect in `state`; `None` if it could not have given
    /// its answer there.
    fn apply(op: &Self::Op, state: &Self::State) -> Option<Self::State>;
    /// The state after the call in `state`, whatever it answered.
    fn effect(op: &Self::Op, state: &Self::State) -> Self::State;
}

/// A call and when it was made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Call<O> {
    pub(crate) thread: usize,
    /// The stamp taken before it.
    pub(crate) start: u64,
    /// The stamp taken after it; [`PENDING`] if it had not returned.
    pub(crate) end: u64,
    pub(crate) op: O,
}

/// The end of a call that has not returned: it may have taken effect or not.
pub(crate) const PENDING: u64 = u64::MAX;

impl<O> Call<O> {
    pub(crate) fn is_pending(&self) -> bool {
        self.end == PENDING
    }
}

/// Calls under way at once beyond which no order is searched.
const LANES_MAX: usize = 64;

/// States an object may be in, few and distinct.
pub(crate) type States<S> = SmallVec<[S; 2]>;

/// Calls in sequences that do not overlap within themselves: one per thread.
type Lanes<'a, O> = SmallVec<[&'a [Call<O>]; 8]>;

/// How many calls of each lane are done.
type Done = SmallVec<[u32; 8]>;

/// Calls no order explains, and the states they could have started in.
#[derive(Debug)]
pub(crate) struct Unexplained<B: Object> {
    pub(crate) calls: Vec<Call<B::Op>>,
    pub(crate) states: States<B::State>,
}

/// Why a history was not accepted.
#[derive(Debug)]
pub(crate) enum Refusal<B: Object> {
    Unexplained(Unexplained<B>),
    /// The search was given up.
    Undecided,
}

/// Follows `lanes` from any of `states` to the states they can lead to. `budget` bounds the
/// configurations visited.
pub(crate) fn follow<B: Object>(
    lanes: &[&[Call<B::Op>]],
    states: &mut States<B::State>,
    budget: &mut u64,
) -> Result<(), Refusal<B>> {
    let mut rest: Lanes<'_, B::Op> = lanes.iter().copied().collect();
    while let Some(segment) = next_segment(&mut rest) {
        if segment.len() > LANES_MAX {
            return Err(Refusal::Undecided);
        }
        let reached = match &segment[..] {
            [[only]] if !only.is_pending() => alone::<B>(only, states),
            _ => explore::<B>(&segment, states, budget).ok_or(Refusal::Undecided)?,
        };
        if reached.is_empty() {
            return Err(Refusal::Unexplained(shorten(&segment, states)));
        }
        *states = reached;
    }
    Ok(())
}

/// Cuts the calls up to the first moment when none is under way off the front of the lanes.
fn next_segment<'a, O>(rest: &mut Lanes<'a, O>) -> Option<Lanes<'a, O>> {
    let first = |lane: &&'a [Call<O>]| lane.first().map(|call| (call.start, call.end));
    let mut taken: Done = SmallVec::from_elem(0, rest.len());
    let (_, mut end) = rest.iter().filter_map(first).min()?;
    loop {
        let mut grown = false;
        for (lane, taken) in rest.iter().zip(&mut taken) {
            // Also the call that made `end`, which begins before it ends.
            while let Some(call) = lane.get(*taken as usize).filter(|call| call.start <= end) {
                *taken += 1;
                grown = true;
                end = end.max(call.end);
            }
        }
        if !grown {
            break;
        }
    }
    let mut segment = Lanes::new();
    for (lane, taken) in rest.iter_mut().zip(taken) {
        let (front, back) = lane.split_at(taken as usize);
        *lane = back;
        if !front.is_empty() {
            segment.push(front);
        }
    }
    Some(segment)
}

/// The states a call leads to that overlaps no other.
fn alone<B: Object>(call: &Call<B::Op>, states: &States<B::State>) -> States<B::State> {
    let mut reached = States::new();
    for after in states.iter().filter_map(|state| B::apply(&call.op, state)) {
        if !reached.contains(&after) {
            reached.push(after);
        }
    }
    reached
}

/// All states that legal orders of the lanes lead to from one of `states`; `None` if the budget
/// does not suffice.
fn explore<B: Object>(
    lanes: &[&[Call<B::Op>]],
    states: &States<B::State>,
    budget: &mut u64,
) -> Option<States<B::State>> {
    let mut reached = States::new();
    let mut visited: FxHashSet<(Done, B::State)> = FxHashSet::default();
    let mut open: Vec<(Done, B::State)> =
        states.iter().map(|state| (SmallVec::from_elem(0, lanes.len()), state.clone())).collect();
    while let Some((mut done, mut state)) = open.pop() {
        if !visited.insert((done.clone(), state.clone())) {
            continue;
        }
        // As long as there is one way on, it is taken here.
        loop {
            *budget = budget.checked_sub(1)?;
            let deadline = take_idle::<B>(lanes, &mut done, &state);
            let next = |lane: usize| lanes[lane].get(done[lane] as usize);
            let mut left = (0..lanes.len()).filter_map(next);
            if left.all(Call::is_pending) && !reached.contains(&state) {
                reached.push(state.clone()); // what is pending may have had no effect
            }
            let ways = (0..lanes.len()).filter_map(|lane| {
                let call = next(lane).filter(|call| call.start <= deadline)?;
                let after = if call.is_pending() {
                    Some(B::effect(&call.op, &state))
                } else {
                    B::apply(&call.op, &state)
                };
                after.map(|after| (lane, after))
            });
            let mut ways: SmallVec<[(usize, B::State); 8]> = ways.collect();
            // What is kept of a way on is as long as there are lanes.
            *budget = budget.checked_sub((ways.len() * lanes.len() / 8) as u64)?;
            let Some((lane, after)) = ways.pop() else { break };
            if ways.is_empty() {
                done[lane] += 1;
                state = after;
                continue;
            }
            ways.push((lane, after));
            for (lane, after) in ways {
                let mut done = done.clone();
                done[lane] += 1;
                open.push((done, after));
            }
            break;
        }
    }
    Some(reached)
}

/// Takes all calls that may come next and leave the state as it is. Returns the end of the call
/// left that ends first: what starts later cannot come next.
///
/// No order is lost: an order that takes such a call later may as well take it now, since nothing
/// must come before it, and nobody notices it.
fn take_idle<B: Object>(lanes: &[&[Call<B::Op>]], done: &mut Done, state: &B::State) -> u64 {
    loop {
        let next = |lane: usize, done: &Done| lanes[lane].get(done[lane] as usize);
        let ends = (0..lanes.len()).filter_map(|lane| next(lane, done)).map(|call| call.end);
        let deadline = ends.min().unwrap_or(0);
        let mut taken = false;
        for lane in 0..lanes.len() {
            while let Some(call) = next(lane, done)
                && call.start <= deadline
                && !call.is_pending()
                && B::idles(&call.op, state)
            {
                done[lane] += 1;
                taken = true;
            }
        }
        if !taken {
            return deadline;
        }
    }
}

/// Configurations visited on the way to a short report.
const SHORTENING: u64 = 1 << 21;

/// The calls up to the earliest moment at which no order explains them, without those that changed
/// nothing and are not needed for that.
///
/// Both steps are sound: a prefix of an explained history is explained, and so is one without a
/// call that changed nothing.
fn shorten<B: Object>(segment: &[&[Call<B::Op>]], states: &States<B::State>) -> Unexplained<B> {
    let mut budget = SHORTENING;
    let mut is_bad = |lanes: &[Vec<Call<B::Op>>]| is_unexplained::<B>(lanes, states, &mut budget);
    let mut ends: Vec<u64> = segment.iter().flat_map(|lane| lane.iter().map(|c| c.end)).collect();
    ends.sort_unstable();
    let good = ends.partition_point(|&cut| !is_bad(&prefix(segment, cut)));
    let mut lanes = prefix(segment, ends[good.min(ends.len() - 1)]);
    for lane in 0..lanes.len() {
        for at in (0..lanes[lane].len()).rev() {
            if B::changed_nothing(&lanes[lane][at].op) {
                let call = lanes[lane].remove(at);
                if !is_bad(&lanes) {
                    lanes[lane].insert(at, call);
                }
            }
        }
    }
    let mut calls = lanes.concat();
    calls.sort_by_key(|call| (call.start, call.end));
    Unexplained { calls, states: states.clone() }
}

/// Whether there is certainly no order.
pub(crate) fn is_unexplained<B: Object>(
    lanes: &[Vec<Call<B::Op>>],
    states: &States<B::State>,
    budget: &mut u64,
) -> bool {
    let lanes: Lanes<'_, B::Op> = lanes.iter().map(Vec::as_slice).collect();
    let reached = explore::<B>(&lanes, states, budget);
    if reached.is_none() {
        *budget = 0; // what is left to try stays as it is
    }
    reached.is_some_and(|reached| reached.is_empty())
}

/// The calls that had started by stamp `cut`, which overlap those that end there; those that had not ended are pending.
fn prefix<O: Clone>(lanes: &[&[Call<O>]], cut: u64) -> Vec<Vec<Call<O>>> {
    let started = |lane: &&[Call<O>]| {
        let calls = lane.iter().filter(|call| call.start <= cut);
        calls
            .map(|call| Call {
                end: if call.end <= cut { call.end } else { PENDING },
                ..call.clone()
            })
            .collect()
    };
    lanes.iter().map(started).collect()
}
