/* Nested axes, as several arrays that broadcast into one result see them. */
#ifndef ONNXEVAL_NEST_H
#define ONNXEVAL_NEST_H

#include <stddef.h>

#define MOST_AXES 16
#define MOST_NESTED 4

typedef struct {
    int axes;
    long shape[MOST_AXES];
    ptrdiff_t steps[MOST_NESTED][MOST_AXES]; /* bytes from one place to the next; array 0 is the result */
} Nest;

/* The same places in as few axes as may be. With `reorder`, in the order in which array 0 has them in its memory. */
void tidy(Nest *, int arrays, int reorder);

/* The number of places in the first `axes` of them. */
long places(const Nest *, int axes);

/* Where the places of the first `axes` axes lie, one after the other. */
typedef struct {
    long at[MOST_AXES];
    ptrdiff_t offsets[MOST_NESTED];
} Walk;

void walk_to(Walk *, const Nest *, int arrays, int axes, long place);

void walk_on(Walk *, const Nest *, int arrays, int axes);

#endif
