// SPDX-License-Identifier: Apache-2.0
// Sets of processors, with Linux's sched_getaffinity.
#define _GNU_SOURCE // sets of processors
#include "core/threads/processors.h"

#include <sched.h>
#include <stdbool.h>

#include "core/memory/alloc.h"
#include "core/text/text.h"

enum { MOST_PROCESSORS = 8192 }; // as many as Linux can be built for

// --- texts ---

typedef struct list {
    int *numbers;
    size_t count, capacity;
    tare_error *err;
} list;

static tare_status refuse_text(const char *chars, tare_error *err) {
    return tare__fail(err, TARE_INVALID_ARGUMENT,
                      "affinity '%s': expected numbers of processors and ranges, as in '0,2-5'",
                      chars);
}

static bool read_number(const char **at, int *out) {
    int number = 0;
    const char *p = *at;
    while (*p >= '0' && *p <= '9' && number < MOST_PROCESSORS) number = number * 10 + (*p++ - '0');
    if (p == *at || number >= MOST_PROCESSORS) return false;
    *at = p;
    *out = number;
    return true;
}

static bool has(const int *numbers, size_t count, int number) {
    for (size_t i = 0; i < count; i++)
        if (numbers[i] == number) return true;
    return false;
}

static tare_status add(list *l, int number) {
    if (has(l->numbers, l->count, number))
        return tare__fail(
            l->err, TARE_INVALID_ARGUMENT,
            "affinity: processor %d is listed twice, expected a different one for each thread",
            number);
    if (!tare__grow((void **)&l->numbers, &l->capacity, l->count, sizeof *l->numbers))
        return tare__out_of_memory(l->err);
    l->numbers[l->count++] = number;
    return TARE_OK;
}

static tare_status read_list(const char *chars, list *l) {
    const char *p = chars;
    for (;; p++) {
        int first, last;
        if (!read_number(&p, &first)) return refuse_text(chars, l->err);
        last = first;
        if (*p == '-' && (p++, !read_number(&p, &last))) return refuse_text(chars, l->err);
        if (last < first) return refuse_text(chars, l->err);
        for (int i = first; i <= last; i++) TARE_TRY(add(l, i));
        if (*p == '\0') return TARE_OK;
        if (*p != ',') return refuse_text(chars, l->err);
    }
}

tare_status tare__processors_read(const char *chars, int **out, size_t *count, tare_error *err) {
    list l = {.err = err};
    const tare_status status = read_list(chars, &l);
    if (status != TARE_OK) {
        tare__free(l.numbers);
        return status;
    }
    *out = l.numbers;
    *count = l.count;
    return TARE_OK;
}

// --- the system ---

#ifdef __linux__

typedef struct processor_set {
    cpu_set_t sets[MOST_PROCESSORS / CPU_SETSIZE];
} processor_set;

static bool contains(const processor_set *s, int processor) {
    return CPU_ISSET_S((size_t)processor, sizeof *s, s->sets);
}

// "0-3,8"
static void append_set(text *t, const processor_set *s) {
    for (int first = 0, end; first < MOST_PROCESSORS; first = end + 1) {
        end = first;
        while (end < MOST_PROCESSORS && contains(s, end)) end++;
        if (end == first) continue;
        tare__text_printf(t, "%s%d", t->length > 0 ? "," : "", first);
        if (end > first + 1) tare__text_printf(t, "-%d", end - 1);
    }
}

static tare_status refuse(int processor, const processor_set *allowed, tare_error *err) {
    text t = {0};
    append_set(&t, allowed);
    const tare_status status =
        t.failed ? tare__out_of_memory(err)
                 : tare__fail(err, TARE_INVALID_ARGUMENT,
                              "affinity: processor %d is not among those that the calling thread "
                              "may use: %s",
                              processor, tare__text_chars(&t));
    tare__text_release(&t);
    return status;
}

tare_status tare__processors_check(const int *processors, size_t count, tare_error *err) {
    processor_set allowed = {0};
    if (sched_getaffinity(0, sizeof allowed, allowed.sets) != 0)
        return tare__fail(err, TARE_UNSUPPORTED,
                          "affinity: the system does not list its processors");
    for (size_t i = 0; i < count; i++)
        if (!contains(&allowed, processors[i])) return refuse(processors[i], &allowed, err);
    return TARE_OK;
}

tare_status tare__thread_keep(pthread_t thread, int processor, tare_error *err) {
    processor_set one = {0};
    CPU_SET_S((size_t)processor, sizeof one, one.sets);
    if (pthread_setaffinity_np(thread, sizeof one, one.sets) == 0) return TARE_OK;
    return tare__fail(err, TARE_UNSUPPORTED,
                      "affinity: the system does not allow threads on processor %d", processor);
}

#else

static tare_status refuse_system(tare_error *err) {
    return tare__fail(err, TARE_UNSUPPORTED,
                      "affinity: threads can be pinned to processors on Linux only");
}

tare_status tare__processors_check(const int *processors, size_t count, tare_error *err) {
    (void)processors, (void)count;
    return refuse_system(err);
}

tare_status tare__thread_keep(pthread_t thread, int processor, tare_error *err) {
    (void)thread, (void)processor;
    return refuse_system(err);
}

#endif
