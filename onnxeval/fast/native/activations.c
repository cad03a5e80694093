/* Activations over contiguous elements. */
#include "curves.h"
#include "half.h"
#include "tier.h"

#define BLOCK 512

#define LOOP(expression) \
    do { \
        long i = 0; \
        for (; i + LANES <= n; i += LANES) { \
            Vector v = load(x + i); \
            store(y + i, expression); \
        } \
        if (i < n) { \
            Vector v = load_first(x + i, n - i); \
            store_first(y + i, expression, n - i); \
        } \
    } while (0)

#define ROUND(kind) \
    do { \
        uint16_t halves[BLOCK]; \
        for (long i = 0; i < n; i += BLOCK) { \
            narrow_##kind(halves, x + i, MINIMUM(BLOCK, n - i)); \
            widen_##kind(y + i, halves, MINIMUM(BLOCK, n - i)); \
        } \
    } while (0)

void NAMED(activate)(const Activation *how, const float *x, float *y, long n) {
    const Vector alpha = all(how->alpha), beta = all(how->beta), one = all(1.0f), none = zero();
    switch (how->kind) {
        case CLIP:
            if (x != y || how->alpha != -INFINITY || how->beta != INFINITY) LOOP(smaller(beta, larger(alpha, v)));
            return;
        case LEAKY_RELU: LOOP(choose(v < none, alpha * v, v)); return;
        case HARD_SIGMOID: LOOP(smaller(one, larger(none, alpha * v + beta))); return;
        case HARD_SWISH: LOOP(v * smaller(one, larger(none, alpha * v + beta))); return;
        case SIGMOID: LOOP(logistic(v)); return;
        case SILU: LOOP(v * logistic(alpha * v)); return;
        case TANH: LOOP(hyperbolic_tangent(v)); return;
        case GELU: LOOP(v * normal_distribution(v)); return;
        case GELU_TANH:
            /* 0.5 * (1 + tanh(u)) is the logistic function of 2 * u, without the cancellation */
            LOOP(v * logistic(v * (all(1.5957691216f) + all(0.0713548162726f) * (v * v))));
            return;
        case ERF: LOOP(error_function(v)); return;
        case EXP: LOOP(exponential(v)); return;
        case SOFTPLUS: LOOP(soft_plus(v)); return;
        case MISH: LOOP(v * tanh_of_soft_plus(v)); return;
        case ELU: LOOP(choose(v < none, alpha * exponential_minus_one(v), v)); return;
        case ABSOLUTE: LOOP(absolute(v)); return;
        case NEGATIVE: LOOP((Vector)((Integers)v ^ (int32_t)0x80000000)); return;
        case ROOT: LOOP(root(v)); return;
        case RECIPROCAL: LOOP(one / v); return;
        case SQUARE: LOOP(v * v); return;
        case ROUND_FLOAT16: ROUND(float16); return;
        case ROUND_BFLOAT16: ROUND(bfloat16); return;
        case ACTIVATIONS: return;
    }
}
