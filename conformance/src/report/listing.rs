//! The catalogue, the scenarios, the areas and the suites, as lists.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::layout::{Align, table};

/// What `turnwire list` prints: the list that was asked for; the others are absent.
#[derive(Clone, Debug, Default, Deserialize, Eq, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Listing {
    /// Requirements, in the order of the catalogue.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub requirements: Option<Vec<ListedRequirement>>,
    /// Scenarios, in the order of their suites.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scenarios: Option<Vec<ListedScenario>>,
    /// Areas, in the order of the catalogue.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub areas: Option<Vec<ListedArea>>,
    /// Suites.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub suites: Option<Vec<ListedSuite>>,
}

/// One requirement in a list.
#[derive(Clone, Debug, Deserialize, Eq, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ListedRequirement {
    /// Its id.
    pub id: String,
    /// Its title.
    pub title: String,
    /// Its suite.
    pub suite: String,
    /// Its area.
    pub area: String,
    /// `must`, `should` or `may`.
    pub level: String,
    /// Who has to behave so.
    pub binds: String,
    /// Where it can be seen.
    pub observe: String,
    /// A check judges it.
    pub checked: bool,
    /// The catalogue says why no black-box check can exist.
    pub waived: bool,
}

/// One scenario in a list.
#[derive(Clone, Debug, Deserialize, Eq, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ListedScenario {
    /// Its name.
    pub name: String,
    /// Its suite.
    pub suite: String,
    /// What is done.
    pub about: String,
    /// Capabilities without which it is not run.
    pub needs: Vec<String>,
    /// Variant of the profile that the target is started as.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub variant: Option<String>,
}

/// One area in a list.
#[derive(Clone, Debug, Deserialize, Eq, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ListedArea {
    /// Its name.
    pub name: String,
    /// What its ids begin with.
    pub prefix: String,
    /// How many of its requirements were selected.
    pub requirements: usize,
    /// How many of them a check judges.
    pub checked: usize,
}

/// One suite in a list.
#[derive(Clone, Debug, Deserialize, Eq, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ListedSuite {
    /// Its name.
    pub name: String,
    /// How many of its requirements were selected.
    pub requirements: usize,
    /// How many of them a check judges.
    pub checked: usize,
    /// How many scenarios it has.
    pub scenarios: usize,
    /// The frozen sets of it, by name.
    #[serde(default)]
    pub revisions: Vec<String>,
}

impl Listing {
    /// The list as text in columns.
    pub fn render(&self) -> String {
        use Align::{Left, Right};
        let mut out = String::new();
        if let Some(list) = &self.requirements {
            let rows = list.iter().map(|item| {
                let mark = match (item.checked, item.waived) {
                    (true, _) => "checked",
                    (_, true) => "waived",
                    _ => "open",
                };
                row([&item.id, &item.binds, &item.level, mark, &item.title])
            });
            out.push_str(&columns(
                &[Left; 5],
                ["id", "binds", "level", "state", "title"],
                rows,
            ));
        }
        if let Some(list) = &self.scenarios {
            let rows = list
                .iter()
                .map(|item| row([&item.suite, &item.name, &item.about]));
            out.push_str(&columns(&[Left; 3], ["suite", "scenario", "about"], rows));
        }
        if let Some(list) = &self.areas {
            let rows = list.iter().map(|item| {
                row([
                    &item.name,
                    &item.prefix,
                    &item.requirements.to_string(),
                    &item.checked.to_string(),
                ])
            });
            let heading = ["area", "ids", "requirements", "checked"];
            out.push_str(&columns(&[Left, Left, Right, Right], heading, rows));
        }
        if let Some(list) = &self.suites {
            let rows = list.iter().map(|item| {
                let counts = [item.requirements, item.checked, item.scenarios]
                    .map(|count| count.to_string());
                let revisions = item.revisions.join(", ");
                row([&item.name, &counts[0], &counts[1], &counts[2], &revisions])
            });
            let heading = ["suite", "requirements", "checked", "scenarios", "revisions"];
            out.push_str(&columns(&[Left, Right, Right, Right, Left], heading, rows));
        }
        out
    }
}

fn row<const N: usize>(cells: [&str; N]) -> Vec<String> {
    cells.map(str::to_owned).to_vec()
}

fn columns<const N: usize>(
    aligns: &[Align],
    heading: [&str; N],
    rows: impl Iterator<Item = Vec<String>>,
) -> String {
    let rows: Vec<Vec<String>> = std::iter::once(row(heading)).chain(rows).collect();
    table(aligns, &rows)
}
