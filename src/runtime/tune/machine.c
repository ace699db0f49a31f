// SPDX-License-Identifier: Apache-2.0
// Measures the machine's peak performance: the best of short samples over half a second, because
// other processes may take the processor for tens of milliseconds at a time.
#include "runtime/tune/machine.h"

#include <string.h>

#include "core/error.h"
#include "core/memory/alloc.h"
#include "core/system/caches.h"
#include "core/system/clock.h"
#include "core/threads/threads.h"
#include "runtime/kernels/peak.h"

enum { LEAST_ROUNDS = 16, MOST_THREADS = 1024, CACHE_LINE = 64, BRIEF_FIGURES = 4 };
// Short enough that some samples run undisturbed on a busy machine; with several threads long
// enough that waking them does not matter.
static const double sample_seconds = 0.25e-3, shared_sample_seconds = 2e-3, all_seconds = 0.5,
                    brief_seconds = 0.04;
static const size_t memory_bytes = 256 << 20;

/// The work of a thread, repeated `rounds` times. The result is stored in `results`, so that the
/// compiler cannot remove the work.
struct machine_job;
typedef uint64_t (*machine_work)(const struct machine_job *job, size_t worker);

typedef struct machine_job {
    const peak_kernels *kernels, *vectors; // vectors: without tiles
    thread_pool *pool;
    size_t threads, rounds;
    bool is_brief; // integers, floats and the L2 cache alone
    machine_work work;
    uint64_t *results; // [threads], each in a cache line of its own
    uint64_t *data;
    size_t words, first; // of data: words that each thread reads, and the first one
} machine_job;

static uint64_t multiply_integers(const machine_job *job, size_t worker) {
    (void)worker;
    return job->kernels->multiply_integers(job->rounds);
}

static uint64_t multiply_in_vectors(const machine_job *job, size_t worker) {
    (void)worker;
    return job->vectors->multiply_integers(job->rounds);
}

static uint64_t multiply_floats(const machine_job *job, size_t worker) {
    (void)worker;
    return (uint64_t)job->kernels->multiply_floats(job->rounds);
}

static uint64_t read_memory(const machine_job *job, size_t worker) {
    uint64_t sum = 0;
    for (size_t i = 0; i < job->rounds; i++)
        sum += job->kernels->read(job->data + job->first + worker * job->words, job->words);
    return sum;
}

// --- measuring ---

// A share for each thread; all run at the same time, unlike the ranges of a loop.
static void run_share(void *user, size_t thread, size_t worker) {
    const machine_job *job = user;
    (void)worker;
    job->results[thread * CACHE_LINE / sizeof *job->results] = job->work(job, thread);
}

static double seconds_of(machine_job *job) {
    const uint64_t begin = tare__now_ns();
    tare__thread_pool_run(job->pool, job->threads, run_share, job);
    return (double)(tare__now_ns() - begin) * 1e-9;
}

// A figure and the parameters of its samples.
typedef struct machine_figure {
    machine_work work;
    double units;  // units of work in a round of one thread
    size_t words;  // words of data that each thread reads
    size_t window; // words that successive samples traverse, each once; 0: all read the first ones
    size_t next;   // first word of the next sample
    size_t rounds; // of a sample
    double *best;  // 10^9 units per second
} machine_figure;

static double take_sample(machine_job *job, machine_figure *f) {
    const size_t words = f->words * job->threads;
    job->work = f->work;
    job->words = f->words;
    job->first = f->next;
    f->next = f->next + 2 * words <= f->window ? f->next + words : 0;
    if (words > 0 && f->window == 0) { // other samples have evicted its data from the caches
        job->rounds = 1;
        (void)seconds_of(job);
    }
    job->rounds = f->rounds;
    return seconds_of(job);
}

// A sample that is too short for the clock does not count. The length is checked for every sample,
// because the first ones may only have waited for the processor.
static void measure(machine_job *job, machine_figure *f) {
    const double least = job->threads > 1 ? shared_sample_seconds : sample_seconds;
    double seconds = take_sample(job, f);
    while (seconds < least && f->window == 0) {
        f->rounds *= seconds < least / 16 ? 8 : 2;
        seconds = take_sample(job, f);
    }
    const double rate = (double)f->rounds * (double)job->threads * f->units / seconds * 1e-9;
    if (rate > *f->best) *f->best = rate;
}

