/* Words of signed bytes that bytes can be multiplied by although sums of two or four products have 16 bits on the way. What
   is too large for that is left to other words. */
#include <stdlib.h>

#include "integers.h"
#include "tier.h"

#define MOST_TOGETHER 2
#define FEW 4 /* one in so many steps may be left something of, for two words together to be worth it */

typedef int8_t SignedBytes __attribute__((vector_size(LANES * 4)));
typedef int16_t Halves __attribute__((vector_size(LANES * 4)));

INLINE Integers above_zero(Integers v) { return v & (v > 0); }

INLINE int any_of(Integers v) {
    typedef uint64_t Pairs __attribute__((vector_size(LANES * 4)));
    uint64_t any = 0;
    UNROLL for (int i = 0; i < LANES / 2; i++) any |= ((Pairs)v)[i];
    return any != 0;
}

/* Whether 255 times the sum of all bytes of one sign in one half of `count` words has more than 16 bits. */
INLINE int are_large(const Integers *words, const int count) {
    Halves positive = {0}, negative = {0};
    UNROLL for (int i = 0; i < count; i++) {
        const SignedBytes bytes = (SignedBytes)words[i];
        const Halves above = (Halves)(bytes & (bytes > 0)), below = (Halves)(bytes & (bytes < 0));
        positive += (above & 255) + (above >> 8);
        negative += (below << 8 >> 8) + (below >> 8);
    }
    return any_of((Integers)((positive > 128) | (negative < -128)));
}

/* What must be taken from the words lest they are. */
INLINE void find_excess(Integers *excess, const Integers *words, const int count) {
    UNROLL for (int i = 0; i < count; i++) excess[i] = (Integers){0};
    UNROLL for (int half = 0; half < 32; half += 16)
        UNROLL for (int sign = -1; sign <= 1; sign += 2) {
            Integers sizes[2 * MOST_TOGETHER], over = all_words(-128);
            UNROLL for (int i = 0; i < 2 * count; i++) {
                sizes[i] = above_zero((words[i / 2] << (24 - half - i % 2 * 8) >> 24) * sign);
                over += sizes[i];
            }
            UNROLL for (int i = 0; i < 2 * count; i++) {
                const Integers wanted = above_zero(over), taken = wanted - above_zero(wanted - sizes[i]);
                over -= taken;
                excess[i / 2] |= (taken * sign & 255) << (half + i % 2 * 8);
            }
        }
}

INLINE Integers less(Integers words, Integers others) { return (Integers)((SignedBytes)words - (SignedBytes)others); }

/* Room for the words of a new place. NULL where there is no memory. */
static int32_t *add_place(Excess *excess, long place, long width) {
    if (excess->count == excess->room) {
        const long room = 2 * excess->room + 16;
        int32_t *places = realloc(excess->places, (size_t)room * sizeof *places);
        if (places) excess->places = places;
        int32_t *words = places ? realloc(excess->words, (size_t)(room * width) * sizeof *words) : NULL;
        if (!words) return NULL;
        excess->words = words;
        excess->room = room;
    }
    excess->places[excess->count] = (int32_t)place;
    return excess->words + width * excess->count++;
}

/* What was taken at a place: it may itself have to be limited. */
static int put_excess(Excess *excess, long place, Integers words, long width) {
    while (any_of(words)) {
        Integers rest;
        find_excess(&rest, &words, 1);
        int32_t *to = add_place(excess, place, width);
        if (!to) return -1;
        store_first((float *)to, (Vector)less(words, rest), width);
        words = rest;
    }
    return 0;
}

INLINE void load_step(Integers *step, const int32_t *words, long width, long stride, const int count) {
    UNROLL for (int i = 0; i < count; i++) step[i] = (Integers)load_first((const float *)(words + i * stride), width);
}

/* Limits the next `count` places of a unit. */
INLINE int limit_step(Excess *excess, int32_t *words, long place, long width, long stride, const int count) {
    Integers step[MOST_TOGETHER], taken[MOST_TOGETHER];
    load_step(step, words, width, stride, count);
    if (!are_large(step, count)) return 0;
    find_excess(taken, step, count);
    for (int i = 0; i < count; i++) {
        store_first((float *)(words + i * stride), (Vector)less(step[i], taken[i]), width);
        if (put_excess(excess, place + i, taken[i], width)) return -1;
    }
    return 0;
}

/* The words of a unit: `beside` of them lie in turns. */
INLINE int32_t *unit_at(int32_t *words, long units, long unit, long places, long width, long beside, long *stride) {
    const long first = unit / beside * beside;
    *stride = MINIMUM(beside, units - first) * width;
    return words + first * places * width + (unit - first) * width;
}

static int few_are_large(int32_t *words, long units, long places, long width, long beside) {
    long count = 0;
    for (long unit = 0; unit < units; unit++) {
        long stride;
        const int32_t *at = unit_at(words, units, unit, places, width, beside, &stride);
        for (long place = 0; place + 2 <= places; place += 2) {
            Integers step[MOST_TOGETHER];
            load_step(step, at + place * stride, width, stride, 2);
            count += are_large(step, 2);
        }
    }
    return count * FEW <= units * (places / 2);
}

int NAMED(limit_words)(Excess *excess, int32_t *words, long units, long places, long width, long beside) {
    if (excess->together == 2 && !few_are_large(words, units, places, width, beside)) excess->together = 1;
    excess->starts = calloc((size_t)units + 1, sizeof *excess->starts);
    if (!excess->starts) return -1;
    for (long unit = 0; unit < units; unit++) {
        long stride, place = 0;
        int32_t *at = unit_at(words, units, unit, places, width, beside, &stride);
        for (; excess->together == 2 && place + 2 <= places; place += 2)
            if (limit_step(excess, at + place * stride, place, width, stride, 2)) return -1;
        for (; place < places; place++)
            if (limit_step(excess, at + place * stride, place, width, stride, 1)) return -1;
        excess->starts[unit + 1] = excess->count;
    }
    return 0;
}
