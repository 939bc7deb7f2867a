// SPDX-License-Identifier: MIT OR Apache-2.0
//! The values of a column, row by row. In most traces many columns have a single value: nothing was journalled, or nobody
//! asked for causes. Such a column takes no room.

use polars::prelude::{Column, NamedFrom, Scalar, Series};

/// A column that grows.
pub(super) enum Values<T> {
    /// All rows so far have this value.
    Same(T),
    /// A value for each row.
    Each(Vec<T>),
}

impl<T: Default> Default for Values<T> {
    fn default() -> Self {
        Values::Same(T::default())
    }
}

impl<T: Copy + PartialEq> Values<T> {
    /// Appends a value; `rows` is the number of rows before it.
    #[inline]
    pub fn push(&mut self, value: T, rows: usize) {
        match self {
            Values::Each(values) => values.push(value),
            Values::Same(same) if *same == value => {}
            Values::Same(_) => self.part(value, rows),
        }
    }

    #[cold]
    fn part(&mut self, value: T, rows: usize) {
        match self {
            Values::Same(same) if rows > 0 => {
                let mut values = vec![*same; rows];
                values.push(value);
                *self = Values::Each(values);
            }
            _ => *self = Values::Same(value),
        }
    }

    /// Removes and returns the column of `rows` rows. A column whose values once differed is expected to differ again.
    pub fn take(&mut self, name: &str, rows: usize) -> Column
    where
        Scalar: From<T>,
        Series: NamedFrom<Vec<T>, [T]>,
    {
        match self {
            Values::Same(same) => Column::new_scalar(name.into(), Scalar::from(*same), rows),
            Values::Each(values) => {
                let values = std::mem::replace(values, Vec::with_capacity(rows));
                Series::new(name.into(), values).into()
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn taken(values: &mut Values<u32>, all: &[u32]) -> Vec<u32> {
        for (rows, &value) in all.iter().enumerate() {
            values.push(value, rows);
        }
        let column = values.take("_column", all.len());
        assert_eq!(
            (column.name().as_str(), column.len()),
            ("_column", all.len())
        );
        column.u32().unwrap().iter().flatten().collect()
    }

    #[test]
    fn one_value_takes_no_room() {
        let mut values = Values::default();
        assert_eq!(taken(&mut values, &[7; 1000]), [7; 1000]);
        assert!(matches!(values, Values::Same(7)));
        assert_eq!(taken(&mut values, &[0, 0, 1]), [0, 0, 1]);
        assert!(matches!(values, Values::Each(_)));
    }

    proptest! {
        #[test]
        fn what_was_added_is_there(batches in prop::collection::vec(prop::collection::vec(0..3_u32, 0..9), 0..9)) {
            let mut values = Values::default();
            for batch in batches {
                prop_assert_eq!(taken(&mut values, &batch), batch);
            }
        }
    }
}
