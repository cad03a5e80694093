/* Floats to integers of 8 bits and back, and what joins two tensors of such integers. Every step rounds as it does by itself. */
#include "pool.h"
#include "requantize.h"
#include "tier.h"

#define VECTORS 4
#define TASK 32768 /* elements of a task */

/* The same value, of which the compiler knows no origin: it adds no product to it without rounding it first. */
INLINE Vector rounded(Vector v) {
#if defined(__x86_64__)
    __asm__("" : "+v"(v));
#else
    __asm__("" : "+m"(v));
#endif
    return v;
}

/* Bytes as numbers of 32 bits; `flip` is 0x80 for signed ones, which are 128 higher then. */
INLINE Integers widened(const uint8_t *p, uint8_t flip) {
#if defined(__AVX512F__)
    const Integers v = (Integers)_mm512_cvtepu8_epi32(_mm_loadu_si128((const __m128i *)p));
#elif defined(__AVX2__)
    const Integers v = (Integers)_mm256_cvtepu8_epi32(_mm_loadl_epi64((const __m128i *)p));
#elif defined(__SSE4_1__)
    int32_t four;
    memcpy(&four, p, 4);
    const Integers v = (Integers)_mm_cvtepu8_epi32(_mm_cvtsi32_si128(four));
#else
    Integers v;
    for (int lane = 0; lane < LANES; lane++) v[lane] = p[lane];
#endif
    return v ^ all_words(flip);
}

/* The nearest integers, plus the zero point; 0 of NaN. */
INLINE Integers codes(Vector steps, Integers zero) {
    const Vector bounded = larger(smaller(steps, all(MOST_QUOTIENT)), all(-MOST_QUOTIENT));
#if defined(__AVX512F__)
    const __mmask16 numbers = _mm512_cmp_ps_mask((__m512)steps, (__m512)steps, _CMP_ORD_Q);
    return (Integers)_mm512_maskz_add_epi32(numbers, _mm512_cvtps_epi32((__m512)bounded), (__m512i)zero);
#else
#if defined(__AVX2__)
    const Integers nearest = (Integers)_mm256_cvtps_epi32((__m256)bounded);
#elif defined(__SSE2__)
    const Integers nearest = (Integers)_mm_cvtps_epi32((__m128)bounded);
#else
    Integers nearest;
    for (int lane = 0; lane < LANES; lane++) nearest[lane] = (int32_t)__builtin_rintf(bounded[lane]);
#endif
    return (nearest + zero) & (Integers)(steps == steps);
#endif
}

typedef struct {
    const ByteCasts *c;
    long pieces, each; /* blocks of a row, blocks of a task */
} CastJob;

#define BLOCK 4096 /* elements of a row that are done together */

/* The scale and the zero point of each lane. */
typedef struct {
    Vector scale;
    Integers zero;
} Parameters;

INLINE Parameters parameters(const ByteCasts *c, long row, long column, const int along) {
    if (!along) {
        const long place = c->count > 1 ? row % c->count : 0;
        const int32_t zero = !c->zero ? 0 : c->is_signed ? (int8_t)c->zero[place] : c->zero[place];
        return (Parameters){all(c->scale[place]), all_words(zero)};
    }
    Integers zero = {0};
    if (c->zero) zero = widened(c->zero + column, c->is_signed ? 0x80 : 0) - all_words(c->is_signed ? 128 : 0);
    return (Parameters){load(c->scale + column), zero};
}

/* The parameters of part of a row whose last vectors are no whole ones, with room behind them. */
typedef struct {
    float scale[COLUMNS];
    uint8_t zero[COLUMNS];
} Room;

static ByteCasts with_room(const ByteCasts *c, Room *room, long column, long count) {
    ByteCasts moved = *c;
    for (long j = 0; j < COLUMNS; j++) room->scale[j] = 1;
    memset(room->zero, 0, COLUMNS);
    memcpy(room->scale, c->scale + column, (size_t)count * 4);
    if (c->zero) memcpy(room->zero, c->zero + column, (size_t)count);
    moved.scale = room->scale;
    if (c->zero) moved.zero = room->zero;
    return moved;
}

INLINE void quantize_block(const ByteCasts *c, const float *x, uint8_t *y, long row, long column, const int along) {
    const Requantization how = {.is_signed = c->is_signed};
    Integers v[VECTORS];
    UNROLL for (int j = 0; j < VECTORS; j++) {
        const Parameters p = parameters(c, row, column + j * LANES, along);
        v[j] = codes(load(x + j * LANES) / p.scale, p.zero);
    }
    store_bytes(y, saturated(v, &how, IN_ORDER));
}

INLINE void dequantize_block(const ByteCasts *c, const uint8_t *x, float *y, long row, long column, const int along) {
    const uint8_t flip = c->is_signed ? 0x80 : 0;
    const Integers base = all_words(c->is_signed ? 128 : 0);
    UNROLL for (int j = 0; j < VECTORS; j++) {
        const Parameters p = parameters(c, row, column + j * LANES, along);
        const Integers steps = widened(x + j * LANES, flip) - base - p.zero;
        store(y + j * LANES, __builtin_convertvector(steps, Vector) * p.scale);
    }
}

