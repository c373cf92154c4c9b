//! Variances and standard deviations as Python's `statistics` computes them: exactly, as a
//! fraction, which is rounded once.
//!
//! Invariant: nothing is rounded before the end. A double is an integer times a power of two, so
//! that integers add up what has the same power, and their squares.

use std::collections::BTreeMap;

use num_bigint::{BigInt, BigUint};

use crate::Answer;

/// Which it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Statistic {
    /// The square root of the variance.
    pub is_deviation: bool,
    /// Of a sample, and not of all there are.
    pub is_of_sample: bool,
}

/// One number of those.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Number {
    /// Without fraction.
    Integer(i64),
    /// Finite, or the answer is left to others.
    Real(f64),
}

/// What has the same power of two.
#[derive(Default)]
struct Part {
    sum: i128,
    squares: u128,
    /// What `squares` had no room for.
    more_squares: BigUint,
}

impl Part {
    fn add(&mut self, number: i64) {
        self.sum += i128::from(number);
        let square = u128::from(number.unsigned_abs()).pow(2);
        match self.squares.checked_add(square) {
            Some(sum) => self.squares = sum,
            None => {
                self.more_squares += self.squares;
                self.squares = square;
            }
        }
    }
}

/// A double as an integer times a power of two.
fn as_integer(real: f64) -> Option<(i64, i32)> {
    if !real.is_finite() {
        return None;
    }
    let bits = real.to_bits();
    let fraction = (bits & ((1 << 52) - 1)) as i64;
    let (magnitude, exponent) = match (bits >> 52 & 0x7ff) as i32 {
        0 => (fraction, -1074),
        exponent => (fraction | 1 << 52, exponent - 1075),
    };
    let number = if real.is_sign_negative() {
        -magnitude
    } else {
        magnitude
    };
    Some((number, exponent))
}

impl Statistic {
    /// The statistic of these numbers; `None` where there is none, or it is too large or too small
    /// for a result as others are.
    pub fn of(self, numbers: &[Number]) -> Option<Answer> {
        let count = numbers.len() as u64;
        let freedom = count.checked_sub(u64::from(self.is_of_sample))?;
        if freedom == 0 {
            return None;
        }
        let mut parts = BTreeMap::<i32, Part>::new();
        let mut are_integers = true;
        for number in numbers {
            let (integer, exponent) = match *number {
                Number::Integer(integer) => (integer, 0),
                Number::Real(real) => {
                    are_integers = false;
                    as_integer(real)?
                }
            };
            parts.entry(exponent).or_default().add(integer);
        }
        let lowest = *parts.first_key_value()?.0;
        let (mut sum, mut squares) = (BigInt::ZERO, BigUint::ZERO);
        for (exponent, part) in parts {
            let shift = (exponent - lowest).unsigned_abs();
            sum += BigInt::from(part.sum) << shift;
            squares += (part.more_squares + part.squares) << (2 * shift);
        }
        // Never negative: the mean of squares is no less than the square of the mean.
        let above = squares * count - sum.magnitude() * sum.magnitude();
        let fraction = Fraction {
            above,
            below: BigUint::from(u128::from(count) * u128::from(freedom)),
            exponent: 2 * i64::from(lowest),
        };
        let integer = match are_integers && !self.is_deviation {
            true => fraction.as_integer(),
            false => None,
        };
        match (integer, self.is_deviation) {
            (Some(integer), _) => i64::try_from(integer).ok().map(Answer::Integer),
            (None, true) => fraction.root().map(Answer::Real),
            (None, false) => fraction.rounded().map(Answer::Real),
        }
    }
}

/// `above / below * 2^exponent`, which is not negative.
struct Fraction {
    above: BigUint,
    below: BigUint,
    exponent: i64,
}

impl Fraction {
    /// Of one whose exponent is nothing, if it is an integer.
    fn as_integer(&self) -> Option<BigUint> {
        let quotient = &self.above / &self.below;
        (self.exponent == 0 && &quotient * &self.below == self.above).then_some(quotient)
    }

    /// `above * 2^shift / below` rounded down, where that has some `bits` or one more, with that
    /// shift; and whether something was lost. The sum of `shift` and the exponent is even.
    fn scaled(&self, bits: i64) -> Option<(u128, i64, bool)> {
        let length = |number: &BigUint| i64::try_from(number.bits()).ok();
        let mut shift = bits - (length(&self.above)? - length(&self.below)?);
        shift -= (self.exponent - shift).rem_euclid(2);
        let distance = shift.unsigned_abs();
        let (above, below) = match shift >= 0 {
            true => (&self.above << distance, self.below.clone()),
            false => (self.above.clone(), &self.below << distance),
        };
        let quotient = &above / &below;
        let is_inexact = &quotient * &below != above;
        Some((u128::try_from(quotient).ok()?, shift, is_inexact))
    }

