//! The suites: which scenarios and which checks belong to which protocol.
//!
//! A [`Suite`] lists its areas in catalogue order; an [`Area`] lists the scenarios and the coded checks of the
//! catalogue area with the same name. A new protocol is one more line in [`SUITES`].

use turnwire_spec::{
    catalogue::{self, Binds, Catalogue, Entry, UnknownSelection},
    llm::Wire,
};

use crate::{
    checks::{self, Check},
    scenarios::{self, Act, Isolation, Scenario},
};

/// A protocol that a target can be checked for.
#[derive(Debug)]
pub struct Suite {
    /// Its entries in the catalogue.
    pub id: catalogue::Suite,
    /// One line for people.
    pub about: &'static str,
    /// A path that any server of this protocol answers, for finding out whether there is one.
    pub probe: &'static str,
    /// Its areas that have scenarios or coded checks.
    pub areas: &'static [Area],
}

/// The scenarios and coded checks of one catalogue area.
#[derive(Debug)]
pub struct Area {
    /// Name in the catalogue, such as `covel-subscription`.
    pub name: &'static str,
    /// Scenarios, list by list.
    pub scenarios: &'static [&'static [Scenario]],
    /// Coded checks, list by list.
    pub checks: &'static [&'static [Check]],
}

/// A suite of an LLM wire: adapters, which call it, and servers that claim to speak it. Which entries belong to
/// which wire is told by the catalogue.
macro_rules! wire {
    ($id:ident, $about:literal, $scenarios:expr, $checks:expr, $requests:expr) => {
        Suite {
            id: catalogue::Suite::$id,
            about: $about,
            probe: "/models",
            areas: &[
                Area {
                    name: "llm-stream",
                    scenarios: &[scenarios::llm_stream::SCENARIOS],
                    checks: &[],
                },
                Area {
                    name: "llm-requests",
                    scenarios: &[scenarios::llm_requests::SCENARIOS],
                    checks: $requests,
                },
                Area {
                    name: "llm-waits",
                    scenarios: &[scenarios::llm_stream::WAITS],
                    checks: &[],
                },
                Area {
                    name: "llm-content",
                    scenarios: &[scenarios::llm_content::SCENARIOS],
                    checks: &[],
                },
                Area {
                    name: "llm-reasoning",
                    scenarios: &[scenarios::llm_content::REASONING],
                    checks: &[],
                },
                Area {
                    name: "llm-provider",
                    scenarios: &[$scenarios],
                    checks: $checks,
                },
            ],
        }
    };
}

