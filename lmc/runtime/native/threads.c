/* Items are taken from one counter, and the caller waits for items, not for threads: a thread that the system has put aside delays
   nobody unless it holds an item.  (Barriers of threads were measured to be 200 times slower beside a busy process.)

   ticket = generation of the job (high half), items not yet taken (low half): a thread that wakes up late cannot take an item of a job
   that it did not see begin, and whoever takes an item knows that its job is not over. */

#define _POSIX_C_SOURCE 200809L

#include "threads.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>

struct lmc_threads {
    _Atomic uint64_t ticket;
    _Atomic int64_t done;
    lmc_work work;
    void *job;
    _Atomic int sleepers, stop;
    pthread_mutex_t mutex;
    pthread_cond_t wake;
    int count;
    struct worker { lmc_threads *threads; int number; pthread_t thread; } workers[];
};

static void pause_once(void) {
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

/* Spinning is for the gaps between the jobs of one step, a few microseconds; then others may run. */
enum { SPINS = 300, YIELDS = 400 };

static void wait_a_little(int tries) {
    if (tries < SPINS)
        pause_once();
    else
        sched_yield();
}

static int take_item(lmc_threads *threads, int64_t *item) {
    uint64_t ticket = atomic_load_explicit(&threads->ticket, memory_order_acquire);
    while ((uint32_t)ticket != 0 && !atomic_compare_exchange_weak(&threads->ticket, &ticket, ticket - 1)) continue;
    *item = (int64_t)(uint32_t)ticket - 1;
    return *item >= 0;
}

/* Takes items until none is left; whether there was one. */
static int work_off(lmc_threads *threads, int number) {
    int64_t item, found = 0;
    while (take_item(threads, &item)) {
        threads->work(threads->job, item, number);
        atomic_fetch_add_explicit(&threads->done, 1, memory_order_release);
        found = 1;
    }
    return (int)found;
}

static void sleep_until_called(lmc_threads *threads) {
    pthread_mutex_lock(&threads->mutex);
    atomic_fetch_add(&threads->sleepers, 1);
    while ((uint32_t)atomic_load(&threads->ticket) == 0 && !atomic_load(&threads->stop))
        pthread_cond_wait(&threads->wake, &threads->mutex);
    atomic_fetch_sub(&threads->sleepers, 1);
    pthread_mutex_unlock(&threads->mutex);
}

static void *worker_main(void *argument) {
    struct worker *worker = argument;
    lmc_threads *threads = worker->threads;
    int tries = 0;
    while (!atomic_load(&threads->stop)) {
        if (work_off(threads, worker->number))
            tries = 0;
        else if (++tries < SPINS + YIELDS)
            wait_a_little(tries);
        else
            sleep_until_called(threads);
    }
    return NULL;
}

static void call_sleepers(lmc_threads *threads) {
    pthread_mutex_lock(&threads->mutex);
    pthread_cond_broadcast(&threads->wake);
    pthread_mutex_unlock(&threads->mutex);
}

lmc_threads *lmc_threads_open(int count) {
    lmc_threads *threads = calloc(1, sizeof *threads + (size_t)count * sizeof *threads->workers);
    if (!threads) return NULL;
    pthread_mutex_init(&threads->mutex, NULL);
    pthread_cond_init(&threads->wake, NULL);
    for (threads->count = 1; threads->count < count; threads->count++) {
        struct worker *worker = threads->workers + threads->count;
        worker->threads = threads;
        worker->number = threads->count;
        if (pthread_create(&worker->thread, NULL, worker_main, worker) != 0) break;
    }
    return threads;
}

void lmc_threads_close(lmc_threads *threads) {
    if (!threads) return;
    atomic_store(&threads->stop, 1);
    call_sleepers(threads);
    for (int i = 1; i < threads->count; i++) pthread_join(threads->workers[i].thread, NULL);
    pthread_cond_destroy(&threads->wake);
    pthread_mutex_destroy(&threads->mutex);
    free(threads);
}

void lmc_threads_run(lmc_threads *threads, lmc_work work, void *job, int64_t items) {
    if (items <= 1 || threads->count == 1) {
        for (int64_t item = items; item-- > 0;) work(job, item, 0);
        return;
    }
    threads->work = work;
    threads->job = job;
    atomic_store_explicit(&threads->done, 0, memory_order_relaxed);
    uint64_t generation = (atomic_load(&threads->ticket) >> 32) + 1;
    atomic_store(&threads->ticket, generation << 32 | (uint64_t)items);
    if (atomic_load(&threads->sleepers)) call_sleepers(threads);
    work_off(threads, 0);
    int tries = 0;
    while (atomic_load_explicit(&threads->done, memory_order_acquire) < items) {
        wait_a_little(tries);
        if (tries < SPINS) tries++;
    }
}
