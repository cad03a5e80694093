#include "pool.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <time.h>
#ifdef __linux__
#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>
#endif

#define MOST_THREADS 256
#define SPIN_NANOSECONDS 50000

static struct {
    _Alignas(64) _Atomic uint64_t tickets; /* how many << 32 | the next one */
    _Alignas(64) _Atomic uint32_t done;    /* tickets of this region that are finished */
    _Alignas(64) _Atomic uint32_t region;  /* changes with each: what idle workers wait on */
    _Atomic int sleepers;
    _Atomic bool caller_sleeps;
    _Atomic bool taken, closing;
    _Atomic int wanted; /* threads, the caller included */
    Task task;
    void *context;
    pthread_t workers[MOST_THREADS];
    int started;
} pool = {.wanted = 1};

static pthread_mutex_t starting = PTHREAD_MUTEX_INITIALIZER; /* guards workers and started */
static _Thread_local bool inside;                            /* this thread runs a task */

#ifdef __linux__
static void wait_on(_Atomic uint32_t *word, uint32_t value) {
    syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, value, NULL, NULL, 0);
}

static void wake_all(_Atomic uint32_t *word) { syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, INT32_MAX, NULL, NULL, 0); }
#else
static pthread_mutex_t sleeping = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;

static void wait_on(_Atomic uint32_t *word, uint32_t value) {
    pthread_mutex_lock(&sleeping);
    while (atomic_load(word) == value) pthread_cond_wait(&changed, &sleeping);
    pthread_mutex_unlock(&sleeping);
}

static void wake_all(_Atomic uint32_t *word) {
    (void)word;
    pthread_mutex_lock(&sleeping);
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&sleeping);
}
#endif

static inline void relax(void) {
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ __volatile__("yield");
#endif
}

static uint64_t nanoseconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static inline bool any_left(uint64_t tickets) { return (uint32_t)tickets < (uint32_t)(tickets >> 32); }

/* Draws one ticket and does what it says. False where none is left. A worker may come late, into a region that began
   meanwhile: the ticket it draws then is one of that region, and task and context were written before it could be. */
static bool work(void) {
    if (!any_left(atomic_load_explicit(&pool.tickets, memory_order_acquire))) return false;
    uint64_t drawn = atomic_fetch_add_explicit(&pool.tickets, 1, memory_order_acq_rel);
    if (!any_left(drawn)) return false;
    uint32_t count = (uint32_t)(drawn >> 32);
    pool.task(pool.context, (long)(uint32_t)drawn);
    if (atomic_fetch_add(&pool.done, 1) + 1 == count && atomic_load(&pool.caller_sleeps)) wake_all(&pool.done);
    return true;
}

static void *worker(void *argument) {
    int rank = (int)(intptr_t)argument; /* the caller is 0 */
    inside = true;
    while (!atomic_load(&pool.closing)) {
        uint32_t seen = atomic_load(&pool.region);
        bool excess = rank >= atomic_load(&pool.wanted);
        if (!excess) {
            while (work()) continue;
            uint64_t until = nanoseconds() + SPIN_NANOSECONDS;
            while (atomic_load_explicit(&pool.region, memory_order_relaxed) == seen && nanoseconds() < until)
                for (int i = 0; i < 16; i++) relax();
            if (atomic_load(&pool.region) != seen) continue;
        }
        atomic_fetch_add(&pool.sleepers, 1);
        if (atomic_load(&pool.region) == seen && !atomic_load(&pool.closing)) wait_on(&pool.region, seen);
        atomic_fetch_sub(&pool.sleepers, 1);
    }
    return NULL;
}

static void start_workers(int wanted) {
    pthread_mutex_lock(&starting);
    while (pool.started < wanted - 1) {
        void *rank = (void *)(intptr_t)(pool.started + 1);
        if (pthread_create(&pool.workers[pool.started], NULL, worker, rank)) break; /* fewer do the work */
        pool.started++;
    }
    pthread_mutex_unlock(&starting);
}

