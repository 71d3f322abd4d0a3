//! Whether two texts say the same, but for ids, times and placeholders.

use std::collections::BTreeMap;

use super::volatile::{Kind, Token, tokens};

/// Which ids stand for which: one for one, both ways.
#[derive(Clone, Debug, Default)]
pub struct Ids {
    to_b: BTreeMap<String, String>,
    to_a: BTreeMap<String, String>,
    order: Vec<(String, String)>,
}

/// Attempts at lengths of placeholders in one text.
const BUDGET: u32 = 50_000;

impl Ids {
    /// The pairs so far, in order of appearance.
    pub fn pairs(&self) -> &[(String, String)] {
        &self.order
    }

    /// What an id of the first transcript is in the second.
    pub fn in_b(&self, id: &str) -> Option<&str> {
        self.to_b.get(id).map(String::as_str)
    }

    /// Notes that `a` stands for `b`; false when either stands for something else already.
    fn bind(&mut self, a: &str, b: &str) -> bool {
        match (self.to_b.get(a), self.to_a.get(b)) {
            (Some(known), _) => known == b,
            (None, Some(known)) => known == a,
            (None, None) => {
                self.to_b.insert(a.to_owned(), b.to_owned());
                self.to_a.insert(b.to_owned(), a.to_owned());
                self.order.push((a.to_owned(), b.to_owned()));
                true
            }
        }
    }

    /// Whether the texts are alike; then the ids in them are bound.
    pub fn alike(&mut self, a: &str, b: &str) -> bool {
        let (left, right) = (tokens(a), tokens(b));
        let holes = |tokens: &[Token<'_>]| tokens.iter().any(|t| t.kind == Kind::Placeholder);
        // A placeholder of `a` takes text of `b`, so the side with placeholders comes first.
        let mut swapped = self.swapped(!holes(&left) && holes(&right));
        let (a, b, left, right) = if swapped.is_some() {
            (b, a, right, left)
        } else {
            (a, b, left, right)
        };
        let ids = swapped.as_mut().unwrap_or(self);
        let mut comparison = Comparison {
            a,
            b,
            left: &left,
            right: &right,
            budget: BUDGET,
        };
        let fits = comparison.from(0, 0, 0, ids);
        if let (true, Some(swapped)) = (fits, swapped) {
            *self = swapped.turned();
        }
        fits
    }

    fn swapped(&self, swap: bool) -> Option<Self> {
        swap.then(|| self.turned())
    }

    fn turned(&self) -> Self {
        Self {
            to_b: self.to_a.clone(),
            to_a: self.to_b.clone(),
            order: self
                .order
                .iter()
                .map(|(a, b)| (b.clone(), a.clone()))
                .collect(),
        }
    }
}

/// Whether two texts would be alike if no id were bound yet.
pub fn compatible(a: &str, b: &str) -> bool {
    a == b || Ids::default().alike(a, b)
}

struct Comparison<'a> {
    a: &'a str,
    b: &'a str,
    left: &'a [Token<'a>],
    right: &'a [Token<'a>],
    budget: u32,
}

impl Comparison<'_> {
    /// Compares from these offsets on; `next` is the first token of `a` that is not yet compared.
    fn from(&mut self, at_a: usize, at_b: usize, next: usize, ids: &mut Ids) -> bool {
        let (mut at_a, mut at_b, mut next) = (at_a, at_b, next);
        loop {
            let token = self.left.get(next).copied();
            let until = token.map_or(self.a.len(), |token| token.start);
            let text = self.a.get(at_a..until).unwrap_or_default();
            if !self
                .b
                .get(at_b..)
                .is_some_and(|rest| rest.starts_with(text))
            {
                return false;
            }
            // Equal text may not hide a token of `b`: an id stands for an id.
            at_b += text.len();
            let Some(token) = token else {
                return at_b == self.b.len();
            };
            if token.kind == Kind::Placeholder {
                return self.placeholder(token, at_b, next, ids);
            }
            let Some(found) = self.token_of_b(at_b) else {
                return false;
            };
            let same_kind = token.kind == found.kind && token.prefix() == found.prefix();
            if !same_kind || (token.kind == Kind::Id && !ids.bind(token.text, found.text)) {
                return false;
            }
            (at_a, at_b, next) = (token.end(), found.end(), next + 1);
        }
    }

    fn token_of_b(&self, start: usize) -> Option<Token<'_>> {
        let index = self.right.partition_point(|token| token.start < start);
        self.right
            .get(index)
            .copied()
            .filter(|token| token.start == start)
    }

    fn placeholder(&mut self, token: Token<'_>, at_b: usize, next: usize, ids: &mut Ids) -> bool {
        let rest = self.b.get(at_b..).unwrap_or_default();
        if let Some(known) = ids.in_b(token.text).map(str::to_owned) {
            return rest.starts_with(&known)
                && self.from(token.end(), at_b + known.len(), next + 1, ids);
        }
        let longest = rest.find(['"', '\n', '\r']).unwrap_or(rest.len());
        for (length, _) in rest.char_indices().skip(1).chain([(rest.len(), ' ')]) {
            if length > longest {
                break;
            }
            let Some(left) = self.budget.checked_sub(1) else {
                return false;
            };
            self.budget = left;
            let mut tried = ids.clone();
            let value = rest.get(..length).unwrap_or_default();
            let bound = token.text == "{{_}}" || tried.bind_placeholder(token.text, value);
            if bound && self.from(token.end(), at_b + length, next + 1, &mut tried) {
                *ids = tried;
                return true;
            }
        }
        false
    }
}

impl Ids {
    /// A placeholder stands for one text; a text may stand for several placeholders.
    fn bind_placeholder(&mut self, name: &str, value: &str) -> bool {
        self.to_b.insert(name.to_owned(), value.to_owned());
        self.order.push((name.to_owned(), value.to_owned()));
        true
    }
}