// bytes: over all threads.
static machine_figure reading(const machine_job *job, size_t bytes, double *best) {
    enum { WORDS = PEAK_READ_WORDS };
    const size_t words = bytes / sizeof *job->data / job->threads / WORDS * WORDS;
    return (machine_figure){.work = read_memory,
                            .units = (double)(words * sizeof *job->data),
                            .words = words,
                            .rounds = 1,
                            .best = best};
}

// Reads a window at a time of much more data than the caches hold: reading all of it would take
// longer than a thread runs without interruption on a busy machine.
static machine_figure reading_memory(const machine_job *job, double *best) {
    machine_figure f = reading(job, memory_bytes / 16, best);
    f.window = memory_bytes / sizeof *job->data;
    return f;
}

// Half of each thread's L2 cache.
static size_t cached_bytes(const machine_job *job) {
    const size_t bytes = tare__l2_bytes() / 2 * job->threads;
    return bytes < memory_bytes ? bytes : memory_bytes;
}

static void measure_all(machine_job *job, tare_machine_peak *out) {
    const size_t l2 = tare__l2_bytes(), cached = cached_bytes(job);
    // Otherwise all pages would be the same page of zeros.
    memset(job->data, 1, job->is_brief ? cached : memory_bytes);
    *out = (tare_machine_peak){.struct_size = sizeof *out};
    const double integers = 2.0 * (double)job->kernels->integers;
    const double in_vectors = 2.0 * (double)job->vectors->integers;
    const double floats = 2.0 * (double)job->kernels->floats;
    machine_figure figures[] = {
        {.work = multiply_integers, .units = integers, .rounds = 1, .best = &out->int8_gops},
        {.work = multiply_in_vectors,
         .units = in_vectors,
         .rounds = 1,
         .best = &out->int8_vector_gops},
        {.work = multiply_floats, .units = floats, .rounds = 1, .best = &out->float_gflops},
        reading(job, cached, &out->l2_gbs),
        reading(job, l2 < memory_bytes / 8 ? 8 * l2 : memory_bytes, &out->l3_gbs),
        reading_memory(job, &out->memory_gbs),
    };
    const size_t count = job->is_brief ? BRIEF_FIGURES : sizeof figures / sizeof *figures;
    const double seconds = job->is_brief ? brief_seconds : all_seconds;
    const uint64_t begin = tare__now_ns();
    for (int round = 0; round < LEAST_ROUNDS || (double)(tare__now_ns() - begin) < seconds * 1e9;
         round++)
        for (size_t i = 0; i < count; i++) measure(job, &figures[i]);
}

static tare_status run_job(machine_job *job, int threads, tare_machine_peak *out, tare_error *err) {
    isa_level isa;
    TARE_TRY(tare__isa_choose(&isa, err));
    job->kernels = tare__peak_choose(isa);
    job->vectors = tare__peak_choose(tare__isa_without_tiles(isa));
    TARE_TRY(tare__thread_pool_create(threads, &job->pool, err));
    job->results = tare__alloc_zeroed(job->threads, CACHE_LINE);
    job->data = tare__alloc_aligned(job->is_brief ? cached_bytes(job) : memory_bytes, CACHE_LINE);
    if (job->results == NULL || job->data == NULL) return tare__out_of_memory(err);
    measure_all(job, out);
    return TARE_OK;
}

static tare_status measure_with(int threads, bool is_brief, tare_machine_peak *out,
                                tare_error *err) {
    machine_job job = {.threads = (size_t)threads, .is_brief = is_brief};
    const tare_status status = run_job(&job, threads, out, err);
    tare__thread_pool_destroy(job.pool);
    tare__free(job.results);
    tare__free_aligned(job.data);
    return status;
}

tare_status tare__machine_measure_briefly(tare_machine_peak *out, tare_error *err) {
    return measure_with(1, true, out, err);
}

tare_status tare_machine_measure(int thread_count, tare_machine_peak *out, tare_error *err) {
    const int threads = thread_count > 0 ? thread_count : 1;
    if (thread_count < 0 || threads > MOST_THREADS)
        return tare__fail(err, TARE_INVALID_ARGUMENT, "expected 0 to %d threads, found %d",
                          MOST_THREADS, thread_count);
    return measure_with(threads, false, out, err);
}
