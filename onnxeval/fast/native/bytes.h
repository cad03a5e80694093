/* Vectors of 8-bit integers: as many as there are in LANES words. */
#ifndef ONNXEVAL_BYTES_H
#define ONNXEVAL_BYTES_H

#include "integers.h"

#define COLUMNS (4 * LANES)

typedef uint8_t Bytes __attribute__((vector_size(COLUMNS)));
typedef uint8_t LooseBytes __attribute__((vector_size(COLUMNS), aligned(1), may_alias));
INLINE Bytes load_bytes(const uint8_t *p) { return *(const LooseBytes *)p; }
INLINE void store_bytes(uint8_t *p, Bytes v) { *(LooseBytes *)p = v; }
INLINE Bytes all_bytes(uint8_t x) { return x - (Bytes){0}; }

/* Some of the bytes of a vector. */
#if defined(__AVX512F__)
typedef __mmask64 Some;
INLINE Some some_bytes(long first, long last) {
    return (last >= 64 ? ~0ull : (1ull << last) - 1) & ~(first >= 64 ? ~0ull : (1ull << first) - 1);
}
/* Those at p, the others of v. */
INLINE Bytes load_some(Bytes v, Some some, const uint8_t *p) {
    return (Bytes)_mm512_mask_loadu_epi8((__m512i)v, some, p);
}
#else
typedef Bytes Some;
INLINE Some some_bytes(long first, long last) {
    Some some;
    for (long i = 0; i < COLUMNS; i++) some[i] = i >= first && i < last ? 255 : 0;
    return some;
}
INLINE Bytes load_some(Bytes v, Some some, const uint8_t *p) { return (load_bytes(p) & some) | (v & ~some); }
#endif

/* The first of the bytes at p, zero in the others, which are not read. */
INLINE Bytes load_first_bytes(const uint8_t *p, long count) {
#if defined(__AVX512F__)
    return (Bytes)_mm512_maskz_loadu_epi8(some_bytes(0, count), p);
#else
    uint8_t room[COLUMNS] = {0};
    memcpy(room, p, (size_t)count);
    return load_bytes(room);
#endif
}

/* Bytes with some bits turned. */
INLINE void copy_flipped(uint8_t *to, const uint8_t *from, long count, uint8_t flip) {
    typedef uint8_t Sixteen __attribute__((vector_size(16), aligned(1), may_alias));
    const uint64_t flips = 0x0101010101010101u * flip;
    if (count >= 16) {
        const Sixteen sixteen = flip - (Sixteen){0};
        for (long i = 0; i < count - 16; i += 16) *(Sixteen *)(to + i) = *(const Sixteen *)(from + i) ^ sixteen;
        *(Sixteen *)(to + count - 16) = *(const Sixteen *)(from + count - 16) ^ sixteen;
    } else if (count >= 8) {
        uint64_t first, last;
        memcpy(&first, from, 8);
        memcpy(&last, from + count - 8, 8);
        first ^= flips, last ^= flips;
        memcpy(to, &first, 8);
        memcpy(to + count - 8, &last, 8);
    } else if (count >= 4) {
        uint32_t first, last;
        memcpy(&first, from, 4);
        memcpy(&last, from + count - 4, 4);
        first ^= (uint32_t)flips, last ^= (uint32_t)flips;
        memcpy(to, &first, 4);
        memcpy(to + count - 4, &last, 4);
    } else {
        for (long i = 0; i < count; i++) to[i] = from[i] ^ flip;
    }
}

/* Every second of the bytes at `from`, with some bits turned. Nothing behind the last of them is read. */
INLINE void copy_evens(uint8_t *to, const uint8_t *from, long count, uint8_t flip) {
    long i = 0;
#if defined(__AVX512F__)
    for (; i + 32 < count; i += 32) {
        const __m256i evens = _mm512_cvtepi16_epi8(_mm512_loadu_si512(from + 2 * i));
        _mm256_storeu_si256((__m256i *)(to + i), _mm256_xor_si256(evens, _mm256_set1_epi8((char)flip)));
    }
#endif
#if defined(__SSE2__)
    const __m128i low = _mm_set1_epi16(255), flips = _mm_set1_epi8((char)flip);
    if (count > 8) {
        for (; i + 16 < count; i += 16) {
            const __m128i first = _mm_and_si128(_mm_loadu_si128((const __m128i *)(from + 2 * i)), low);
            const __m128i second = _mm_and_si128(_mm_loadu_si128((const __m128i *)(from + 2 * i + 16)), low);
            _mm_storeu_si128((__m128i *)(to + i), _mm_xor_si128(_mm_packus_epi16(first, second), flips));
        }
        for (; i + 8 < count; i += 8) {
            const __m128i evens = _mm_and_si128(_mm_loadu_si128((const __m128i *)(from + 2 * i)), low);
            _mm_storel_epi64((__m128i *)(to + i), _mm_xor_si128(_mm_packus_epi16(evens, evens), flips));
        }
        const __m128i last = _mm_srli_epi16(_mm_loadu_si128((const __m128i *)(from + 2 * count - 17)), 8);
        _mm_storel_epi64((__m128i *)(to + count - 8), _mm_xor_si128(_mm_packus_epi16(last, last), flips));
        return;
    }
#endif
    for (; i < count; i++) to[i] = from[2 * i] ^ flip;
}

#endif