INLINE void cast_run(const ByteCasts *c, long row, long start, long count, const int along) {
    const ptrdiff_t at = (ptrdiff_t)row * c->length + start;
    long j = 0;
    for (; j + COLUMNS <= count; j += COLUMNS)
        if (c->to_bytes)
            quantize_block(c, c->floats + at + j, c->bytes + at + j, row, start + j, along);
        else
            dequantize_block(c, c->bytes + at + j, c->floats + at + j, row, start + j, along);
    if (j == count) return;
    float floats[COLUMNS] = {0};
    uint8_t bytes[COLUMNS] = {0};
    Room room;
    const ByteCasts last = along ? with_room(c, &room, start + j, count - j) : *c;
    if (c->to_bytes) {
        memcpy(floats, c->floats + at + j, (size_t)(count - j) * 4);
        quantize_block(&last, floats, bytes, row, 0, along);
        memcpy(c->bytes + at + j, bytes, (size_t)(count - j));
    } else {
        memcpy(bytes, c->bytes + at + j, (size_t)(count - j));
        dequantize_block(&last, bytes, floats, row, 0, along);
        memcpy(c->floats + at + j, floats, (size_t)(count - j) * 4);
    }
}

static void cast_task(void *context, long ticket) {
    const CastJob *job = context;
    const ByteCasts *c = job->c;
    for (long block = ticket * job->each; block < MINIMUM(c->rows * job->pieces, (ticket + 1) * job->each); block++) {
        const long row = block / job->pieces, start = block % job->pieces * BLOCK;
        const long count = MINIMUM(BLOCK, c->length - start);
        if (c->along)
            cast_run(c, row, start, count, 1);
        else
            cast_run(c, row, start, count, 0);
    }
}

int NAMED(cast_bytes)(const ByteCasts *c) {
    if (!c->rows || !c->length) return 0;
    CastJob job = {c, CEIL_DIV(c->length, BLOCK), 1};
    job.each = MAXIMUM(1, TASK / MINIMUM(BLOCK, c->length));
    pool_run(cast_task, &job, CEIL_DIV(c->rows * job.pieces, job.each));
    return 0;
}

typedef struct {
    const ByteJoin *c;
    long pieces, each;
} JoinJob;

/* What a part of an operand stands for: of `count` elements, at most COLUMNS. */
INLINE void stand_for(Vector *values, const ByteOperand *o, long row, long column, long count, ptrdiff_t at) {
    const uint8_t flip = o->is_signed ? 0x80 : 0;
    const Integers zero = all_words(o->zero + (o->is_signed ? 128 : 0));
    const Vector scale = all(o->scale);
    uint8_t room[COLUMNS] = {0};
    const uint8_t *p = o->elements + (o->layout == WHOLE ? at : o->layout == ALONG_ROW ? column : o->layout == PER_ROW ? row % o->count : 0);
    if (o->layout == SINGLE || o->layout == PER_ROW) {
        memset(room, *p, COLUMNS);
        p = room;
    } else if (count < COLUMNS) {
        memcpy(room, p, (size_t)count);
        p = room;
    }
    UNROLL for (int j = 0; j < VECTORS; j++)
        values[j] = rounded(__builtin_convertvector(widened(p + j * LANES, flip) - zero, Vector) * scale);
}

static void join_task(void *context, long ticket) {
    const JoinJob *job = context;
    const ByteJoin *c = job->c;
    const Vector scale = all(c->scale);
    const Integers zero = all_words(c->how.zero);
    Requantization how = c->how;
    how.zero = 0;
    for (long block = ticket * job->each; block < MINIMUM(c->rows * job->pieces, (ticket + 1) * job->each); block++) {
        const long row = block / job->pieces, start = block % job->pieces * BLOCK;
        const long end = MINIMUM(c->length, start + BLOCK);
        for (long column = start; column < end; column += COLUMNS) {
            const ptrdiff_t at = (ptrdiff_t)row * c->length + column;
            const long count = MINIMUM(COLUMNS, end - column);
            Vector left[VECTORS], right[VECTORS];
            Integers v[VECTORS];
            stand_for(left, &c->left, row, column, count, at);
            stand_for(right, &c->right, row, column, count, at);
            UNROLL for (int j = 0; j < VECTORS; j++) {
                const Vector value = c->what == ADD ? left[j] + right[j] : left[j] * right[j];
                v[j] = codes(rounded(value) / scale, zero);
            }
            const Bytes bytes = saturated(v, &how, IN_ORDER);
            if (count == COLUMNS)
                store_bytes(c->y + at, bytes);
            else
                memcpy(c->y + at, &bytes, (size_t)count);
        }
    }
}

int NAMED(join_bytes)(const ByteJoin *c) {
    if (!c->rows || !c->length) return 0;
    JoinJob job = {c, CEIL_DIV(c->length, BLOCK), 1};
    job.each = MAXIMUM(1, TASK / MINIMUM(BLOCK, c->length));
    pool_run(join_task, &job, CEIL_DIV(c->rows * job.pieces, job.each));
    return 0;
}

typedef struct {
    const ByteTable *c;
    long pieces, each;
} TableJob;

static void table_task(void *context, long ticket) {
    const TableJob *job = context;
    const ByteTable *c = job->c;
    for (long block = ticket * job->each; block < MINIMUM(c->rows * job->pieces, (ticket + 1) * job->each); block++) {
        const long row = block / job->pieces, start = block % job->pieces * BLOCK;
        const uint8_t *x = c->x + (ptrdiff_t)row * c->length + start;
        uint8_t *y = c->y + (ptrdiff_t)row * c->pitch + start;
        const long count = MINIMUM(BLOCK, c->length - start);
        for (long j = 0; j < count; j++) y[j] = c->table[x[j]];
    }
}

int NAMED(look_up_bytes)(const ByteTable *c) {
    if (!c->rows || !c->length) return 0;
    TableJob job = {c, CEIL_DIV(c->length, BLOCK), 1};
    job.each = MAXIMUM(1, TASK / MINIMUM(BLOCK, c->length));
    pool_run(table_task, &job, CEIL_DIV(c->rows * job.pieces, job.each));
    return 0;
}
