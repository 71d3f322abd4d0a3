//! Planted faults: which of them are looked for, and what becomes of each.
//!
//! What the faults are is told by the part that is fuzzed; reconnect fuzzing, whose faults break requirements, reports
//! them in its own way, see [`prove`](super::prove).

use schemars::JsonSchema;
use serde::Serialize;

use super::FuzzError;

/// The faults whose name holds a text; all of them without one.
///
/// # Errors
///
/// When there is none, since nothing would be looked for.
pub fn chosen<F>(
    faults: impl IntoIterator<Item = F>,
    name: impl Fn(&F) -> &'static str,
    text: Option<&str>,
) -> Result<Vec<F>, FuzzError> {
    let all = faults.into_iter().collect::<Vec<F>>();
    let names: Vec<&'static str> = all.iter().map(&name).collect();
    let holds = |fault: &F| text.is_none_or(|text| name(fault).contains(text));
    let chosen: Vec<F> = all.into_iter().filter(holds).collect();
    if chosen.is_empty() {
        return Err(FuzzError::NoFault {
            text: text.unwrap_or_default().to_owned(),
            known: names.join(", "),
        });
    }
    Ok(chosen)
}

/// What became of one planted fault.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Sought<R> {
    /// Its name.
    pub name: String,
    /// What is wrong.
    pub about: String,
    /// Cases that were played.
    pub cases: u64,
    /// What was found; absent when nothing was.
    pub found: Option<R>,
}

/// What became of the planted faults.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", bound = "R: Serialize")]
#[schemars(rename = "PlantedFaults", bound = "R: JsonSchema")]
pub struct Proof<R, D> {
    /// Name of the suite.
    pub suite: String,
    /// Seed of the run.
    pub seed: u64,
    /// Each fault.
    pub faults: Vec<Sought<R>>,
    /// The smallest case of each that was found, by the fault's name.
    #[serde(skip)]
    #[schemars(skip)]
    pub details: Vec<(String, D)>,
}

impl<R, D> Proof<R, D> {
    /// Nothing has been looked for yet.
    pub fn new(suite: &str, seed: u64) -> Self {
        Self {
            suite: suite.to_owned(),
            seed,
            faults: Vec::new(),
            details: Vec::new(),
        }
    }

    /// Notes what came of looking for a fault in so many cases: the failures as they are printed, and in detail.
    pub fn add(
        &mut self,
        (name, about): (&str, &str),
        cases: u64,
        failures: Vec<R>,
        details: Vec<D>,
    ) {
        self.faults.push(Sought {
            name: name.to_owned(),
            about: about.to_owned(),
            cases,
            found: failures.into_iter().next(),
        });
        let smallest = details.into_iter().next();
        self.details
            .extend(smallest.map(|failure| (name.to_owned(), failure)));
    }

    /// Whether something was looked for, and each fault was found by a failure that is good enough.
    pub(super) fn all_found(&self, is_good: impl Fn(&R) -> bool) -> bool {
        let found = |fault: &Sought<R>| fault.found.as_ref().is_some_and(&is_good);
        !self.faults.is_empty() && self.faults.iter().all(found)
    }

    /// A line for each fault, the words of `found` for those that were, and the count.
    pub(super) fn lines(&self, found: impl Fn(&R) -> String) -> String {
        let line = |fault: &Sought<R>| match &fault.found {
            Some(failure) => format!(
                "found  {} after {} cases: {}\n",
                fault.name,
                fault.cases,
                found(failure)
            ),
            None => format!(
                "MISSED {}: {}; {} cases\n",
                fault.name, fault.about, fault.cases
            ),
        };
        let lines: String = self.faults.iter().map(line).collect();
        let count = self.faults.iter().filter(|fault| fault.found.is_some());
        format!(
            "{lines}{}, seed {}: {} of {} planted faults found\n",
            self.suite,
            self.seed,
            count.count(),
            self.faults.len()
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FAULTS: [&str; 3] = ["drops-text", "drops-ids", "adds-ids"];

    #[test]
    fn faults_are_chosen_by_a_part_of_their_name_and_never_none() {
        let chosen = |text| chosen(FAULTS, |name| name, text);
        assert_eq!(chosen(None).unwrap(), FAULTS);
        assert_eq!(chosen(Some("drops")).unwrap(), ["drops-text", "drops-ids"]);
        let error = chosen(Some("nosuch")).unwrap_err().to_string();
        let names = "there are drops-text, drops-ids, adds-ids";
        assert_eq!(
            error,
            format!("no planted fault has \"nosuch\" in its name; {names}")
        );
    }

    #[test]
    fn a_proof_holds_only_when_something_was_looked_for_and_all_was_found() {
        let mut proof = Proof::<u32, ()>::new("chat-ws", 1);
        assert!(!proof.all_found(|_| true));
        proof.add(("drops-ids", "ids are lost"), 12, vec![7, 9], vec![(), ()]);
        assert!(proof.all_found(|_| true));
        assert!(!proof.all_found(|found| *found < 7));
        assert_eq!(proof.details.len(), 1);
        proof.add(("adds-ids", "ids are made up"), 40, Vec::new(), Vec::new());
        assert!(!proof.all_found(|_| true));
        insta::assert_snapshot!(proof.lines(|found| format!("by {found}")), @r"
        found  drops-ids after 12 cases: by 7
        MISSED adds-ids: ids are made up; 40 cases
        chat-ws, seed 1: 1 of 2 planted faults found
        ");
    }
}
