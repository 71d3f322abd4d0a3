//! Values of script files that have a short form, such as a text in place of a list of texts.
//!
//! Each is read by what stands there, so that an error tells of the form that was meant, with its place and with the
//! names that are known: a choice that tries one form after the other could only say that none fits.

use std::fmt;
use std::marker::PhantomData;

use serde::de::value::{MapAccessDeserializer, SeqAccessDeserializer};
use serde::de::{
    Deserialize, Deserializer, Error, IntoDeserializer, MapAccess, SeqAccess, Unexpected, Visitor,
};

/// A value that is written in several forms. What it has no form for is refused with [`Form::WANTS`].
pub(super) trait Form<'de>: Sized {
    /// The forms, for error texts.
    const WANTS: &'static str;

    fn of_text<E: Error>(text: &str) -> Result<Self, E> {
        Err(E::invalid_type(Unexpected::Str(text), &Self::WANTS))
    }

    fn of_flag<E: Error>(flag: bool) -> Result<Self, E> {
        Err(E::invalid_type(Unexpected::Bool(flag), &Self::WANTS))
    }

    fn of_number<E: Error>(_number: f64, seen: Unexpected<'_>) -> Result<Self, E> {
        Err(E::invalid_type(seen, &Self::WANTS))
    }

    fn of_list<A: SeqAccess<'de>>(_list: A) -> Result<Self, A::Error> {
        Err(A::Error::invalid_type(Unexpected::Seq, &Self::WANTS))
    }

    fn of_map<A: MapAccess<'de>>(_map: A) -> Result<Self, A::Error> {
        Err(A::Error::invalid_type(Unexpected::Map, &Self::WANTS))
    }
}

/// Reads a value in one of its forms.
pub(super) fn read<'de, T: Form<'de>, D: Deserializer<'de>>(from: D) -> Result<T, D::Error> {
    from.deserialize_any(FormVisitor(PhantomData))
}

/// Reads what follows a map's beginning as a value that is written as a map.
pub(super) fn map<'de, T: Deserialize<'de>, A: MapAccess<'de>>(map: A) -> Result<T, A::Error> {
    T::deserialize(MapAccessDeserializer::new(map))
}

/// Reads what follows a list's beginning as a value that is written as a list.
pub(super) fn list<'de, T: Deserialize<'de>, A: SeqAccess<'de>>(list: A) -> Result<T, A::Error> {
    T::deserialize(SeqAccessDeserializer::new(list))
}

struct FormVisitor<T>(PhantomData<T>);

impl<'de, T: Form<'de>> Visitor<'de> for FormVisitor<T> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(T::WANTS)
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<T, E> {
        T::of_text(text)
    }

    fn visit_bool<E: Error>(self, flag: bool) -> Result<T, E> {
        T::of_flag(flag)
    }

    fn visit_u64<E: Error>(self, number: u64) -> Result<T, E> {
        T::of_number(number as f64, Unexpected::Unsigned(number))
    }

    fn visit_i64<E: Error>(self, number: i64) -> Result<T, E> {
        T::of_number(number as f64, Unexpected::Signed(number))
    }

    fn visit_f64<E: Error>(self, number: f64) -> Result<T, E> {
        T::of_number(number, Unexpected::Float(number))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, list: A) -> Result<T, A::Error> {
        T::of_list(list)
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<T, A::Error> {
        T::of_map(map)
    }
}

/// Reads a value, or a list of values.
pub(super) fn one_or_many<'de, T, D>(from: D) -> Result<Vec<T>, D::Error>
where
    T: Deserialize<'de>,
    D: Deserializer<'de>,
{
    from.deserialize_any(OneOrMany(PhantomData))
}

struct OneOrMany<T>(PhantomData<T>);

impl<'de, T: Deserialize<'de>> OneOrMany<T> {
    fn one<E: Error>(value: impl IntoDeserializer<'de, E>) -> Result<Vec<T>, E> {
        T::deserialize(value.into_deserializer()).map(|value| vec![value])
    }
}

impl<'de, T: Deserialize<'de>> Visitor<'de> for OneOrMany<T> {
    type Value = Vec<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value or a list of values")
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Vec<T>, E> {
        Self::one(text)
    }

    fn visit_bool<E: Error>(self, flag: bool) -> Result<Vec<T>, E> {
        Self::one(flag)
    }

    fn visit_u64<E: Error>(self, number: u64) -> Result<Vec<T>, E> {
        Self::one(number)
    }

    fn visit_i64<E: Error>(self, number: i64) -> Result<Vec<T>, E> {
        Self::one(number)
    }

    fn visit_f64<E: Error>(self, number: f64) -> Result<Vec<T>, E> {
        Self::one(number)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, values: A) -> Result<Vec<T>, A::Error> {
        list(values)
    }

    fn visit_map<A: MapAccess<'de>>(self, value: A) -> Result<Vec<T>, A::Error> {
        map(value).map(|value| vec![value])
    }
}
