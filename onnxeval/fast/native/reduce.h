/* Reductions of one element type, for reduce.c: TYPE is what is read and written, SUM what is summed in, NAME its mark,
   PLUS(a, b) the sum and TIMES(a, b) the product of two SUMs, UNORDERED(v) whether one is NaN. */

#define FOR_TYPE(name) JOIN(name, NAME)

INLINE SUM FOR_TYPE(fold)(SUM sum, SUM v, const int what) {
    switch (what) {
        case REDUCE_SQUARES:
        case REDUCE_NORM: return PLUS(sum, TIMES(v, v));
        case REDUCE_ABSOLUTE: return PLUS(sum, v < 0 ? PLUS(0, -v) : v);
        case REDUCE_GREATEST: return v > sum || UNORDERED(v) ? v : sum;
        case REDUCE_LEAST: return v < sum || UNORDERED(v) ? v : sum;
        default: return PLUS(sum, v);
    }
}

/* Two partial results joined. */
INLINE SUM FOR_TYPE(joined)(SUM one, SUM other, const int what) {
    return FOR_TYPE(fold)(one, other, what == REDUCE_GREATEST || what == REDUCE_LEAST ? what : REDUCE_SUM);
}

INLINE SUM FOR_TYPE(begin)(const int what) {
    return what == REDUCE_GREATEST ? (SUM)LOWEST : what == REDUCE_LEAST ? (SUM)HIGHEST : 0;
}

INLINE TYPE FOR_TYPE(end)(SUM sum, long count, const int what) {
    switch (what) {
        case REDUCE_MEAN: return (TYPE)(sum / (SUM)count);
        case REDUCE_NORM: return (TYPE)sqrt((double)sum);
        default: return (TYPE)sum;
    }
}

/* One result from runs of elements, `step` bytes from one to the next. */
INLINE void FOR_TYPE(reduce_runs)(const Job *job, TYPE *y, const char *x, const int what) {
    SUM slots[SLOTS];
    for (int slot = 0; slot < SLOTS; slot++) slots[slot] = FOR_TYPE(begin)(what);
    const long runs = places(&job->reduced, job->reduced.axes);
    Walk w;
    walk_to(&w, &job->reduced, 2, job->reduced.axes, 0);
    for (long run = 0; run < runs; run++, walk_on(&w, &job->reduced, 2, job->reduced.axes)) {
        const char *elements = x + w.offsets[1];
        long i = 0;
        if (job->step == sizeof(TYPE))
            for (; i + SLOTS <= job->run; i += SLOTS)
                for (int slot = 0; slot < SLOTS; slot++)
                    slots[slot] = FOR_TYPE(fold)(slots[slot], (SUM)((const TYPE *)elements)[i + slot], what);
        for (; i < job->run; i++)
            slots[i % SLOTS] = FOR_TYPE(fold)(slots[i % SLOTS], (SUM) * (const TYPE *)(elements + i * job->step), what);
    }
    for (int half = SLOTS / 2; half; half /= 2)
        for (int slot = 0; slot < half; slot++) slots[slot] = FOR_TYPE(joined)(slots[slot], slots[slot + half], what);
    *y = FOR_TYPE(end)(slots[0], job->count, what);
}

/* `n` results beside each other, as their elements are, `step` bytes from one to the next. */
INLINE void FOR_TYPE(reduce_beside)(const Job *job, TYPE *y, const char *x, long n, const int what) {
    SUM sums[BUFFER];
    for (long i = 0; i < n; i++) sums[i] = FOR_TYPE(begin)(what);
    const long rows = places(&job->reduced, job->reduced.axes);
    Walk w;
    walk_to(&w, &job->reduced, 2, job->reduced.axes, 0);
    for (long row = 0; row < rows; row++, walk_on(&w, &job->reduced, 2, job->reduced.axes)) {
        const char *elements = x + w.offsets[1];
        if (job->step == sizeof(TYPE))
            for (long i = 0; i < n; i++) sums[i] = FOR_TYPE(fold)(sums[i], (SUM)((const TYPE *)elements)[i], what);
        else
            for (long i = 0; i < n; i++)
                sums[i] = FOR_TYPE(fold)(sums[i], (SUM) * (const TYPE *)(elements + i * job->step), what);
    }
    for (long i = 0; i < n; i++) y[i] = FOR_TYPE(end)(sums[i], job->count, what);
}

static void FOR_TYPE(reduce)(const Job *job, char *y, const char *x, long n) {
#define CASE(what) \
    case what: \
        if (job->beside) \
            FOR_TYPE(reduce_beside)(job, (TYPE *)y, x, n, what); \
        else \
            FOR_TYPE(reduce_runs)(job, (TYPE *)y, x, what); \
        return;
    switch (job->r->what) { KINDS }
#undef CASE
}

#undef FOR_TYPE
#undef TYPE
#undef SUM
#undef NAME
#undef PLUS
#undef TIMES
#undef UNORDERED
#undef LOWEST
#undef HIGHEST
#undef KINDS
