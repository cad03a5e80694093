#include "nest.h"

static ptrdiff_t magnitude(ptrdiff_t step) { return step < 0 ? -step : step; }

static void copy_axis(Nest *n, int arrays, int to, int from) {
    n->shape[to] = n->shape[from];
    for (int i = 0; i < arrays; i++) n->steps[i][to] = n->steps[i][from];
}

static void exchange(Nest *n, int arrays, int one, int other) {
    const long size = n->shape[one];
    n->shape[one] = n->shape[other];
    n->shape[other] = size;
    for (int i = 0; i < arrays; i++) {
        const ptrdiff_t step = n->steps[i][one];
        n->steps[i][one] = n->steps[i][other];
        n->steps[i][other] = step;
    }
}

void tidy(Nest *n, int arrays, int reorder) {
    int kept = 0;
    for (int axis = 0; axis < n->axes; axis++)
        if (n->shape[axis] != 1) copy_axis(n, arrays, kept++, axis);
    if (reorder)
        for (int end = kept; end > 1; end--)
            for (int axis = 1; axis < end; axis++)
                if (magnitude(n->steps[0][axis - 1]) < magnitude(n->steps[0][axis])) exchange(n, arrays, axis - 1, axis);
    int axes = 0;
    for (int axis = 0; axis < kept; axis++) {
        int joins = axes > 0;
        for (int i = 0; joins && i < arrays; i++)
            joins = n->steps[i][axes - 1] == n->steps[i][axis] * n->shape[axis];
        if (joins) {
            n->shape[axes - 1] *= n->shape[axis];
            for (int i = 0; i < arrays; i++) n->steps[i][axes - 1] = n->steps[i][axis];
        } else {
            copy_axis(n, arrays, axes++, axis);
        }
    }
    n->axes = axes;
}

long places(const Nest *n, int axes) {
    long count = 1;
    for (int axis = 0; axis < axes; axis++) count *= n->shape[axis];
    return count;
}

void walk_to(Walk *w, const Nest *n, int arrays, int axes, long place) {
    for (int i = 0; i < arrays; i++) w->offsets[i] = 0;
    for (int axis = axes - 1; axis >= 0; axis--) {
        const long size = n->shape[axis] ? n->shape[axis] : 1; /* there is no place at all where one is 0 */
        w->at[axis] = place % size;
        place /= size;
        for (int i = 0; i < arrays; i++) w->offsets[i] += w->at[axis] * n->steps[i][axis];
    }
}

void walk_on(Walk *w, const Nest *n, int arrays, int axes) {
    for (int axis = axes - 1; axis >= 0; axis--) {
        for (int i = 0; i < arrays; i++) w->offsets[i] += n->steps[i][axis];
        if (++w->at[axis] < n->shape[axis]) return;
        for (int i = 0; i < arrays; i++) w->offsets[i] -= n->steps[i][axis] * n->shape[axis];
        w->at[axis] = 0;
    }
}
