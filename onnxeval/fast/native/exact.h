/* Arithmetic whose rounding is part of the result: what is fused must be, and what is not must not. */
#ifndef ONNXEVAL_EXACT_H
#define ONNXEVAL_EXACT_H

#include "vector.h"

/* a * b + c, rounded once. Where no instruction does that, doubles hold the product exactly. */
INLINE Vector fused(Vector a, Vector b, Vector c) {
#if defined(__AVX512F__)
    return (Vector)_mm512_fmadd_ps((__m512)a, (__m512)b, (__m512)c);
#elif defined(__FMA__)
    return (Vector)_mm256_fmadd_ps((__m256)a, (__m256)b, (__m256)c);
#elif defined(__FP_FAST_FMAF)
    for (int lane = 0; lane < LANES; lane++) a[lane] = __builtin_fmaf(a[lane], b[lane], c[lane]);
    return a;
#else
    for (int lane = 0; lane < LANES; lane++) a[lane] = (float)((double)a[lane] * (double)b[lane] + (double)c[lane]);
    return a;
#endif
}

/* A product that the compiler cannot fuse with a sum around it. */
INLINE Vector rounded(Vector product) {
#if defined(__AVX512F__)
    __asm__("" : "+v"(product));
#elif defined(__SSE2__)
    __asm__("" : "+x"(product));
#elif defined(__aarch64__)
    __asm__("" : "+w"(product));
#else
    __asm__("" : "+m"(product));
#endif
    return product;
}

/* Hyperbolic tangent and logistic function as onnxruntime has them, to the last bit: ops/contrib/_rational.py. */
INLINE Vector rational_tanh(Vector x) {
    x = smaller(all(9.0f), larger(all(-9.0f), x));
    const Vector square = x * x;
    Vector top = fused(square, all(-2.76076847742355e-16f), all(2.00018790482477e-13f));
    top = fused(top, square, all(-8.60467152213735e-11f));
    top = fused(top, square, all(5.12229709037114e-08f));
    top = fused(top, square, all(1.48572235717979e-05f));
    top = fused(top, square, all(6.37261928875436e-04f));
    top = fused(top, square, all(4.89352455891786e-03f));
    Vector bottom = fused(square, all(1.19825839466702e-06f), all(1.18534705686654e-04f));
    bottom = fused(bottom, square, all(2.26843463243900e-03f));
    bottom = fused(bottom, square, all(4.89352518554385e-03f));
    return top * x / bottom;
}

INLINE Vector rational_logistic(Vector x) {
    x = smaller(all(18.0f), larger(all(-18.0f), x));
    const Vector square = x * x;
    Vector top = fused(square, all(4.37031012579801e-11f), all(1.15627324459942e-07f));
    top = fused(top, square, all(6.08574864600143e-05f));
    top = fused(top, square, all(8.51377133304701e-03f));
    top = fused(top, square, all(2.48287947061529e-01f));
    Vector bottom = fused(square, all(6.10247389755681e-13f), all(5.76102136993427e-09f));
    bottom = fused(bottom, square, all(6.29106785017040e-06f));
    bottom = fused(bottom, square, all(1.70198817374094e-03f));
    bottom = fused(bottom, square, all(1.16817656904453e-01f));
    bottom = fused(bottom, square, all(9.93151921023180e-01f));
    return larger(zero(), top * x / bottom + all(0.5f));
}

#endif
