//! The types of the keys of a map.
//!
//! A map refuses keys that Python cannot compare, such as those of different types. All keys have
//! one [`Kind`]. If they are tuples, all elements at one position have one type, too; tuples
//! may have different lengths. The [`Shape`] of a map's tuples records these types. A position gets
//! its type from the first key that has it.

use crate::key::{Part, exact_float};
use std::fmt;

/// A type of keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// `int`.
    Int,
    /// `float`.
    Float,
    /// `str`.
    Str,
    /// `bytes`.
    Bytes,
    /// `tuple`.
    Tuple,
}

impl Kind {
    /// The name of the type in Python.
    pub fn name(self) -> &'static str {
        match self {
            Self::Int => "int",
            Self::Float => "float",
            Self::Str => "str",
            Self::Bytes => "bytes",
            Self::Tuple => "tuple",
        }
    }

    /// The type of a part.
    pub fn of(part: &Part<'_>) -> Self {
        match part {
            Part::Int(_) => Self::Int,
            Part::Float(_) => Self::Float,
            Part::Str(_) => Self::Str,
            Part::Bytes(_) => Self::Bytes,
            Part::Tuple(_) => Self::Tuple,
        }
    }
}

/// The types of the elements of all tuples at one place: the type of each known position, and the
/// shape of the tuples at that position.
#[derive(Clone, Debug, Default)]
pub struct Shape(Vec<(Kind, Shape)>);

/// An element whose type is not that of its position.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mismatch {
    /// The position in the key, and then the positions in its tuples.
    pub path: Vec<usize>,
    /// The type of the position.
    pub wanted: Kind,
    /// The type of the element.
    pub found: Kind,
}

impl fmt::Display for Mismatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let path: Vec<String> = self.path.iter().map(ToString::to_string).collect();
        let (path, wanted, found) = (path.join("."), self.wanted.name(), self.found.name());
        write!(f, "position {path} of the keys of this map is of type {wanted}, not {found}")?;
        if (self.wanted, self.found) == (Kind::Float, Kind::Int) {
            f.write_str(": no float is equal to this integer")?;
        }
        Ok(())
    }
}

impl Shape {
    /// Whether the elements fit. Integers at a position of floats become floats.
    pub fn fit(&self, parts: &mut [Part<'_>]) -> Result<(), Mismatch> {
        for (at, ((wanted, shape), part)) in self.0.iter().zip(parts).enumerate() {
            if let (Kind::Float, Part::Int(number)) = (*wanted, &*part)
                && let Some(float) = exact_float(*number)
            {
                *part = Part::Float(float);
            }
            let found = Kind::of(part);
            if found != *wanted {
                return Err(Mismatch { path: vec![at], wanted: *wanted, found });
            }
            if let Part::Tuple(parts) = part {
                shape.fit(parts).map_err(|mut mismatch| {
                    mismatch.path.insert(0, at);
                    mismatch
                })?;
            }
        }
        Ok(())
    }

    /// Whether all positions of these elements have types.
    pub fn knows(&self, parts: &[Part<'_>]) -> bool {
        let known = |((_, shape), part): (&(Kind, Self), &Part<'_>)| match part {
            Part::Tuple(parts) => shape.knows(parts),
            _ => true,
        };
        parts.len() <= self.0.len() && self.0.iter().zip(parts).all(known)
    }

    /// Fits the elements of an inserted key, and gives the positions that are new the types of
    /// these elements. A mismatch changes nothing.
    pub fn admit(&mut self, parts: &mut [Part<'_>]) -> Result<(), Mismatch> {
        self.fit(parts)?;
        self.learn(parts);
        Ok(())
    }

    /// Adds the positions that another shape knows. A mismatch changes nothing.
    pub fn merge(&mut self, other: &Self) -> Result<(), Mismatch> {
        self.agrees(other)?;
        self.add(other);
        Ok(())
    }

    /// Whether another shape has the same types at the positions that both know.
    pub fn agrees(&self, other: &Self) -> Result<(), Mismatch> {
        for (at, (one, two)) in self.0.iter().zip(&other.0).enumerate() {
            if one.0 != two.0 {
                return Err(Mismatch { path: vec![at], wanted: one.0, found: two.0 });
            }
            one.1.agrees(&two.1).map_err(|mut mismatch| {
                mismatch.path.insert(0, at);
                mismatch
            })?;
        }
        Ok(())
    }

    fn add(&mut self, other: &Self) {
        for (at, (kind, shape)) in other.0.iter().enumerate() {
            if self.0.len() == at {
                self.0.push((*kind, Self::default()));
            }
            self.0[at].1.add(shape);
        }
    }

    fn learn(&mut self, parts: &[Part<'_>]) {
        for (at, part) in parts.iter().enumerate() {
            if self.0.len() == at {
                self.0.push((Kind::of(part), Self::default()));
            }
            if let Part::Tuple(parts) = part {
                self.0[at].1.learn(parts);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(text: &'static str) -> Part<'static> {
        Part::Str(text.as_bytes().into())
    }

    #[test]
    fn a_position_keeps_its_type() {
        let mut shape = Shape::default();
        shape.admit(&mut [text("a"), Part::Tuple(vec![Part::Float(0.5)])]).unwrap();
        shape.admit(&mut [text("a")]).unwrap();
        let mut longer = [text("b"), Part::Tuple(vec![Part::Int(1), Part::Int(7)]), Part::Int(3)];
        shape.admit(&mut longer).unwrap();
        assert_eq!(longer[1], Part::Tuple(vec![Part::Float(1.0), Part::Int(7)]));

        let mut wrong = [text("b"), Part::Tuple(vec![Part::Float(1.0), text("x")])];
        let mismatch = shape.admit(&mut wrong).unwrap_err();
        let message = "position 1.1 of the keys of this map is of type int, not str";
        assert_eq!(mismatch.to_string(), message);
        assert!(shape.fit(&mut [Part::Int(1)]).is_err());
        assert!(shape.knows(&[text("c")]) && shape.knows(&longer));
        assert!(!shape.knows(&[text("c"), Part::Tuple(vec![Part::Int(1); 3])]));
        assert!(!shape.knows(&[const { Part::Int(1) }; 4]));
        assert!(shape.fit(&mut []).is_ok());
    }

    #[test]
    fn a_refused_key_teaches_nothing() {
        let mut shape = Shape::default();
        shape.admit(&mut [Part::Int(1)]).unwrap();
        assert!(shape.admit(&mut [text("a"), text("b")]).is_err());
        shape.admit(&mut [Part::Int(2), Part::Int(2)]).unwrap();
    }

    #[test]
    fn shapes_merge_if_they_agree() {
        let mut shapes = [const { Shape(Vec::new()) }; 3];
        shapes[0].admit(&mut [Part::Int(1)]).unwrap();
        shapes[1].admit(&mut [Part::Int(1), Part::Tuple(vec![text("a")])]).unwrap();
        shapes[2].admit(&mut [Part::Int(1), Part::Tuple(vec![Part::Int(1)])]).unwrap();
        let [mut one, two, three] = shapes;
        one.merge(&two).unwrap();
        assert_eq!(one.merge(&three).unwrap_err().path, [1, 0]);
        assert!(one.fit(&mut [Part::Int(2), text("a")]).is_err());
    }

    #[test]
    fn an_inexact_integer_is_no_float() {
        let mut shape = Shape::default();
        shape.admit(&mut [Part::Float(1.5)]).unwrap();
        let mismatch = shape.fit(&mut [Part::Int((1 << 53) + 1)]).unwrap_err();
        assert!(mismatch.to_string().ends_with("no float is equal to this integer"));
    }
}
