/* Support vector machines: weighted similarities of a row and the support vectors. */
#include <math.h>
#include <stdatomic.h>
#include <string.h>

#include "ml.h"
#include "pool.h"

#define TASK_NUMBERS 65536 /* differences of a row and a vector that one task computes */
#define ROUNDS 100         /* of coupling, or as many as there are classes */

typedef struct {
    const Svm *svm;
    const Table *table;
    Ending ending; /* without the choice, which is made here */
    int64_t *chosen;
    long each; /* rows of a task */
    _Atomic int failed;
} Job;

/* The similarity of a row with each vector. */
static void compare(const Svm *s, const double *x, long features, double *similar) {
    const long vectors = s->vectors;
    if (!s->support) {
        memcpy(similar, x, (size_t)features * sizeof *similar);
        return;
    }
    memset(similar, 0, (size_t)vectors * sizeof *similar);
    for (long i = 0; i < features; i++) {
        const double *support = s->support + i * vectors;
        if (s->kind == RBF)
            for (long v = 0; v < vectors; v++) similar[v] += (x[i] - support[v]) * (x[i] - support[v]);
        else
            for (long v = 0; v < vectors; v++) similar[v] += x[i] * support[v];
    }
    switch (s->kind) {
        case DOT: return;
        case POLY:
            for (long v = 0; v < vectors; v++) similar[v] = pow(s->gamma * similar[v] + s->coef0, s->degree);
            return;
        case RBF:
            for (long v = 0; v < vectors; v++) similar[v] = exp(-s->gamma * similar[v]);
            return;
        case SIGMOID_LIKE:
            for (long v = 0; v < vectors; v++) similar[v] = tanh(s->gamma * similar[v] + s->coef0);
            return;
    }
}

/* The class with the most wins, the first of several. `wins`: space for one number a class. */
static long most_wins(long classes, const double *outcomes, double *wins) {
    memset(wins, 0, (size_t)classes * sizeof *wins);
    for (long one = 0; one < classes; one++)
        for (long other = one + 1; other < classes; other++, outcomes++) {
            if (*outcomes > 0) wins[one]++;
            if (*outcomes <= 0) wins[other]++;
        }
    long best = 0;
    for (long each = 1; each < classes; each++)
        if (wins[each] > wins[best]) best = each;
    return best;
}

/* Class probabilities of which each pair has the ratio that its outcome tells; see the readable kernel. `space`: for
   2 * classes * classes + classes numbers. */
static void couple(const Svm *s, const double *outcomes, double *p, double *space) {
    const long classes = s->classes;
    double *ratio = space, *q = ratio + classes * classes, *slope = q + classes * classes;
    for (long one = 0, pair = 0; one < classes; one++) {
        ratio[one * classes + one] = 0;
        for (long other = one + 1; other < classes; other++, pair++) {
            const double beats = 1 / (1 + exp(outcomes[pair] * s->slope[pair] + s->shift[pair]));
            const double within = beats < 1e-7 ? 1e-7 : beats > 1 - 1e-7 ? 1 - 1e-7 : beats;
            ratio[one * classes + other] = within;
            ratio[other * classes + one] = 1 - within;
        }
    }
    for (long i = 0; i < classes; i++) {
        p[i] = 1 / (double)classes;
        double diagonal = 0;
        for (long j = 0; j < classes; j++) {
            q[i * classes + j] = -ratio[j * classes + i] * ratio[i * classes + j];
            diagonal += ratio[j * classes + i] * ratio[j * classes + i];
        }
        q[i * classes + i] = diagonal;
    }
    for (long round = 0; round < ROUNDS || round < classes; round++) {
        double level = 0, farthest = 0;
        for (long i = 0; i < classes; i++) {
            slope[i] = 0;
            for (long j = 0; j < classes; j++) slope[i] += q[i * classes + j] * p[j];
            level += p[i] * slope[i];
        }
        for (long i = 0; i < classes && farthest == farthest; i++) {
            const double far = fabs(slope[i] - level);
            if (!(far <= farthest)) farthest = far;
        }
        if (!(farthest >= 0.005 / (double)classes)) return;
        for (long k = 0; k < classes; k++) {
            const double diagonal = q[k * classes + k], step = (level - slope[k]) / diagonal;
            p[k] += step;
            level = (level + step * (step * diagonal + 2 * slope[k])) / ((1 + step) * (1 + step));
            for (long i = 0; i < classes; i++) {
                slope[i] = (slope[i] + step * q[k * classes + i]) / (1 + step);
                p[i] /= 1 + step;
            }
        }
    }
}

static void svm_task(void *context, long ticket) {
    Job *job = context;
    const Svm *s = job->svm;
    const Table *t = job->table;
    const long first = ticket * job->each, left = t->rows - first, rows = left < job->each ? left : job->each;
    const long ended = s->slope ? s->classes : s->outcomes;
    const long more = 2 * s->classes * s->classes + 2 * s->classes;
    const long numbers = s->vectors + s->outcomes + more + rows * (ended + t->features);
    double *similar = (double *)scratch(SCRATCH_STEPS, (size_t)numbers * (sizeof(double) / sizeof(float)));
    if (!similar) {
        job->failed = 1;
        return;
    }
    double *outcomes = similar + s->vectors, *space = outcomes + s->outcomes, *scores = space + more;
    const double *x = as_doubles(t, first, rows, scores + rows * ended);
    for (long row = 0; row < rows; row++, x += t->features) {
        compare(s, x, t->features, similar);
        for (long j = 0; j < s->outcomes; j++) outcomes[j] = 0;
        for (long v = 0; v < s->vectors; v++)
            for (long j = 0; j < s->outcomes; j++) outcomes[j] += similar[v] * s->weights[v * s->outcomes + j];
        for (long j = 0; j < s->outcomes; j++) outcomes[j] += s->rho[j];
        if (job->chosen) {
            const long choice = most_wins(s->classes, outcomes, space);
            job->chosen[first + row] = job->ending.labels ? job->ending.labels[choice] : choice;
        }
        if (s->slope)
            couple(s, outcomes, scores + row * ended, space);
        else
            memcpy(scores + row * ended, outcomes, (size_t)ended * sizeof *scores);
    }
    end_scores(&job->ending, scores, first, rows);
}

int run_svm(const Svm *svm, const Table *table, const Ending *ending) {
    Job job = {.svm = svm, .table = table, .ending = *ending, .chosen = ending->choice == NO_CHOICE ? NULL : ending->chosen};
    job.ending.choice = NO_CHOICE;
    const long each = TASK_NUMBERS / (svm->vectors * table->features + 1);
    job.each = each < 1 ? 1 : each > 64 ? 64 : each;
    pool_run(svm_task, &job, (table->rows + job.each - 1) / job.each);
    return job.failed ? -1 : 0;
}
