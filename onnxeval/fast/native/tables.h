/* The tiers of this architecture, each better than the one before. setup.py knows what each is compiled with. */
#ifndef ONNXEVAL_TABLES_H
#define ONNXEVAL_TABLES_H

#include "kernels.h"

#if defined(__x86_64__)
#define FOR_EACH_TIER(X) X(v2) X(v3) X(v4) X(v4vnni)
#elif defined(__aarch64__)
#define FOR_EACH_TIER(X) X(neon)
#else
#define FOR_EACH_TIER(X) X(generic)
#endif

#define DECLARE_TABLE(tier) extern const Kernels kernels_##tier;
FOR_EACH_TIER(DECLARE_TABLE)
#undef DECLARE_TABLE

#endif
