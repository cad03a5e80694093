/* The greatest element of each window, and where it is. */
#include "kernels.h"
#include "pool.h"

#define TASK_TAPS 65536

typedef struct {
    const Maxima *m;
    long planes; /* of a task */
} Job;

/* The taps of one axis that lie on the input, for the window that begins at `start`. */
static void taps_on(const WindowAxis *axis, long start, long *first, long *last) {
    const long left = axis->size - 1 - start;
    *first = start < 0 ? (axis->dilation - 1 - start) / axis->dilation : 0;
    *last = left < 0 ? 0 : left / axis->dilation + 1;
    if (*last > axis->taps) *last = axis->taps;
}

static void search_plane(const Maxima *m, long plane) {
    const WindowAxis *z = &m->axes[0], *y = &m->axes[1], *x = &m->axes[2];
    const long size = z->size * y->size * x->size;
    const float *elements = m->x + plane * size;
    long result = plane * z->windows * y->windows * x->windows;
    long first[3], last[3];
    for (long oz = 0; oz < z->windows; oz++) {
        const long start_z = oz * z->stride - z->begin;
        taps_on(z, start_z, &first[0], &last[0]);
        for (long oy = 0; oy < y->windows; oy++) {
            const long start_y = oy * y->stride - y->begin;
            taps_on(y, start_y, &first[1], &last[1]);
            for (long ox = 0; ox < x->windows; ox++, result++) {
                const long start_x = ox * x->stride - x->begin;
                taps_on(x, start_x, &first[2], &last[2]);
                float most = 0;
                long place = -1;
                for (long tz = first[0]; tz < last[0]; tz++)
                    for (long ty = first[1]; ty < last[1]; ty++) {
                        const long line = ((start_z + tz * z->dilation) * y->size + start_y + ty * y->dilation) * x->size + start_x;
                        for (long tx = first[2]; tx < last[2]; tx++) {
                            const float candidate = elements[line + tx * x->dilation];
                            const int is_better = candidate > most || (candidate != candidate && most == most) || place < 0;
                            most = is_better ? candidate : most;
                            place = is_better ? line + tx * x->dilation : place;
                        }
                    }
                m->y[result] = most;
                if (m->by_columns && place >= 0) {
                    const long pz = place / (y->size * x->size), py = place / x->size % y->size, px = place % x->size;
                    place = (px * y->size + py) * z->size + pz;
                }
                m->places[result] = plane * size + place;
            }
        }
    }
}

static void search_task(void *context, long ticket) {
    const Job *job = context;
    const long from = ticket * job->planes, to = from + job->planes < job->m->planes ? from + job->planes : job->m->planes;
    for (long plane = from; plane < to; plane++) search_plane(job->m, plane);
}

void search_maxima(const Maxima *m) {
    double taps = 1;
    for (int axis = 0; axis < 3; axis++) taps *= (double)m->axes[axis].windows * (double)m->axes[axis].taps;
    Job job = {.m = m, .planes = taps > TASK_TAPS ? 1 : (long)(TASK_TAPS / taps)};
    pool_run(search_task, &job, (m->planes + job.planes - 1) / job.planes);
}
