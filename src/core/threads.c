// SPDX-License-Identifier: Apache-2.0
// A pool of threads. One lock guards the work at hand; parts are coarse, so that taking one under
// the lock costs nothing against doing it. Nobody spins: an idle pool leaves its cores to others.
#include "core/threads.h"

#include <pthread.h>
#include <signal.h>
#include <stdbool.h>

#include "core/alloc.h"

typedef struct worker {
    thread_pool *pool;
    pthread_t thread;
    size_t number;
} worker;

struct thread_pool {
    pthread_mutex_t lock;
    pthread_cond_t work, done; // there are parts to take; the last part is done
    thread_task task;
    void *user;
    size_t part_count, next_part, done_count;
    bool ends;
    size_t worker_count; // without the caller
    worker workers[];
};

// Takes parts until none is left. Called with the lock held, and returns with it held.
static void take_parts(thread_pool *pool, size_t number) {
    while (pool->next_part < pool->part_count) {
        const size_t part = pool->next_part++;
        const thread_task task = pool->task;
        void *user = pool->user;
        pthread_mutex_unlock(&pool->lock);
        task(user, part, number);
        pthread_mutex_lock(&pool->lock);
        if (++pool->done_count == pool->part_count) pthread_cond_signal(&pool->done);
    }
}

static void *work(void *user) {
    const worker *self = user;
    thread_pool *pool = self->pool;
    pthread_mutex_lock(&pool->lock);
    while (!pool->ends) {
        take_parts(pool, self->number);
        if (!pool->ends) pthread_cond_wait(&pool->work, &pool->lock);
    }
    pthread_mutex_unlock(&pool->lock);
    return NULL;
}

// Signals are the program's: none is delivered to a worker.
static bool start_workers(thread_pool *pool, size_t count) {
    sigset_t all, before;
    sigfillset(&all);
    if (pthread_sigmask(SIG_SETMASK, &all, &before) != 0) return false;
    bool ok = true;
    while (ok && pool->worker_count < count) {
        worker *w = &pool->workers[pool->worker_count];
        *w = (worker){.pool = pool, .number = pool->worker_count + 1};
        ok = pthread_create(&w->thread, NULL, work, w) == 0;
        if (ok) pool->worker_count++;
    }
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return ok;
}

tare_status tare__thread_pool_create(int thread_count, thread_pool **out, tare_error *err) {
    *out = NULL;
    if (thread_count <= 1) return TARE_OK;
    const size_t count = (size_t)thread_count - 1;
    thread_pool *pool = tare__alloc_zeroed(1, sizeof *pool + count * sizeof *pool->workers);
    if (pool == NULL) return tare__out_of_memory(err);
    // Default attributes need no memory; these calls cannot fail on the systems we know.
    pthread_mutex_init(&pool->lock, NULL);
    pthread_cond_init(&pool->work, NULL);
    pthread_cond_init(&pool->done, NULL);
    if (!start_workers(pool, count)) {
        const size_t started = pool->worker_count + 1;
        tare__thread_pool_destroy(pool);
        return tare__fail(err, TARE_OUT_OF_MEMORY,
                          "the system gives %zu threads, %d were asked for", started, thread_count);
    }
    *out = pool;
    return TARE_OK;
}

void tare__thread_pool_destroy(thread_pool *pool) {
    if (pool == NULL) return;
    pthread_mutex_lock(&pool->lock);
    pool->ends = true;
    pthread_cond_broadcast(&pool->work);
    pthread_mutex_unlock(&pool->lock);
    for (size_t i = 0; i < pool->worker_count; i++) pthread_join(pool->workers[i].thread, NULL);
    pthread_cond_destroy(&pool->done);
    pthread_cond_destroy(&pool->work);
    pthread_mutex_destroy(&pool->lock);
    tare__free(pool);
}

size_t tare__thread_count(const thread_pool *pool) {
    return pool != NULL ? pool->worker_count + 1 : 1;
}

void tare__thread_pool_run(thread_pool *pool, size_t part_count, thread_task task, void *user) {
    if (pool == NULL || part_count <= 1) {
        for (size_t i = 0; i < part_count; i++) task(user, i, 0);
        return;
    }
    pthread_mutex_lock(&pool->lock);
    pool->task = task;
    pool->user = user;
    pool->part_count = part_count;
    pool->next_part = pool->done_count = 0;
    // No more are woken than find a part.
    for (size_t i = 0; i < pool->worker_count && i + 1 < part_count; i++)
        pthread_cond_signal(&pool->work);
    take_parts(pool, 0);
    while (pool->done_count < part_count) pthread_cond_wait(&pool->done, &pool->lock);
    pthread_mutex_unlock(&pool->lock);
}