static void wait_for(uint32_t tickets) {
    uint64_t until = 0;
    for (int turn = 0; atomic_load_explicit(&pool.done, memory_order_acquire) != tickets; turn++) {
        relax();
        if (turn % 64) continue;
        uint64_t now = nanoseconds();
        if (!until) until = now + SPIN_NANOSECONDS;
        if (now < until) continue;
        atomic_store(&pool.caller_sleeps, true);
        uint32_t done = atomic_load(&pool.done);
        if (done != tickets) {
            /* others count up too: sleep only as long as the number stands, the last one wakes */
#ifdef __linux__
            wait_on(&pool.done, done);
#else
            sched_yield();
#endif
        }
        atomic_store(&pool.caller_sleeps, false);
    }
}

void pool_run(Task task, void *context, long tickets) {
    int wanted = atomic_load(&pool.wanted);
    bool free = false;
    if (wanted < 2 || tickets < 2 || tickets >= INT32_MAX || inside || atomic_load(&pool.closing) ||
        !atomic_compare_exchange_strong(&pool.taken, &free, true)) {
        for (long i = 0; i < tickets; i++) task(context, i);
        return;
    }
    if (pool.started < wanted - 1) start_workers(wanted);
    inside = true;
    pool.task = task;
    pool.context = context;
    atomic_store(&pool.done, 0);
    atomic_store_explicit(&pool.tickets, (uint64_t)tickets << 32, memory_order_release);
    atomic_fetch_add(&pool.region, 1);
    if (atomic_load(&pool.sleepers)) wake_all(&pool.region);
    while (work()) continue;
    wait_for((uint32_t)tickets);
    inside = false;
    atomic_store(&pool.taken, false);
}

void pool_set_threads(int count) { atomic_store(&pool.wanted, count < 1 ? 1 : count > MOST_THREADS ? MOST_THREADS : count); }

int pool_threads(void) { return atomic_load(&pool.wanted); }

void pool_close(void) {
    bool free = false;
    while (!atomic_compare_exchange_weak(&pool.taken, &free, true)) {
        free = false;
        sched_yield();
    }
    pthread_mutex_lock(&starting);
    atomic_store(&pool.closing, true);
    atomic_fetch_add(&pool.region, 1);
    wake_all(&pool.region);
    while (pool.started > 0) pthread_join(pool.workers[--pool.started], NULL);
    atomic_store(&pool.closing, false);
    pthread_mutex_unlock(&starting);
    atomic_store(&pool.taken, false);
}

/* Scratch memory */

typedef struct {
    float *memory[SCRATCH_SLOTS];
    size_t floats[SCRATCH_SLOTS];
} Scratch;

static pthread_key_t scratch_key;
static _Thread_local Scratch *mine;

static void free_scratch(void *held) {
    Scratch *each = held;
    for (int slot = 0; slot < SCRATCH_SLOTS; slot++) free(each->memory[slot]);
    free(each);
}

float *scratch(int slot, size_t floats) {
    if (!mine) {
        mine = calloc(1, sizeof *mine);
        if (!mine) return NULL;
        if (pthread_setspecific(scratch_key, mine)) {
            free(mine);
            mine = NULL;
            return NULL;
        }
    }
    if (floats > mine->floats[slot]) {
        free(mine->memory[slot]);
        size_t bytes = (floats * sizeof(float) + 4095) / 4096 * 4096;
        mine->memory[slot] = aligned_alloc(64, bytes);
        mine->floats[slot] = mine->memory[slot] ? bytes / sizeof(float) : 0;
    }
    return mine->memory[slot];
}

/* Forks: the child has the calling thread alone, wherever the others were */

static void before_fork(void) { pthread_mutex_lock(&starting); }

static void after_fork_in_parent(void) { pthread_mutex_unlock(&starting); }

static void after_fork_in_child(void) {
    pool.started = 0;
    atomic_store(&pool.tickets, 0);
    atomic_store(&pool.sleepers, 0);
    atomic_store(&pool.caller_sleeps, false);
    atomic_store(&pool.taken, false);
    atomic_store(&pool.closing, false);
    pthread_mutex_unlock(&starting);
}

int pool_open(void) {
    if (pthread_key_create(&scratch_key, free_scratch)) return -1;
    return pthread_atfork(before_fork, after_fork_in_parent, after_fork_in_child) ? -1 : 0;
}
