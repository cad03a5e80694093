/* Classic machine learning: trees, linear scores and what becomes of them. All is computed in doubles, but that floats are
   compared with floats; compiled once, as little of it gains from vectors. */
#ifndef ONNXEVAL_ML_H
#define ONNXEVAL_ML_H

#include <stdint.h>

/* Rows of numbers: floats, doubles, 32-bit or 64-bit integers. */
typedef enum { FLOATS, DOUBLES, SHORTS, LONGS } Numbers;

typedef struct {
    Numbers numbers;
    long rows, features; /* one feature at least */
    const void *x;
} Table;

/* `rows` rows from `first` on, as doubles; where they are doubles already, those themselves. */
const double *as_doubles(const Table *, long first, long rows, double *space);

/* The numbers are what Python hands over. */
typedef enum { AS_THEY_ARE, SOFTMAX, LOGISTIC, SOFTMAX_ZERO, SIDE /* 1 above 0, else -1 */, TRANSFORMS } Transform;
typedef enum { NO_COMPLEMENT, TO_ONE, TO_ZERO, COMPLEMENTS } Complement;
typedef enum { NO_CHOICE, GREATEST, POSITIVE, MOST_WINS, CHOICES } Choice;

/* What becomes of the scores of a row: plus base; a lone one gets what is missing to 1 or to 0 before it; a class is chosen;
   the transform. */
typedef struct {
    long count;         /* of scores as they are computed; a complement is one more */
    const double *base; /* of each; NULL where there is none */
    Complement complement;
    /* Of the greatest score, the first of several; of the second class where a lone score is positive; of the class that
       wins the most comparisons with others, by support vectors alone. */
    Choice choice;
    Transform transform;
    const int64_t *labels; /* of the classes; NULL for their numbers */
    int64_t *chosen;       /* of each row; NULL without a choice */
    float *floats;         /* of each row: count, and one more with a complement. Either these or the doubles */
    double *doubles;
} Ending;

/* Of `rows` rows from `first` on; the scores are changed. */
void end_scores(const Ending *, double *scores, long first, long rows);

/* A node goes on to next[1] where the feature is at most the threshold, to next[0] where it is above. `feature` is its
   place, times two, plus one where NaN counts as at most. Leaves go on to themselves. */
typedef struct {
    float threshold;
    uint32_t feature;
    int32_t next[2];
} FloatNode;

typedef struct {
    double threshold;
    uint32_t feature;
    int32_t next[2];
} DoubleNode;

typedef struct {
    long nodes, trees, features; /* features: as many as nodes ask for */
    FloatNode *floats; /* of a forest for floats; else the doubles */
    DoubleNode *doubles;
    int32_t *roots;
    /* The votes of node n are first[n] to first[n + 1]. */
    int32_t *first, *targets;
    double *weights;
    long targets_end; /* above all targets */
    int heeds_nan;    /* whether NaN counts as at most anywhere */
} Trees;

typedef enum { SUM, AVERAGE, LEAST, MOST, AGGREGATES } Aggregate;

/* 0, or -1 where there is not enough memory. */
int run_trees(const Trees *, const Table *, Aggregate, const Ending *);

/* scores = x * weights, which are (features, count). */
int run_linear(const double *weights, const Table *, const Ending *);

typedef enum { DOT, POLY, RBF, SIGMOID_LIKE } SimilarityKind;

typedef struct {
    SimilarityKind kind;
    double gamma, coef0, degree;
    long vectors, outcomes, classes; /* an outcome for each two classes; one, and no class, of a regression */
    const double *support;           /* (features, vectors); NULL where the features themselves are what is weighted */
    const double *weights;           /* (vectors, outcomes) */
    const double *rho;               /* (outcomes), added to them */
    const double *slope, *shift;     /* (outcomes), of what makes probabilities of them; NULL where they are scores */
} Svm;

/* A choice is that of the most wins. */
int run_svm(const Svm *, const Table *, const Ending *);

/* (x - offset) * scale, of each feature. */
int run_scaler(const double *offset, const double *scale, const Table *, float *out);

typedef enum { MAX_NORM, L1_NORM, L2_NORM, NORMS } Norm;
int run_normalizer(Norm, const Table *, float *out);

#endif
