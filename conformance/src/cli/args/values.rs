//! Values of options, and what is said about wrong ones.

pub(super) fn time_scale(text: &str) -> Result<f64, String> {
    positive(text).ok_or_else(|| "expected a number above 0, such as 0.01".to_owned())
}

pub(super) fn seconds(text: &str) -> Result<f64, String> {
    /// More than a day is no wait that anybody means.
    const MOST: f64 = 86_400.0;
    let seconds = positive(text).filter(|seconds| *seconds <= MOST);
    seconds.ok_or_else(|| "expected seconds above 0, at most 86400".to_owned())
}

pub(super) fn positive(text: &str) -> Option<f64> {
    text.parse()
        .ok()
        .filter(|number: &f64| number.is_finite() && *number > 0.0)
}

pub(super) fn splits(text: &str) -> Result<usize, String> {
    let number = text.parse().ok().filter(|splits| *splits > 0);
    number.ok_or_else(|| "expected a number above 0".to_owned())
}

pub(super) fn jobs(text: &str) -> Result<usize, String> {
    let number = text.parse().ok().filter(|jobs| (1..=256).contains(jobs));
    number.ok_or_else(|| "expected a number from 1 to 256".to_owned())
}