/// All suites.
pub static SUITES: &[Suite] = &[
    Suite {
        id: catalogue::Suite::CovelSse,
        about: "the Covel event streams, commands and queries",
        probe: "/api/health",
        areas: &[
            Area {
                name: "covel-overview",
                scenarios: &[scenarios::overview::SCENARIOS],
                checks: &[checks::overview::CHECKS],
            },
            Area {
                name: "covel-subscription",
                scenarios: scenarios::subscription::SCENARIOS,
                checks: checks::subscription::CHECKS,
            },
            Area {
                name: "covel-subscription",
                scenarios: &[],
                checks: crate::fuzz::covel::CHECKS,
            },
            Area {
                name: "covel-queries",
                scenarios: &[scenarios::client::SCENARIOS, scenarios::queries::SCENARIOS],
                checks: &[checks::client::CHECKS, checks::relay::CHECKS],
            },
            Area {
                name: "covel-commands",
                scenarios: &[scenarios::commands::SCENARIOS],
                checks: &[],
            },
            Area {
                name: "covel-events-turn",
                scenarios: &[
                    scenarios::events_turn::SCENARIOS,
                    scenarios::segments::SCENARIOS,
                ],
                checks: &[checks::segments::CHECKS],
            },
            Area {
                name: "covel-control",
                scenarios: &[scenarios::control::SCENARIOS],
                checks: &[],
            },
            Area {
                name: "covel-stop",
                scenarios: &[],
                checks: &[],
            },
            Area {
                name: "covel-trace",
                scenarios: &[scenarios::trace::SCENARIOS, scenarios::trace::COMMANDS],
                checks: &[checks::trace::CHECKS],
            },
            Area {
                name: "covel-bus",
                scenarios: &[],
                checks: &[],
            },
            Area {
                name: "covel-forwarding",
                scenarios: &[],
                checks: &[],
            },
            Area {
                name: "covel-suspend",
                scenarios: scenarios::suspend::SCENARIOS,
                checks: &[],
            },
            Area {
                name: "covel-limits",
                scenarios: &[],
                checks: &[],
            },
            Area {
                name: "covel-rpc",
                scenarios: &[scenarios::plugins::CALLS],
                checks: &[],
            },
            Area {
                name: "covel-plugin-data",
                scenarios: &[scenarios::plugins::DATA],
                checks: &[],
            },
            Area {
                name: "covel-jobs",
                scenarios: &[scenarios::plugins::JOBS],
                checks: &[],
            },
        ],
    },
    Suite {
        id: catalogue::Suite::SessionUpdate,
        about: "session updates over lines of JSON, on a socket or on stdio",
        probe: "initialize",
        areas: &[
            Area {
                name: "session-update",
                scenarios: &[
                    scenarios::session_update::SCENARIOS,
                    scenarios::session_update::client::SCENARIOS,
                ],
                checks: checks::session_update::CHECKS,
            },
            Area {
                name: "session-update",
                scenarios: &[],
                checks: crate::fuzz::session_update::CHECKS,
            },
        ],
    },
    Suite {
        id: catalogue::Suite::Sse,
        about: "readers of event streams, and what producers write",
        probe: "/",
        areas: &[Area {
            name: "sse",
            scenarios: scenarios::sse::SCENARIOS,
            checks: checks::sse::CHECKS,
        }],
    },
    Suite {
        id: catalogue::Suite::ChatWs,
        about: "chats over one WebSocket at /ws",
        probe: "/api/health",
        areas: &[
            Area {
                name: "chat-ws",
                scenarios: scenarios::chat_ws::SCENARIOS,
                checks: checks::chat_ws::CHECKS,
            },
            Area {
                name: "chat-ws",
                scenarios: &[],
                checks: crate::fuzz::chat_ws::CHECKS,
            },
        ],
    },
    wire!(
        OpenaiChat,
        "adapters and servers of OpenAI Chat Completions and of services that imitate it",
        scenarios::provider::CHAT,
        &[checks::provider::COMPATIBLE, checks::provider::CHAT],
        &[checks::llm_requests::ATTEMPTS, checks::llm_requests::CHAT]
    ),
    wire!(
        OpenaiResponses,
        "adapters and servers of OpenAI Responses",
        scenarios::provider::RESPONSES,
        &[checks::provider::RESPONSES],
        &[checks::llm_requests::RESPONSES]
    ),
    wire!(
        AnthropicMessages,
        "adapters and servers of Anthropic Messages",
        scenarios::provider::ANTHROPIC,
        &[checks::provider::ANTHROPIC],
        &[checks::llm_requests::ANTHROPIC]
    ),
    wire!(
        Gemini,
        "adapters and servers of Gemini",
        scenarios::provider::GEMINI,
        &[checks::provider::GEMINI],
        &[checks::llm_requests::GEMINI]
    ),
    wire!(
        GeminiOpenai,
        "adapters and servers of Gemini's OpenAI-compatible endpoint",
        scenarios::provider::COMPATIBLE,
        &[checks::provider::COMPATIBLE],
        &[
            checks::llm_requests::ATTEMPTS,
            checks::llm_requests::COMPATIBLE
        ]
    ),
];

/// No suite has this name.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[error("no suite is named {text:?}{}", hint(nearest.as_deref()))]
pub struct UnknownSuite {
    /// The text that was given.
    pub text: String,
    /// The name that is spelt most like it.
    pub nearest: Option<String>,
}

/// No scenario has this name.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[error("no scenario is named {text:?}{}", hint(nearest.as_deref()))]
pub struct UnknownScenario {
    /// The text that was given.
    pub text: String,
    /// The name that is spelt most like it.
    pub nearest: Option<String>,
}

pub(crate) fn hint(nearest: Option<&str>) -> String {
    nearest
        .map(|name| format!("; did you mean {name:?}?"))
        .unwrap_or_default()
}

/// The suite of this name.
///
/// # Errors
///
/// When there is none, with the nearest name.
pub fn find(name: &str) -> Result<&'static Suite, UnknownSuite> {
    SUITES
        .iter()
        .find(|suite| suite.name() == name)
        .ok_or_else(|| UnknownSuite {
            text: name.to_owned(),
            nearest: nearest(name, SUITES.iter().map(Suite::name)),
        })
}

