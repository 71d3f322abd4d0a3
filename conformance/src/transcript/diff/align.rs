//! Which item of one list belongs to which of the other: the longest common subsequence.

/// A step through both lists.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Step {
    /// Items at these places belong together.
    Both(usize, usize),
    /// Only the first list has this one.
    Left(usize),
    /// Only the second list has this one.
    Right(usize),
}

/// Comparisons of one alignment at most; longer lists are aligned by their places in the middle.
const MOST: usize = 4_000_000;

/// Aligns lists of these lengths; `same` compares an item of each.
pub(super) fn align(
    left: usize,
    right: usize,
    mut same: impl FnMut(usize, usize) -> bool,
) -> Vec<Step> {
    let mut front = 0;
    while front < left.min(right) && same(front, front) {
        front += 1;
    }
    let mut back = 0;
    while back < left.min(right) - front && same(left - back - 1, right - back - 1) {
        back += 1;
    }
    let mut steps: Vec<Step> = (0..front).map(|at| Step::Both(at, at)).collect();
    middle(
        front..left - back,
        front..right - back,
        &mut same,
        &mut steps,
    );
    steps.extend(
        (0..back)
            .rev()
            .map(|at| Step::Both(left - at - 1, right - at - 1)),
    );
    steps
}

fn middle(
    left: std::ops::Range<usize>,
    right: std::ops::Range<usize>,
    same: &mut impl FnMut(usize, usize) -> bool,
    steps: &mut Vec<Step>,
) {
    let (rows, columns) = (left.len(), right.len());
    if rows == 0 || columns == 0 || rows.saturating_mul(columns) > MOST {
        steps.extend(left.map(Step::Left));
        steps.extend(right.map(Step::Right));
        return;
    }
    // `best[row][column]`: length of the longest common subsequence of what is left from there on.
    let width = columns + 1;
    let mut best = vec![0_u32; (rows + 1) * width];
    let mut equal = vec![false; rows * columns];
    for row in (0..rows).rev() {
        for column in (0..columns).rev() {
            let is_same = same(left.start + row, right.start + column);
            equal[row * columns + column] = is_same;
            best[row * width + column] = if is_same {
                best[(row + 1) * width + column + 1] + 1
            } else {
                best[(row + 1) * width + column].max(best[row * width + column + 1])
            };
        }
    }
    let (mut row, mut column) = (0, 0);
    while row < rows || column < columns {
        let (i, j) = (left.start + row, right.start + column);
        if row < rows && column < columns && equal[row * columns + column] {
            steps.push(Step::Both(i, j));
            (row, column) = (row + 1, column + 1);
        } else if row < rows
            && (column == columns
                || best[(row + 1) * width + column] >= best[row * width + column + 1])
        {
            steps.push(Step::Left(i));
            row += 1;
        } else {
            steps.push(Step::Right(j));
            column += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn steps(a: &str, b: &str) -> String {
        let (left, right): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
        align(left.len(), right.len(), |i, j| left[i] == right[j])
            .into_iter()
            .map(|step| match step {
                Step::Both(i, _) => format!("{}", left[i]),
                Step::Left(i) => format!("-{}", left[i]),
                Step::Right(j) => format!("+{}", right[j]),
            })
            .collect()
    }

    #[test]
    fn what_is_common_is_kept_and_the_rest_is_told() {
        assert_eq!(steps("abc", "abc"), "abc");
        assert_eq!(steps("abcd", "abxd"), "ab-c+xd");
        assert_eq!(steps("", "ab"), "+a+b");
        assert_eq!(steps("aXbYc", "abc"), "a-Xb-Yc");
        assert_eq!(steps("ab", "ba"), "-ab+a");
    }
}
