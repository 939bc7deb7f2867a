// SPDX-License-Identifier: MIT OR Apache-2.0
//! Assigns the rows of a sector to the writes that reached it.
//!
//! A request's write is logged between its D and C. If several requests for a sector were in flight at once, the times alone do
//! not tell whose write is whose. The rows are right if some assignment makes each of them right. So the largest assignment is
//! searched for (a maximum matching, by augmenting paths).

/// Returns for each row the index of its write, at most one row for each; None if no write is left for it.
///
/// `candidates` has for each row the indices of the writes that were logged in its time, and `fits` says whether a row
/// describes a write without a fault. A row without any such write left gets one that it does not fit.
pub fn assign(
    candidates: &[Vec<usize>],
    writes: usize,
    fits: impl Fn(usize, usize) -> bool,
) -> Vec<Option<usize>> {
    let fitting: Vec<Vec<usize>> = candidates
        .iter()
        .enumerate()
        .map(|(row, those)| those.iter().copied().filter(|&w| fits(row, w)).collect())
        .collect();
    let mut row_of: Vec<Option<usize>> = vec![None; writes];
    for row in 0..candidates.len() {
        augment(&fitting, row, &mut vec![false; writes], &mut row_of);
    }
    let mut write_of = vec![None; candidates.len()];
    for (write, row) in row_of.iter().enumerate() {
        if let Some(row) = row {
            write_of[*row] = Some(write);
        }
    }
    for (row, those) in candidates.iter().enumerate() {
        if write_of[row].is_none() {
            let free = those.iter().copied().find(|&write| row_of[write].is_none());
            write_of[row] = free;
            free.inspect(|&write| row_of[write] = Some(row));
        }
    }
    write_of
}

/// Finds a write for `row`, for which other rows may have to change theirs. Returns false if there is none.
fn augment(
    fitting: &[Vec<usize>],
    row: usize,
    tried: &mut [bool],
    row_of: &mut [Option<usize>],
) -> bool {
    for &write in &fitting[row] {
        if std::mem::replace(&mut tried[write], true) {
            continue;
        }
        let is_free = match row_of[write] {
            Some(other) => augment(fitting, other, tried, row_of),
            None => true,
        };
        if is_free {
            row_of[write] = Some(row);
            return true;
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_give_way_to_others_that_fit_nothing_else() {
        let both = vec![0, 1];
        let rows = [both.clone(), both];
        // The first row fits both writes, the second only the first.
        let found = assign(&rows, 2, |row, write| row == 0 || write == 0);
        assert_eq!(found, [Some(1), Some(0)]);
    }

    #[test]
    fn a_row_that_fits_nothing_is_left_with_what_remains() {
        let both = vec![0, 1];
        let rows = [both.clone(), both.clone(), both];
        let found = assign(&rows, 2, |row, write| (row, write) == (1, 0));
        assert_eq!(found, [Some(1), Some(0), None]);
    }
}