impl Suite {
    /// Its name, such as `covel-sse`.
    pub fn name(&self) -> &'static str {
        self.id.name()
    }

    /// The LLM wire that it is about, if it is about one.
    pub fn wire(&self) -> Option<Wire> {
        self.name().parse().ok()
    }

    /// Its scenarios, area by area.
    pub fn scenarios(&self) -> impl Iterator<Item = &'static Scenario> {
        self.areas.iter().flat_map(Area::scenarios)
    }

    /// The scenario of this name.
    ///
    /// # Errors
    ///
    /// When there is none, with the nearest name.
    pub fn scenario(&self, name: &str) -> Result<&'static Scenario, UnknownScenario> {
        self.scenarios()
            .find(|scenario| scenario.name == name)
            .ok_or_else(|| UnknownScenario {
                text: name.to_owned(),
                nearest: nearest(name, self.scenarios().map(|scenario| scenario.name)),
            })
    }

    /// The coded checks of a requirement; often none or one.
    pub fn checks(&self, id: &str) -> impl Iterator<Item = &'static Check> {
        let lists = self.areas.iter().flat_map(|area| area.checks);
        lists.copied().flatten().filter(move |check| check.id == id)
    }

    /// Whether it has scenarios in which a client connects to the harness.
    pub fn tests_clients(&self) -> bool {
        self.scenarios()
            .any(|scenario| matches!(scenario.run, Act::Testee(_)))
    }

    /// Whether a requirement is judged: by its rule or by a coded check.
    pub fn judges(&self, entry: &Entry) -> bool {
        entry.rule.is_some() || self.checks(&entry.id).next().is_some()
    }

    /// Another path that every server of it has, for when the first one is not there.
    pub fn probe_again(&self) -> Option<&'static str> {
        (self.id == catalogue::Suite::CovelSse).then_some("/api/sessions")
    }

    /// Its requirements, all or those that bind `binds`, in catalogue order.
    pub fn entries(&self, binds: Option<Binds>) -> impl Iterator<Item = &'static Entry> {
        Catalogue::embedded()
            .suite(self.id)
            .filter(move |entry| binds.is_none_or(|binds| entry.binds == binds))
    }

    /// The requirements of the suite that the texts name (ids, prefixes, areas), all without texts; in catalogue
    /// order, each once. Of those only the ones that bind `binds`.
    ///
    /// # Errors
    ///
    /// When a text names nothing in the catalogue, with the nearest name.
    pub fn select(
        &self,
        texts: &[String],
        binds: Option<Binds>,
    ) -> Result<Vec<&'static Entry>, UnknownSelection> {
        let mut named = Vec::new();
        for text in texts {
            named.extend(Catalogue::embedded().select(text)?);
        }
        let wanted =
            |entry: &&Entry| texts.is_empty() || named.iter().any(|name| name.id == entry.id);
        Ok(self.entries(binds).filter(wanted).collect())
    }

    /// The scenarios that may show a requirement: those that its entry names, or else those of its area.
    pub fn scenarios_of(&self, entry: &Entry) -> Vec<&'static Scenario> {
        if !entry.scenario.is_empty() {
            let named =
                |scenario: &&Scenario| entry.scenario.iter().any(|name| name == scenario.name);
            return self.scenarios().filter(named).collect();
        }
        let area = Catalogue::embedded()
            .area_of(entry)
            .map_or("", |area| area.name.as_str());
        self.areas
            .iter()
            .filter(|found| found.name == area)
            .flat_map(Area::scenarios)
            .collect()
    }
}

impl Area {
    fn scenarios(&self) -> impl Iterator<Item = &'static Scenario> + use<> {
        self.scenarios.iter().copied().flatten()
    }
}

impl Scenario {
    /// Whether it needs the target for itself.
    pub fn alone(&self) -> bool {
        self.isolation == Isolation::Own
    }
}

pub(crate) fn nearest(text: &str, names: impl Iterator<Item = &'static str>) -> Option<String> {
    let likeness = |name: &str| strsim::normalized_damerau_levenshtein(text, name);
    let best = names.max_by(|a, b| likeness(a).total_cmp(&likeness(b)));
    best.filter(|name| likeness(name) >= 0.5).map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn scenario_names_are_unique_in_their_suite() {
        for suite in SUITES {
            let mut names = BTreeSet::new();
            for scenario in suite.scenarios() {
                assert!(
                    names.insert(scenario.name),
                    "{} is there twice",
                    scenario.name
                );
            }
        }
    }

    #[test]
    fn every_coded_check_judges_a_requirement_of_its_suite() {
        for suite in SUITES {
            let ids: BTreeSet<_> = suite.entries(None).map(|entry| entry.id.as_str()).collect();
            for check in suite
                .areas
                .iter()
                .flat_map(|area| area.checks)
                .copied()
                .flatten()
            {
                assert!(
                    ids.contains(check.id),
                    "{} is no requirement of {}",
                    check.id,
                    suite.name()
                );
            }
        }
    }

    #[test]
    fn every_area_is_one_of_the_catalogue() {
        let catalogue: BTreeSet<_> = Catalogue::embedded()
            .areas()
            .iter()
            .map(|area| area.name.as_str())
            .collect();
        for area in SUITES.iter().flat_map(|suite| suite.areas) {
            assert!(catalogue.contains(area.name), "{}", area.name);
        }
    }

    #[test]
    fn every_scenario_that_an_entry_names_exists() {
        for suite in SUITES {
            for entry in suite.entries(None) {
                for name in &entry.scenario {
                    assert!(suite.scenario(name).is_ok(), "{}: {name}", entry.id);
                }
            }
        }
    }

    #[test]
    fn a_misspelt_suite_gets_the_nearest_name() {
        let error = find("covel-see").unwrap_err();
        assert_eq!(
            error.to_string(),
            r#"no suite is named "covel-see"; did you mean "covel-sse"?"#
        );
        assert_eq!(find("zzz").unwrap_err().nearest, None);
    }
}
