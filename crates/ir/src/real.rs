//! The number types references are written over: `f64` for the oracle, `f32` to see rounding.

/// A real number type with the elementary functions the references use.
pub trait Real:
    Copy
    + PartialOrd
    + Default
    + std::fmt::Debug
    + std::ops::Add<Output = Self>
    + std::ops::Sub<Output = Self>
    + std::ops::Mul<Output = Self>
    + std::ops::Div<Output = Self>
    + std::ops::Neg<Output = Self>
    + std::ops::AddAssign
{
    /// The nearest value.
    fn of(x: f64) -> Self;
    /// As `f64`, exactly.
    fn f64(self) -> f64;
    /// Applies an `f64` function and rounds once.
    #[must_use]
    fn via(self, f: impl Fn(f64) -> f64) -> Self {
        Self::of(f(self.f64()))
    }
    /// Gauss error function, absolute error below 1e-15: Maclaurin series below 2.5, continued fraction above
    /// (Abramowitz and Stegun 7.1.6 and 7.1.14).
    #[must_use]
    fn erf(self) -> Self {
        self.via(erf)
    }
}

impl Real for f64 {
    #[inline]
    fn of(x: f64) -> Self {
        x
    }
    #[inline]
    fn f64(self) -> f64 {
        self
    }
}

impl Real for f32 {
    #[inline]
    fn of(x: f64) -> Self {
        x as f32
    }
    #[inline]
    fn f64(self) -> f64 {
        f64::from(self)
    }
}

fn erf(x: f64) -> f64 {
    let a = x.abs();
    let two_over_sqrt_pi = std::f64::consts::FRAC_2_SQRT_PI;
    let y = if x.is_nan() {
        return x;
    } else if a > 6.0 {
        1.0
    } else if a < 2.5 {
        // erf x = 2/sqrt(pi) exp(-x^2) sum 2^n x^(2n+1) / (2n+1)!!: all terms positive, no cancellation.
        let (mut term, mut sum, mut n) = (a, a, 0.0);
        while term > sum * 1e-18 {
            n += 1.0;
            term *= 2.0 * a * a / (2.0 * n + 1.0);
            sum += term;
        }
        two_over_sqrt_pi * (-a * a).exp() * sum
    } else {
        let mut f = a;
        for k in (1..=60).rev() {
            f = a + f64::from(k) / 2.0 / f;
        }
        1.0 - (-a * a).exp() / (f * std::f64::consts::PI.sqrt())
    };
    y.copysign(x)
}

#[cfg(test)]
mod tests {
    use super::Real;

    #[test]
    fn erf_matches_published_values() {
        // Abramowitz and Stegun table 7.1.
        for (x, y) in [
            (0.5_f64, 0.520_499_877_8),
            (1.0, 0.842_700_792_9),
            (2.0, 0.995_322_265_0),
            (3.0, 0.999_977_909_5),
        ] {
            assert!((Real::erf(x) - y).abs() < 1e-10, "erf({x})");
            assert!((Real::erf(-x) + y).abs() < 1e-10, "erf(-{x})");
        }
        assert!(Real::erf(f64::NAN).is_nan());
        let gap: f64 = Real::erf(2.499_999_9f64) - Real::erf(2.500_000_1f64);
        assert!(gap.abs() < 1e-9);
    }
}
