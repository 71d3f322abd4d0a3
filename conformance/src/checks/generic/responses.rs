//! Demands on HTTP responses.

use serde_json::Value;
use turnwire_spec::catalogue::rule::ResponseRule;

use super::{
    Demand, labelled, note, one_of,
    source::{self, Place},
};
use crate::{
    schema,
    transcript::{
        End,
        views::{
            http::{Exchange, query_has, served_at},
            reading::Reading,
            stream::text_of,
        },
    },
    verdict::Findings,
};

/// Judges every response that the rule selects.
///
/// A request that the target left without a response is a fault when no status narrows the selection.
pub(super) fn judge(rule: &ResponseRule, reading: &Reading<'_>) -> Findings {
    let mut findings = Findings::none();
    for exchange in reading
        .exchanges()
        .iter()
        .filter(|exchange| selects(rule, exchange))
    {
        let at = At {
            rule,
            reading,
            exchange,
        };
        match exchange.status() {
            Some(_) => note(&mut findings, at.demands()),
            None => note(&mut findings, [at.unanswered()]),
        }
    }
    findings
}

fn selects(rule: &ResponseRule, exchange: &Exchange<'_>) -> bool {
    let path = exchange.path();
    let method = rule.method.is_empty() || rule.method.contains(&exchange.request.method);
    let path = rule.path.is_empty() || rule.path.iter().any(|template| served_at(template, path));
    let status = rule.when_status.is_empty()
        || exchange
            .status()
            .is_some_and(|status| rule.when_status.contains(&status));
    let query = rule
        .when_query
        .iter()
        .all(|name| query_has(&exchange.request.target, name));
    let request = rule.where_request.as_ref().is_none_or(|wanted| {
        exchange
            .request_json()
            .is_some_and(|body| schema::satisfied(wanted, &body))
    });
    method && path && status && query && request && labelled(rule.label.as_deref(), exchange)
}

/// A response under judgement.
#[derive(Clone, Copy)]
struct At<'a, 't> {
    rule: &'a ResponseRule,
    reading: &'a Reading<'t>,
    exchange: &'a Exchange<'t>,
}

impl At<'_, '_> {
    fn demands(self) -> Vec<Demand> {
        let rule = self.rule;
        let mut demands = Vec::new();
        if !rule.status.is_empty() {
            demands.push(self.status());
        }
        if !rule.content_type.is_empty() {
            demands.push(self.content_type());
        }
        demands.extend(rule.has_header.iter().map(|name| self.has_header(name)));
        demands.extend(
            rule.header
                .iter()
                .map(|(name, wanted)| self.header(name, wanted)),
        );
        let body = self.exchange.json();
        demands.extend(
            rule.body
                .iter()
                .map(|wanted| self.body(wanted, body.as_ref())),
        );
        demands.extend(
            rule.equal
                .iter()
                .map(|(left, right)| self.equal(left, right, body.as_ref())),
        );
        if !rule.no_line.is_empty() {
            demands.push(self.no_line());
        }
        if rule.complete {
            demands.push(self.complete());
        }
        demands
    }

    fn check(self, met: bool, expected: impl Into<String>, got: impl FnOnce() -> String) -> Demand {
        Demand::check(met, || self.exchange.evidence(expected, got()))
    }

    fn unanswered(self) -> Demand {
        if !self.reading.ended_by_target(self.exchange) {
            return Demand::Open;
        }
        let how = match self.exchange.end {
            Some((_, End::Broken(words) | End::NotHttp(words))) => words.clone(),
            Some((_, End::TimedOut)) => "nothing within the harness's patience".to_owned(),
            _ => "no response head".to_owned(),
        };
        self.check(false, "a response", || how)
    }

    fn status(self) -> Demand {
        let status = self.exchange.status().unwrap_or_default();
        let met = self
            .rule
            .status
            .iter()
            .any(|wanted| status_fits(wanted, status));
        let wanted: Vec<_> = self.rule.status.iter().map(text_of).collect();
        self.check(met, format!("status {}", one_of(&wanted)), || {
            format!("status {status}: {}", self.text())
        })
    }

    fn content_type(self) -> Demand {
        let found = self.exchange.media_type().unwrap_or_default();
        let met = self
            .rule
            .content_type
            .iter()
            .any(|wanted| wanted.eq_ignore_ascii_case(&found));
        let expected = format!("content type {}", one_of(&self.rule.content_type));
        self.check(met, expected, || format!("content type {found:?}"))
    }

    fn has_header(self, name: &str) -> Demand {
        self.check(
            self.exchange.header(name).is_some(),
            format!("a header {name}"),
            || self.header_names(),
        )
    }

    fn header(self, name: &str, pattern: &str) -> Demand {
        let Some(value) = self.exchange.header(name) else {
            return Demand::Open;
        };
        let met = schema::text_matches(pattern, value);
        self.check(met, format!("header {name} that matches {pattern}"), || {
            format!("{name}: {value}")
        })
    }

    fn header_names(self) -> String {
        let headers = self
            .exchange
            .head
            .map_or(&[][..], |(_, head)| &head.headers);
        let names: Vec<_> = headers.iter().map(|(name, _)| name.as_str()).collect();
        format!("headers {}", names.join(", "))
    }

    fn body(self, wanted: &Value, body: Option<&Value>) -> Demand {
        let expected = format!("a JSON body by {}", schema::name(wanted));
        match body {
            None if !self.reading.ended_by_target(self.exchange) => Demand::Open,
            None => self.check(false, expected, || format!("no JSON: {}", self.text())),
            Some(body) => match schema::fault(wanted, body) {
                None => Demand::Met,
                Some(fault) => self.check(false, expected, || format!("{fault}\n{}", self.text())),
            },
        }
    }

    fn equal(self, left: &str, right: &str, json: Option<&Value>) -> Demand {
        let place = Place {
            exchange: self.exchange,
            templates: &self.rule.path,
            frame: None,
            json,
        };
        let (Some(a), Some(b)) = (place.value(left), place.value(right)) else {
            return Demand::Open;
        };
        let met = source::equal((left, &a), (right, &b));
        self.check(met, format!("{left} equal to {right}"), || {
            format!("{left} is {a}, {right} is {b}")
        })
    }

    fn no_line(self) -> Demand {
        let text = self.text();
        let fault = text.split(['\n', '\r']).find(|line| {
            self.rule
                .no_line
                .iter()
                .any(|start| line.starts_with(start))
        });
        let expected = format!("no line that begins with {}", one_of(&self.rule.no_line));
        self.check(fault.is_none(), expected, || {
            fault.unwrap_or_default().to_owned()
        })
    }

    fn complete(self) -> Demand {
        if !self.reading.ended_by_target(self.exchange) {
            return Demand::Open;
        }
        let got = || {
            self.exchange
                .end
                .map_or_else(String::new, |(_, end)| format!("{end:?}"))
        };
        self.check(
            self.exchange.complete(),
            "a response that comes to its end",
            got,
        )
    }

    fn text(self) -> String {
        String::from_utf8_lossy(&self.exchange.body()).into_owned()
    }
}

/// Whether a status is the number, or in the class (`4xx`), that a rule asks for.
fn status_fits(wanted: &Value, status: u16) -> bool {
    match wanted {
        Value::Number(number) => number.as_u64() == Some(u64::from(status)),
        Value::String(class) => class.strip_suffix("xx").map_or_else(
            || class.parse() == Ok(status),
            |digit| digit.parse() == Ok(status / 100),
        ),
        _ => false,
    }
}
