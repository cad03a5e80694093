/* Curves of a vector, within a few units in the last place over the whole range, tails and NaN included.

   The coefficients are minimax fits of our own, by weighted least squares in double precision: each comment says of what,
   over what, and the relative error of the fit itself. */
#ifndef ONNXEVAL_CURVES_H
#define ONNXEVAL_CURVES_H

#include <math.h>

#include "exact.h"

INLINE Vector absolute(Vector x) { return (Vector)((Integers)x & 0x7fffffff); }
INLINE Vector with_sign_of(Vector magnitude, Vector x) {
    return (Vector)(((Integers)magnitude & 0x7fffffff) | ((Integers)x & (int32_t)0x80000000));
}

INLINE Vector root(Vector x) {
#if defined(__AVX512F__)
    return (Vector)_mm512_sqrt_ps((__m512)x);
#elif defined(__AVX2__)
    return (Vector)_mm256_sqrt_ps((__m256)x);
#else
    for (int lane = 0; lane < LANES; lane++) x[lane] = sqrtf(x[lane]);
    return x;
#endif
}

/* A whole number n is handed on as n + 1.5 * 2 ** 23, whose last bits count ones. */
#define SHIFT 12582912.0f

/* 2 ** n of whole numbers in -126..127. */
INLINE Vector power_of_two(Vector shifted) { return (Vector)(((Integers)shifted << 23) + (127 << 23)); }

/* y * 2 ** n, subnormal or infinite where that is so large. */
INLINE Vector scaled(Vector y, Vector shifted) {
#if defined(__AVX512F__)
    return (Vector)_mm512_scalef_ps((__m512)y, (__m512)(shifted - all(SHIFT)));
#else
    const Integers n = (Integers)shifted - (Integers)all(SHIFT), half = n >> 1; /* in two steps */
    return y * (Vector)((half + 127) << 23) * (Vector)((n - half + 127) << 23);
#endif
}

/* The same of n in -157..0. */
INLINE Vector scaled_down(Vector y, Vector shifted) {
#if defined(__AVX512F__)
    return scaled(y, shifted);
#else
    return y * (Vector)(((Integers)shifted << 23) + ((127 + 32) << 23)) * all(0x1p-32f);
#endif
}

/* x = n * log(2) + r with |r| <= log(2) / 2. */
INLINE Vector split_exponent(Vector x, Vector *r) {
    Vector shifted = x * all(1.44269504f) + all(SHIFT);
    Vector n = shifted - all(SHIFT);
    *r = x - n * all(0.693145752f) - n * all(1.42860677e-6f);
    return shifted;
}

/* exp(r) - 1 on |r| <= log(2) / 2, 5.2e-11. Its terms are taken in pairs, here and below: a vector waits less. */
INLINE Vector small_expm1(Vector r) {
    const Vector square = r * r;
    const Vector high = all(0.00019790243823081255f) * r + all(0.0013944758102297783f);
    const Vector middle = all(0.008333497680723667f) * r + all(0.04166629537940025f);
    const Vector low = all(0.1666666567325592f) * r + all(0.5f);
    return ((high * square + middle) * square + low) * square + r;
}

INLINE Vector exponential(Vector x) {
    x = smaller(all(89.0f), larger(all(-104.5f), x)); /* beyond: infinity and zero */
    Vector r, n = split_exponent(x, &r);
    return scaled(small_expm1(r) + all(1.0f), n);
}

/* exp(x) of x <= 0. */
INLINE Vector exponential_of_negative(Vector x) {
    Vector r, n = split_exponent(larger(all(-104.5f), x), &r);
    return scaled_down(small_expm1(r) + all(1.0f), n);
}

/* exp(x) - 1 of x <= 0. */
INLINE Vector exponential_minus_one(Vector x) {
    Vector r, power = power_of_two(split_exponent(larger(all(-30.0f), x), &r));
    return small_expm1(r) * power + (power - all(1.0f));
}

INLINE Vector negative_of_size(Vector x) { return (Vector)((Integers)x | (int32_t)0x80000000); }

/* exp(-|x|) decides both sides, so that neither loses digits. */
INLINE Vector logistic(Vector x) {
    Vector e = exponential_of_negative(negative_of_size(x));
    return choose(x < zero(), e, all(1.0f)) / (all(1.0f) + e);
}

/* By exp(2 * |x|) - 1, which loses no digits near zero. */
INLINE Vector hyperbolic_tangent(Vector x) {
    Vector size = smaller(all(10.0f), absolute(x)), r;
    Vector power = power_of_two(split_exponent(size + size, &r));
    Vector grown = small_expm1(r) * power + (power - all(1.0f));
    return with_sign_of(grown / (grown + all(2.0f)), x);
}

