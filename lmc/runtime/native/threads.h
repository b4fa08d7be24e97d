/* A few threads that share out the items of one job at a time; the caller works with them. */

#ifndef LMC_THREADS_H
#define LMC_THREADS_H

#include <stdint.h>

typedef struct lmc_threads lmc_threads;

/* thread: 0 … threads - 1, the caller being 0. */
typedef void (*lmc_work)(void *job, int64_t item, int thread);

/* As many as could be started, at least the caller itself; NULL without memory. */
lmc_threads *lmc_threads_open(int count);
void lmc_threads_close(lmc_threads *threads);
/* Calls work(job, item, thread) for each item 0 … items - 1 once, in any order, and returns when all are done. */
void lmc_threads_run(lmc_threads *threads, lmc_work work, void *job, int64_t items);

#endif
