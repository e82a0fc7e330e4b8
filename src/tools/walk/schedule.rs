//! Runs tasks on several threads and returns their results in order.
//!
//! A task may add further tasks, which take a place among the parts of its result. Threads always take the
//! first waiting task, so that little work is done beyond a limit; a result is kept until everything before
//! it is known. A thread that is far ahead pauses while another works on earlier tasks.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

/// Bytes of results that wait for earlier ones before threads pause.
const MAX_AHEAD_BYTES: usize = 16 << 20;

/// `T` must be ordered like the results.
pub(super) struct Schedule<'a, T, F> {
    state: Mutex<State<'a, T, F>>,
    changed: Condvar,
    next_id: AtomicU64,
}

/// A piece of a task's result.
pub(super) enum Part<F> {
    Found(F),
    /// The place of another task's results.
    Task(u64),
}

/// Receives results one by one, with their size in memory.
pub(super) struct Sink<'a, F> {
    pub bytes: fn(&F) -> usize,
    pub put: &'a mut (dyn FnMut(F) -> ControlFlow<()> + Send),
}

struct State<'a, T, F> {
    waiting: BinaryHeap<Reverse<Queued<T>>>,
    running: usize,
    idle: usize,
    ended: bool,
    /// Results that are not due yet.
    done: HashMap<u64, Vec<Part<F>>>,
    ahead_bytes: usize,
    /// The remaining results of each task, from the first one to the task that is due.
    open: Vec<std::vec::IntoIter<Part<F>>>,
    due: u64,
    sink: Sink<'a, F>,
}

#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Queued<T> {
    task: T,
    id: u64,
}

impl<'a, T: Ord, F> Schedule<'a, T, F> {
    pub fn new(first: T, sink: Sink<'a, F>) -> Self {
        let state = State {
            waiting: BinaryHeap::from([Reverse(Queued { task: first, id: 0 })]),
            running: 0,
            idle: 0,
            ended: false,
            done: HashMap::new(),
            ahead_bytes: 0,
            open: Vec::new(),
            due: 0,
            sink,
        };
        Self { state: Mutex::new(state), changed: Condvar::new(), next_id: AtomicU64::new(1) }
    }

    /// Reserves a place among the parts of a result, for a task that is about to be added.
    pub fn reserve(&self) -> u64 {
        self.next_id.fetch_add(1, Relaxed)
    }

    pub fn add(&self, tasks: impl IntoIterator<Item = (u64, T)>) {
        let mut state = self.lock();
        let queued = tasks.into_iter().map(|(id, task)| Queued { task, id });
        state.waiting.extend(queued.map(Reverse));
        self.wake(&state);
    }

    /// Runs tasks on this thread until none is left, the sink is full, or `stop` returns true. Results of a
    /// task after `stop` are dropped, since they may be incomplete.
    pub fn work(&self, stop: impl Fn() -> bool, mut run: impl FnMut(T) -> Vec<Part<F>>) {
        let _guard = EndOnPanic(self);
        let mut state = self.lock();
        loop {
            let out_of_work = state.waiting.is_empty() && state.running == 0;
            if out_of_work || state.ended || stop() {
                state.ended = true;
                self.wake(&state);
                return;
            }
            // With none running, the first task that waits is the one that is due.
            let ahead = state.ahead_bytes > MAX_AHEAD_BYTES && state.running > 0;
            let next = if ahead { None } else { state.waiting.pop() };
            let Some(Reverse(Queued { task, id })) = next else {
                state.idle += 1;
                state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
                state.idle -= 1;
                continue;
            };
            state.running += 1;
            drop(state);
            let parts = run(task);
            state = self.lock();
            state.running -= 1;
            if !state.ended && !stop() {
                state.finish(id, parts);
            }
            self.wake(&state);
        }
    }

