// SPDX-License-Identifier: Apache-2.0
// Measures the machine's peak performance: the best of some samples, each long enough for the
// clock.
#include "tare/machine.h"

#include <string.h>
#include <unistd.h>

#include "core/error.h"
#include "core/memory/alloc.h"
#include "core/system/clock.h"
#include "core/threads/threads.h"
#include "runtime/kernels/peak.h"

enum { SAMPLES = 7, MOST_THREADS = 1024, CACHE_LINE = 64 };
static const double sample_seconds = 2e-3;
static const size_t usual_l2 = 1 << 20, memory_bytes = 256 << 20;

/// What a thread does, `rounds` times; its result goes to `results`, so that it must be done.
struct machine_job;
typedef uint64_t (*machine_work)(const struct machine_job *job, size_t worker);

typedef struct machine_job {
    const peak_kernels *kernels;
    thread_pool *pool;
    size_t threads, rounds;
    machine_work work;
    uint64_t *results; // [threads], each in a cache line of its own
    uint64_t *data;
    size_t words; // of data that each thread reads
} machine_job;

static uint64_t multiply_integers(const machine_job *job, size_t worker) {
    (void)worker;
    return job->kernels->multiply_integers(job->rounds);
}

static uint64_t multiply_floats(const machine_job *job, size_t worker) {
    (void)worker;
    return (uint64_t)job->kernels->multiply_floats(job->rounds);
}

static uint64_t read_memory(const machine_job *job, size_t worker) {
    uint64_t sum = 0;
    for (size_t i = 0; i < job->rounds; i++)
        sum += job->kernels->read(job->data + worker * job->words, job->words);
    return sum;
}

// --- measuring ---

static void run_part(void *user, size_t part, size_t worker) {
    const machine_job *job = user;
    (void)worker;
    job->results[part * CACHE_LINE / sizeof *job->results] = job->work(job, part);
}

static double seconds_of(machine_job *job) {
    const uint64_t begin = tare__now_ns();
    tare__thread_pool_run(job->pool, job->threads, run_part, job);
    return (double)(tare__now_ns() - begin) * 1e-9;
}

// Billions of `units` per second, of a thread's round.
static double measure(machine_job *job, machine_work work, double units) {
    job->work = work;
    job->rounds = 1;
    double seconds = seconds_of(job), best = 0;
    while (seconds < sample_seconds) {
        job->rounds *= seconds < sample_seconds / 16 ? 8 : 2;
        seconds = seconds_of(job);
    }
    for (int i = 0; i < SAMPLES; i++) {
        const double rate = (double)job->rounds * (double)job->threads * units / seconds_of(job);
        if (rate > best) best = rate;
    }
    return best * 1e-9;
}

// bytes: of all threads.
static double measure_reading(machine_job *job, size_t bytes) {
    enum { WORDS = PEAK_READ_WORDS };
    job->words = bytes / sizeof *job->data / job->threads / WORDS * WORDS;
    return measure(job, read_memory, (double)(job->words * sizeof *job->data));
}

static size_t l2_bytes(void) {
#ifdef _SC_LEVEL2_CACHE_SIZE
    const long found = sysconf(_SC_LEVEL2_CACHE_SIZE);
    if (found > 0) return (size_t)found;
#endif
    return usual_l2;
}

static void measure_all(machine_job *job, tare_machine_peak *out) {
    const size_t l2 = l2_bytes();
    size_t cached = l2 / 2 * job->threads;
    if (cached > memory_bytes) cached = memory_bytes;
    memset(job->data, 1, memory_bytes); // else all of it is one page of zeros
    *out = (tare_machine_peak){
        .struct_size = sizeof *out,
        .int8_gops = measure(job, multiply_integers, 2.0 * (double)job->kernels->integers),
        .float_gflops = measure(job, multiply_floats, 2.0 * (double)job->kernels->floats),
        .l2_gbs = measure_reading(job, cached),
        .l3_gbs = measure_reading(job, l2 < memory_bytes / 8 ? 8 * l2 : memory_bytes),
        .memory_gbs = measure_reading(job, memory_bytes),
    };
}

static tare_status run_job(machine_job *job, int threads, tare_machine_peak *out, tare_error *err) {
    isa_level isa;
    TARE_TRY(tare__isa_choose(&isa, err));
    job->kernels = tare__peak_choose(isa);
    TARE_TRY(tare__thread_pool_create(threads, &job->pool, err));
    job->results = tare__alloc_zeroed(job->threads, CACHE_LINE);
    job->data = tare__alloc_aligned(memory_bytes, CACHE_LINE);
    if (job->results == NULL || job->data == NULL) return tare__out_of_memory(err);
    measure_all(job, out);
    return TARE_OK;
}

tare_status tare_machine_measure(int thread_count, tare_machine_peak *out, tare_error *err) {
    const int threads = thread_count > 0 ? thread_count : 1;
    machine_job job = {.threads = (size_t)threads};
    if (thread_count < 0 || threads > MOST_THREADS)
        return tare__fail(err, TARE_INVALID_ARGUMENT, "expected 0 to %d threads, found %d",
                          MOST_THREADS, thread_count);
    const tare_status status = run_job(&job, threads, out, err);
    tare__thread_pool_destroy(job.pool);
    tare__free(job.results);
    tare__free_aligned(job.data);
    return status;
}
