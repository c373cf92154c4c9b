//! Signs and bits of numbers, as Python's operators have them.

use crate::{Answer, Argument};

/// `(number > 0) - (number < 0)`.
pub fn sign(number: Argument<'_>) -> Option<Answer> {
    let (is_more, is_less) = match number {
        Argument::Integer(integer) => (integer > 0, integer < 0),
        Argument::Real(real) => (real > 0.0, real < 0.0),
        _ => return None,
    };
    Some(Answer::Integer(i64::from(is_more) - i64::from(is_less)))
}

/// `left ^ right`, of integers alone.
pub fn exclusive_or(left: Argument<'_>, right: Argument<'_>) -> Option<Answer> {
    match (left, right) {
        (Argument::Integer(left), Argument::Integer(right)) => Some(Answer::Integer(left ^ right)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_has_a_sign() {
        for (number, expected) in [
            (Argument::Integer(i64::MIN), -1),
            (Argument::Integer(0), 0),
            (Argument::Integer(i64::MAX), 1),
            (Argument::Real(-5e-324), -1),
            (Argument::Real(-0.0), 0),
            (Argument::Real(f64::INFINITY), 1),
        ] {
            assert_eq!(sign(number), Some(Answer::Integer(expected)));
        }
        assert_eq!(sign(Argument::Text(b"1")), None);
        assert_eq!(sign(Argument::Null), None);
    }

    #[test]
    fn integers_have_bits() {
        let (left, right) = (Argument::Integer(i64::MIN), Argument::Integer(i64::MAX));
        assert_eq!(exclusive_or(left, right), Some(Answer::Integer(-1)));
        assert_eq!(exclusive_or(left, Argument::Real(1.0)), None);
        assert_eq!(exclusive_or(Argument::Blob(b""), right), None);
    }
}
