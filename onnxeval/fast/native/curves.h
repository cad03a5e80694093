/* Curves of a vector, within a few units in the last place over the whole range, tails and NaN included.

   The coefficients are minimax fits of our own, by weighted least squares in double precision: each comment says of what,
   over what, and the relative error of the fit itself. */
#ifndef ONNXEVAL_CURVES_H
#define ONNXEVAL_CURVES_H

#include <math.h>

#include "vector.h"

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

/* 2 ** n of whole numbers in -126..127. */
INLINE Vector power_of_two(Integers n) { return (Vector)((n + 127) << 23); }

/* x = n * log(2) + r with |r| <= log(2) / 2. */
INLINE Integers split_exponent(Vector x, Vector *r) {
    const Vector shift = all(12582912.0f); /* 1.5 * 2 ** 23: its last bit counts ones */
    Vector shifted = x * all(1.44269504f) + shift;
    Vector n = shifted - shift;
    *r = x - n * all(0.693145752f) - n * all(1.42860677e-6f);
    return (Integers)shifted - (Integers)shift;
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
    Vector r;
    Integers n = split_exponent(x, &r);
    Integers half = n >> 1; /* in two steps, for results that are subnormal or just below infinity */
    return (small_expm1(r) + all(1.0f)) * power_of_two(half) * power_of_two(n - half);
}

/* exp(x) of x <= 0. */
INLINE Vector exponential_of_negative(Vector x) {
    Vector r;
    Integers n = split_exponent(larger(all(-104.5f), x), &r);
    return (small_expm1(r) + all(1.0f)) * power_of_two(n + 32) * all(0x1p-32f); /* in two steps, as above */
}

INLINE Vector exponential_minus_one(Vector x) {
    x = smaller(all(89.0f), larger(all(-30.0f), x));
    Vector r;
    Integers n = split_exponent(x, &r);
    Integers half = n >> 1;
    Vector one = power_of_two(half), two = power_of_two(n - half);
    return (small_expm1(r) * one) * two + (one * two - all(1.0f));
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

/* 1 - erf(z) of z >= 0, in its tail too: exp(-z * z) times a function that falls like 1 / z. */
INLINE Vector upper_error_function(Vector z) {
    z = smaller(all(10.5f), z);
    Vector t = all(1.0f) / (all(1.0f) + all(0.35f) * z);
    /* exp(z * z) * (1 - erf(z)) / t on z <= 10.5, 7.6e-9 */
    const Vector t2 = t * t, t4 = t2 * t2;
    const Vector p9 = all(0.039082031697034836f) * t + all(-0.1627320945262909f);
    const Vector p7 = all(0.19068637490272522f) * t + all(-0.04043298214673996f);
    const Vector p5 = all(0.09800675511360168f) * t + all(0.13989733159542084f);
    const Vector p3 = all(0.15340813994407654f) * t + all(0.18740229308605194f);
    const Vector p1 = all(0.19720184803009033f) * t + all(0.19748032093048096f);
    const Vector p = ((p9 * t2 + p7) * t2 + p5) * t4 + (p3 * t2 + p1);
    Vector coarse = (Vector)((Integers)z & ~0xfff); /* its square is exact: rounding z * z would cost the tail digits */
    Vector rest = small_expm1((coarse - z) * (coarse + z));
    return exponential_of_negative(-(coarse * coarse)) * (all(1.0f) + rest) * (p * t);
}

INLINE Vector error_function(Vector x) {
    Vector size = absolute(x), square = x * x;
    Vector p = all(7.853896386222914e-05f); /* erf(x) / x on |x| <= 1, 1.2e-9 */
    p = p * square + all(-0.000801020534709096f);
    p = p * square + all(0.005188329145312309f);
    p = p * square + all(-0.026853812858462334f);
    p = p * square + all(0.1128358542919159f);
    p = p * square + all(-0.3761262595653534f);
    p = p * square + all(0.1283791065216064f); /* one is added to it last, where nothing is rounded but the sum */
    Vector far = all(1.0f) - upper_error_function(size);
    return choose(size < all(1.0f), x * p + x, with_sign_of(far, x));
}

/* The normal distribution up to x. */
INLINE Vector normal_distribution(Vector x) {
    Vector tail = all(0.5f) * upper_error_function(absolute(x) * all(0.707106781f));
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