INLINE Vector error_function(Vector x) {
    const Vector size = smaller(all(4.0f), absolute(x)), square = size * size;
    Vector near = all(7.02193210599944e-05f); /* erf(x) / x - 1 on |x| <= 1.125, 5.8e-9 of erf(x) / x */
    near = near * square + all(-0.0007748545031063259f);
    near = near * square + all(0.005157502833753824f);
    near = near * square + all(-0.02683710679411888f);
    near = near * square + all(0.11283177137374878f);
    near = near * square + all(-0.37612590193748474f);
    near = near * square + all(0.12837916612625122f);
    Vector far = all(-0.00017949705943465233f); /* (1 - erf(x)) ** (1 / 4) on 1.125 <= x <= 4, 9e-9 of erf(x) */
    far = far * size + all(0.003234204836189747f);
    far = far * size + all(-0.022213440388441086f);
    far = far * size + all(0.06612197309732437f);
    far = far * size + all(-0.050479572266340256f);
    far = far * size + all(-0.0634257048368454f);
    far = far * size + all(-0.30878591537475586f);
    far = far * size + all(1.0054985284805298f);
    far = far * far;
    return with_sign_of(choose(size < all(1.125f), size * near + size, all(1.0f) - far * far), x);
}

/* x * x + c, precise where they all but cancel. */
INLINE Vector square_plus(Vector x, Vector c) {
#if defined(__FMA__) || defined(__FP_FAST_FMAF)
    return fused(x, x, c);
#else
    const Vector coarse = (Vector)((Integers)x & ~0xfff); /* its square is exact */
    return coarse * coarse + c + (x - coarse) * (x + coarse);
#endif
}

/* The normal distribution up to x. */
INLINE Vector normal_distribution(Vector x) {
    /* The tail is exp(-z * z / 2), by z * z = 2 * log(2) * n + s, times a quotient that falls like 1 / z, 6.2e-9. */
    const Vector z = smaller(all(14.5f), absolute(x)), shifted = all(SHIFT) - z * z * all(0.72134752f), n = shifted - all(SHIFT);
    const Vector s = square_plus(z, n * all(2 * 0.693145752f)) + n * all(2 * 1.42860677e-6f), s2 = s * s;
    const Vector e5 = all(-1.5461128e-06f) * s + all(2.17886853e-05f);
    const Vector e3 = all(-0.0002604218f) * s + all(0.00260414346f);
    const Vector e1 = all(-0.0208333321f) * s + all(0.125f);
    const Vector e = ((e5 * s2 + e3) * s2 + e1) * s2 + (all(1.0f) - all(0.5f) * s);
    Vector top = all(0.00414597118f) * z + all(0.0408324480f);
    top = top * z + all(0.183825109f);
    top = top * z + all(0.439089649f);
    top = top * z + all(0.5f);
    Vector bottom = all(0.0103922954f) * z + all(0.102357949f);
    bottom = bottom * z + all(0.471028376f);
    bottom = bottom * z + all(1.20495104f);
    bottom = bottom * z + all(1.67606430f);
    bottom = bottom * z + all(1.0f);
    const Vector tail = scaled_down(e * top / bottom, shifted);
    return choose(x < zero(), tail, all(1.0f) - tail);
}

/* log(1 + exp(x)). */
INLINE Vector soft_plus(Vector x) {
    Vector e = exponential_of_negative(negative_of_size(x));
    /* log(1 + e) / e on 0 <= e <= 1, 4.7e-9 */
    const Vector e2 = e * e, e4 = e2 * e2;
    const Vector p9 = all(-0.0032440086361020803f) * e + all(0.019851384684443474f);
    const Vector p7 = all(-0.056959379464387894f) * e + all(0.10603638738393784f);
    const Vector p5 = all(-0.1530558168888092f) * e + all(0.19675935804843903f);
    const Vector p3 = all(-0.24954132735729218f) * e + all(0.3332996368408203f);
    const Vector p1 = all(-0.4999990165233612f) * e + all(1.0f);
    const Vector p = ((p9 * e2 + p7) * e2 + p5) * e4 + (p3 * e2 + p1);
    return larger(zero(), x) + p * e;
}

/* tanh(log(1 + exp(x))), as a quotient of polynomials in exp(x): no digits are lost for x far below zero. */
INLINE Vector tanh_of_soft_plus(Vector x) {
    Vector e = exponential(smaller(all(30.0f), x));
    Vector top = e * (e + all(2.0f));
    return top / (top + all(2.0f));
}

#endif
