/* What attention, and what turns its queries and keys, are asked to do. */
#ifndef ONNXEVAL_ATTENTION_H
#define ONNXEVAL_ATTENTION_H

#include <stddef.h>
#include <stdint.h>

/* What a query gets for whose weights there is no number: none, as all scores may be minus infinity, or another. Zeros are
   weights, of what may not be finite. */
typedef enum {
    UNSEEN_NAN,
    UNSEEN_ZERO, /* of none */
    HIDDEN_ZERO, /* where all keys are hidden, which adds minus infinity to what may be no number */
    NAN_ZERO,
} Unseen;

/* softmax(scale q k^T, capped, + bias, where the mask is not 0) v, of (batch, heads, queries, ...) and (batch, kv_heads, keys,
   ...): heads in a row share those of k and v. Strides count elements; the last axis of q, v and y lies in order. */
typedef struct {
    long batch, heads, kv_heads, queries, keys, size, value_size;
    const float *q, *k, *v;
    float *y;
    ptrdiff_t q_batch, q_head, q_row, k_batch, k_head, k_row, k_step, v_batch, v_head, v_row, y_batch, y_head, y_row;
    const float *bias; /* NULL where there is none, as the next two */
    ptrdiff_t bias_batch, bias_head, bias_query, bias_key;
    const uint8_t *mask;
    ptrdiff_t mask_batch, mask_head, mask_query, mask_key;
    const int64_t *lengths; /* of each item of the batch: how many keys are no padding, 0 to `keys` */
    const int64_t *starts;  /* of each item: the key that query 0 stands beside, zeros lie behind its length; or NULL */
    /* Query i stands beside key offset + i * step, counted from the end of the keys where there are lengths: it sees so many
       keys to the left and to the right of that, -1 for all. */
    long offset, step, left, right;
    float scale, softcap; /* no cap where that is 0 */
    Unseen unseen;
} Attention;

/* Heads (batch, heads, time, size) whose first `width` features turn in pairs, by angles whose cosines and sines are rows of
   width / 2. Strides count elements; the last axis of x and y lies in order. */
typedef struct {
    long batch, heads, time, size, width;
    int interleaved; /* pairs are neighbours, not one of each half */
    const float *x, *cosines, *sines;
    float *y;
    ptrdiff_t x_batch, x_head, x_row, y_batch, y_head, y_row;
    /* The row of a token is the one at its position plus its time times `advance`, of `rows`; else it is at its own place. */
    const int64_t *positions; /* NULL where there are none */
    ptrdiff_t position_batch, position_time;
    long advance, rows;
    ptrdiff_t angle_batch, angle_time; /* where there are no positions */
} Rotation;

#endif
