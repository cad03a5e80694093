/* One pool of threads for everything: a region of tickets that the caller and the workers draw from. */
#ifndef ONNXEVAL_POOL_H
#define ONNXEVAL_POOL_H

#include <stddef.h>

typedef void (*Task)(void *context, long ticket);

/* Runs task(context, 0) .. task(context, tickets - 1), each once, on up to pool_threads() threads, and returns when all
   are done. One region has the pool at a time; a caller that finds it taken, or is itself inside a task, works alone. */
void pool_run(Task task, void *context, long tickets);

/* How many threads work together, the caller included. Fewer take effect at once, more with the next region. */
void pool_set_threads(int count);
int pool_threads(void);

/* Registers what a fork needs. 0, or -1 where the system refuses. */
int pool_open(void);

/* Ends the workers, and waits for them. A later region starts them again. */
void pool_close(void);

/* Memory of the calling thread, 64-byte aligned, kept from call to call and freed with the thread; slots are apart. NULL
   where there is no memory left. What it held before is lost when it grows. */
enum { SCRATCH_PANELS, SCRATCH_TILES, SCRATCH_REGION, SCRATCH_STEPS, SCRATCH_SLOTS };
float *scratch(int slot, size_t floats);

#endif