    /// The nearest double.
    fn rounded(&self) -> Option<f64> {
        if self.above == BigUint::ZERO {
            return Some(0.0);
        }
        let (quotient, shift, is_inexact) = self.scaled(100)?;
        // A last bit that is set where something was lost keeps a tie from being one.
        double(quotient | u128::from(is_inexact), self.exponent - shift)
    }

    /// The double that is nearest to the square root.
    fn root(&self) -> Option<f64> {
        if self.above == BigUint::ZERO {
            return Some(0.0);
        }
        let (square, shift, is_inexact) = self.scaled(126)?;
        let root = square.isqrt();
        let is_inexact = is_inexact || root * root != square;
        double(root | u128::from(is_inexact), (self.exponent - shift) / 2)
    }
}

/// The double nearest to `number * 2^exponent`, if it is neither infinite nor subnormal.
fn double(number: u128, exponent: i64) -> Option<f64> {
    let bits = (number as f64).to_bits();
    let exponent = i64::try_from(bits >> 52).ok()? + exponent;
    let exponent = u64::try_from(exponent).ok()?;
    let is_normal = (1..0x7ff).contains(&exponent);
    is_normal.then(|| f64::from_bits(bits & ((1 << 52) - 1) | exponent << 52))
}

#[cfg(test)]
mod tests {
    use super::*;

    const VARIANCE: Statistic = Statistic {
        is_deviation: false,
        is_of_sample: false,
    };
    const DEVIATION: Statistic = Statistic {
        is_deviation: true,
        is_of_sample: false,
    };

    fn of_sample(statistic: Statistic) -> Statistic {
        Statistic {
            is_of_sample: true,
            ..statistic
        }
    }

    fn integers(numbers: &[i64]) -> Vec<Number> {
        numbers.iter().copied().map(Number::Integer).collect()
    }

    fn reals(numbers: &[f64]) -> Vec<Number> {
        numbers.iter().copied().map(Number::Real).collect()
    }

    #[test]
    fn integers_stay_integers() {
        assert_eq!(VARIANCE.of(&integers(&[1, 3])), Some(Answer::Integer(1)));
        assert_eq!(VARIANCE.of(&integers(&[1, 2])), Some(Answer::Real(0.25)));
        assert_eq!(
            of_sample(VARIANCE).of(&integers(&[1, 3])),
            Some(Answer::Integer(2))
        );
        assert_eq!(VARIANCE.of(&integers(&[7])), Some(Answer::Integer(0)));
        assert_eq!(DEVIATION.of(&integers(&[7])), Some(Answer::Real(0.0)));
        assert_eq!(
            VARIANCE.of(&integers(&[i64::MIN, i64::MAX, i64::MAX])),
            None
        );
        let widest = DEVIATION.of(&integers(&[
            i64::MIN,
            i64::MAX,
            i64::MIN,
            i64::MAX,
            i64::MIN,
            i64::MAX,
        ]));
        assert_eq!(widest, Some(Answer::Real(9_223_372_036_854_775_807.5)));
    }

    #[test]
    fn reals_are_summed_exactly() {
        let numbers = reals(&[1e16, 1.0, -1e16, 1.0, 1e-300, -1e-300]);
        assert_eq!(
            DEVIATION.of(&numbers),
            Some(Answer::Real(5_773_502_691_896_258.0))
        );
        let numbers = reals(&[1.5, 2.5, 2.5, 2.75, 3.25, 4.75]);
        assert_eq!(
            DEVIATION.of(&numbers),
            Some(Answer::Real(0.986_893_273_527_251))
        );
        assert_eq!(
            of_sample(DEVIATION).of(&numbers),
            Some(Answer::Real(1.081_087_415_521_982_7))
        );
        assert_eq!(VARIANCE.of(&reals(&[-0.0, 0.0])), Some(Answer::Real(0.0)));
    }

    #[test]
    fn what_has_no_such_result_has_none() {
        assert_eq!(VARIANCE.of(&[]), None);
        assert_eq!(of_sample(VARIANCE).of(&integers(&[1])), None);
        assert_eq!(VARIANCE.of(&reals(&[1.0, f64::INFINITY])), None);
        assert_eq!(VARIANCE.of(&reals(&[f64::MAX, -f64::MAX])), None);
        assert_eq!(VARIANCE.of(&reals(&[0.0, 1e-200])), None);
    }
}
