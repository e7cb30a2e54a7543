//! The search for an order that explains calls, for any kind of object.

use rustc_hash::FxHashSet;
use smallvec::SmallVec;
use std::fmt::Debug;
use std::hash::Hash;

/// A sequential object, defined by the effects of its calls.
pub(crate) trait Object {
    /// The state of the object.
    type State: Clone + Eq + Hash + Debug;
    /// A call with its answer.
    type Op: Clone + Debug;

    /// Whether the call's answer is right in `state`, which the call leaves unchanged.
    fn idles(op: &Self::Op, state: &Self::State) -> bool;
    /// Whether the answer implies that the call changed nothing, in any state.
    fn changed_nothing(op: &Self::Op) -> bool;
    /// The state after the call if it took effect in `state`, or `None` if its answer is impossible
    /// there.
    fn apply(op: &Self::Op, state: &Self::State) -> Option<Self::State>;
    /// The state after the call in `state`, ignoring its answer.
    fn effect(op: &Self::Op, state: &Self::State) -> Self::State;
}

/// A call with its times.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Call<O> {
    pub(crate) thread: usize,
    /// The stamp taken before the call.
    pub(crate) start: u64,
    /// The stamp taken after the call, or [`PENDING`] if it had not returned.
    pub(crate) end: u64,
    pub(crate) op: O,
}

/// The end of a call that has not returned, and so may have taken effect or not.
pub(crate) const PENDING: u64 = u64::MAX;

impl<O> Call<O> {
    pub(crate) fn is_pending(&self) -> bool {
        self.end == PENDING
    }

    /// The call with another operation.
    pub(crate) fn with<P>(&self, op: P) -> Call<P> {
        Call { thread: self.thread, start: self.start, end: self.end, op }
    }
}

/// The most concurrent calls for which an order is searched.
const LANES_MAX: usize = 64;

/// The possible states of an object: few, and distinct.
pub(crate) type States<S> = SmallVec<[S; 2]>;

/// Sequences of calls without overlaps, one per thread.
type Lanes<'a, O> = SmallVec<[&'a [Call<O>]; 8]>;

/// The number of finished calls in each lane.
type Done = SmallVec<[u32; 8]>;

/// Calls that no order explains, and the states in which they could have started.
#[derive(Debug)]
pub(crate) struct Unexplained<B: Object> {
    pub(crate) calls: Vec<Call<B::Op>>,
    pub(crate) states: States<B::State>,
}

/// The reason why a history was not accepted.
#[derive(Debug)]
pub(crate) enum Refusal<B: Object> {
    Unexplained(Unexplained<B>),
    /// The search stopped without a result.
    Undecided,
}

/// Follows `lanes` from any of `states` to the states they can lead to. `budget` limits the
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

/// Removes the first segment from the front of the lanes: the calls before the first moment at
/// which none is under way.
fn next_segment<'a, O>(rest: &mut Lanes<'a, O>) -> Option<Lanes<'a, O>> {
    let first = |lane: &&'a [Call<O>]| lane.first().map(|call| (call.start, call.end));
    let mut taken: Done = SmallVec::from_elem(0, rest.len());
    let (_, mut end) = rest.iter().filter_map(first).min()?;
    loop {
        let mut grown = false;
        for (lane, taken) in rest.iter().zip(&mut taken) {
            // This includes the call that ends at `end`, as it begins before.
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

/// The states to which a call leads that overlaps no other call.
fn alone<B: Object>(call: &Call<B::Op>, states: &States<B::State>) -> States<B::State> {
    let mut reached = States::new();
    for after in states.iter().filter_map(|state| B::apply(&call.op, state)) {
        if !reached.contains(&after) {
            reached.push(after);
        }
    }
    reached
}

/// All states to which legal orders of the lanes lead from one of `states`, or `None` if the budget
/// is used up.
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
        // This loop continues as long as there is only one continuation.
        loop {
            *budget = budget.checked_sub(1)?;
            let deadline = take_idle::<B>(lanes, &mut done, &state);
            let next = |lane: usize| lanes[lane].get(done[lane] as usize);
            let mut left = (0..lanes.len()).filter_map(next);
            if left.all(Call::is_pending) && !reached.contains(&state) {
                reached.push(state.clone()); // pending calls may have had no effect
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
            // A stored continuation takes memory in proportion to the number of lanes.
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

/// Takes all calls that may come next and leave the state unchanged. Returns the earliest end of
/// the remaining calls: a call that starts later cannot come next.
///
/// This loses no order. An order that takes such a call later may as well take it now: nothing must
/// come before the call, and it has no effect.
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

/// The configurations visited to shorten a report.
const SHORTENING: u64 = 1 << 21;

/// The calls up to the earliest moment at which no order explains them, without those that changed
/// nothing and are not needed for that.
///
/// Both steps are sound: a prefix of an explained history is explained, and so is an explained
/// history without a call that changed nothing.
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

/// Whether it is certain that no order exists.
pub(crate) fn is_unexplained<B: Object>(
    lanes: &[Vec<Call<B::Op>>],
    states: &States<B::State>,
    budget: &mut u64,
) -> bool {
    let lanes: Lanes<'_, B::Op> = lanes.iter().map(Vec::as_slice).collect();
    let reached = explore::<B>(&lanes, states, budget);
    if reached.is_none() {
        *budget = 0; // further attempts to shorten the report stop
    }
    reached.is_some_and(|reached| reached.is_empty())
}

/// The calls that had started by stamp `cut`, including those that overlap a call which ends there.
/// Those that had not ended are pending.
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
