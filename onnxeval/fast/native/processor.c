#include "processor.h"

#include <stdint.h>
#include <string.h>

#if defined(__x86_64__)
#include <cpuid.h>

/* Asked of the processor itself: not every compiler comes with a library that __builtin_cpu_supports works with. */
typedef struct {
    uint32_t ecx1, ebx7, ecx7; /* of the leaves 1 and 7 */
    uint64_t saved;            /* which registers the system keeps when it switches threads */
} Processor;

static Processor look(void) {
    Processor seen = {0};
    uint32_t eax, ebx, ecx, edx;
    if (__get_cpuid(1, &eax, &ebx, &ecx, &edx)) seen.ecx1 = ecx;
    if (__get_cpuid_count(7, 0, &eax, &ebx, &ecx, &edx)) {
        seen.ebx7 = ebx;
        seen.ecx7 = ecx;
    }
    if (seen.ecx1 & bit_OSXSAVE) {
        __asm__ __volatile__("xgetbv" : "=a"(eax), "=d"(edx) : "c"(0));
        seen.saved = (uint64_t)edx << 32 | eax;
    }
    return seen;
}

static int has(uint64_t given, uint64_t wanted) { return (given & wanted) == wanted; }

int supports(const char *tier) {
    const uint64_t wide = 0x6, widest = 0xe6; /* XMM and YMM; those, masks and ZMM */
    const Processor p = look();
    if (!has(p.ecx1, bit_SSE4_2 | bit_POPCNT)) return 0;
    if (!strcmp(tier, "v2")) return 1;
    if (!has(p.ecx1, bit_AVX | bit_FMA | bit_F16C) || !has(p.ebx7, bit_AVX2) || !has(p.saved, wide)) return 0;
    if (!strcmp(tier, "v3")) return 1;
    if (!has(p.ebx7, (uint32_t)(bit_AVX512F | bit_AVX512BW | bit_AVX512DQ | bit_AVX512VL)) || !has(p.saved, widest)) return 0;
    if (!strcmp(tier, "v4")) return 1;
    return !strcmp(tier, "v4vnni") && has(p.ecx7, bit_AVX512VNNI);
}
#else
int supports(const char *tier) {
    (void)tier;
    return 1;
}
#endif
