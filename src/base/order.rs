//! Sorting where speed does not count.
//!
//! The standard library makes some eight kilobytes of code for each type that is sorted. Here indices are sorted, by
//! one sort for all types.

use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};

/// Sorting by a comparison that is called through a pointer. Items that compare equal keep their order.
pub trait Order<T> {
    fn order_by(&mut self, compare: impl FnMut(&T, &T) -> Ordering);

    fn order(&mut self)
    where
        T: Ord,
    {
        self.order_by(T::cmp);
    }

    fn order_by_key<K: Ord>(&mut self, mut key: impl FnMut(&T) -> K) {
        self.order_by(|one, other| key(one).cmp(&key(other)));
    }
}

impl<T> Order<T> for [T] {
    fn order_by(&mut self, mut compare: impl FnMut(&T, &T) -> Ordering) {
        let mut order = sorted(self.len(), &mut |one, other| compare(&self[one], &self[other]));
        // Each circle of the permutation is closed by swaps along it.
        for start in 0..order.len() {
            let mut at = start;
            loop {
                let from = std::mem::replace(&mut order[at], at);
                if from == start {
                    break;
                }
                self.swap(at, from);
                at = from;
            }
        }
    }
}

/// A map of `pairs`. To collect them would sort them first.
pub fn map<K: Ord, V>(pairs: impl IntoIterator<Item = (K, V)>) -> BTreeMap<K, V> {
    let mut map = BTreeMap::new();
    map.extend(pairs);
    map
}

/// A set of `items`. To collect them would sort them first.
pub fn set<T: Ord>(items: impl IntoIterator<Item = T>) -> BTreeSet<T> {
    let mut set = BTreeSet::new();
    set.extend(items);
    set
}

/// The indices below `count` in their order.
fn sorted(count: usize, compare: &mut dyn FnMut(usize, usize) -> Ordering) -> Vec<usize> {
    let mut order: Vec<usize> = (0..count).collect();
    order.sort_by(|one, other| compare(*one, *other));
    order
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn sorts_as_the_standard_library_does(mut list: Vec<(u8, u8)>) {
            let mut expected = list.clone();
            expected.sort_by_key(|(key, _)| key % 16);
            list.order_by_key(|(key, _)| key % 16);
            prop_assert_eq!(list, expected);
        }
    }
}