    fn lock(&self) -> MutexGuard<'_, State<'a, T, F>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wake(&self, state: &State<'a, T, F>) {
        if state.idle > 0 {
            self.changed.notify_all();
        }
    }
}

impl<T, F> State<'_, T, F> {
    fn finish(&mut self, id: u64, parts: Vec<Part<F>>) {
        self.ahead_bytes += parts.iter().map(|part| self.bytes(part)).sum::<usize>();
        self.done.insert(id, parts);
        while let Some(parts) = self.done.remove(&self.due) {
            self.open.push(parts.into_iter());
            while let Some(parts) = self.open.last_mut() {
                let Some(part) = parts.next() else {
                    self.open.pop();
                    continue;
                };
                self.ahead_bytes = self.ahead_bytes.saturating_sub(self.bytes(&part));
                match part {
                    Part::Task(id) => {
                        self.due = id;
                        break;
                    }
                    Part::Found(found) => {
                        if (self.sink.put)(found).is_break() {
                            self.ended = true;
                            return;
                        }
                    }
                }
            }
            if self.open.is_empty() {
                self.ended = true;
                return;
            }
        }
    }

    fn bytes(&self, part: &Part<F>) -> usize {
        let more = match part {
            Part::Found(found) => (self.sink.bytes)(found),
            Part::Task(_) => 0,
        };
        size_of::<Part<F>>() + more
    }
}

/// Ends the other threads if this one panics.
struct EndOnPanic<'s, 'a, T: Ord, F>(&'s Schedule<'a, T, F>);

impl<T: Ord, F> Drop for EndOnPanic<'_, '_, T, F> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let mut state = self.0.lock();
            state.ended = true;
            self.0.wake(&state);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Runs a tree of tasks with `width` children each, `depth` deep, and returns the leaves in order.
    fn leaves(width: usize, depth: usize, threads: usize, limit: usize) -> Vec<Vec<usize>> {
        let mut out = Vec::new();
        let mut put = |leaf: Vec<usize>| {
            out.push(leaf);
            match out.len() >= limit {
                true => ControlFlow::Break(()),
                false => ControlFlow::Continue(()),
            }
        };
        let sink = Sink { bytes: |_: &Vec<usize>| 1 << 20, put: &mut put };
        let schedule = Schedule::new(Vec::new(), sink);
        let run = |task: Vec<usize>| -> Vec<Part<Vec<usize>>> {
            if task.len() == depth {
                return vec![Part::Found(task)];
            }
            let child = |at: usize| -> Vec<usize> { task.iter().copied().chain([at]).collect() };
            let ids: Vec<u64> = (0..width).map(|_| schedule.reserve()).collect();
            schedule.add(ids.iter().copied().zip((0..width).map(child)));
            ids.into_iter().map(Part::Task).collect()
        };
        std::thread::scope(|scope| {
            for _ in 0..threads {
                scope.spawn(|| schedule.work(|| false, run));
            }
        });
        drop(schedule);
        out
    }

    #[test]
    fn results_come_in_order_whatever_the_threads_do() {
        for (width, depth, threads) in [(1, 0, 1), (0, 1, 2), (3, 4, 1), (3, 5, 4), (40, 2, 8)] {
            let all = leaves(width, depth, threads, usize::MAX);
            assert_eq!(all.len(), width.pow(depth as u32));
            assert!(all.is_sorted(), "{width} {depth} {threads}");
            let first = leaves(width, depth, threads, 5);
            assert_eq!(first, all[..all.len().min(5)]);
        }
    }

    #[test]
    #[should_panic = "a scoped thread panicked"]
    fn a_panic_in_a_task_ends_all_threads() {
        let sink = Sink { bytes: |_: &()| 0, put: &mut |()| ControlFlow::Continue(()) };
        let schedule = Schedule::new(0, sink);
        std::thread::scope(|scope| {
            for _ in 0..3 {
                scope.spawn(|| schedule.work(|| false, |_| panic!("by intent")));
            }
        });
    }
}
