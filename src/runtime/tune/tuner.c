// SPDX-License-Identifier: Apache-2.0
// Times the kernels that suit a layer, chooses the fastest, and reads and writes the file of times.
#include "runtime/tune/tuner.h"

#include <stdio.h>
#include <string.h>

#include "core/json/emit.h"
#include "core/json/json.h"
#include "core/memory/alloc.h"
#include "core/memory/arena.h"
#include "core/memory/map.h"
#include "core/system/clock.h"
#include "core/system/file.h"
#include "tare/file.h"

#if defined(TARE_HAVE_X86_KERNELS)
#include <cpuid.h>
#endif

#define FORMAT "tare-tune-1"

enum {
    MOST_LAYERS = 1 << 16, // in a file
    KEY_SIZE = 256,
    PROCESSOR_SIZE = 64,
    LEAST_TURNS = 7,
    MOST_TURNS = 40,
    TURN_BUDGET_NS = 8000000,
    GAIN_PERCENT = 2, // a library that is faster by less is not chosen
    // In a network the weights have left the second-level cache since their last use.
    OTHER_BYTES = 4 << 20,
};

typedef struct measured {
    bool library; // the choice
    int64_t product_ns, library_ns;
    char why[96];
} measured;

struct tuner {
    char *path; // NULL: times are not stored
    char processor[PROCESSOR_SIZE];
    arena memory;
    map layers; // key -> measured
    bool is_changed;
};

// --- keys ---

#if defined(TARE_HAVE_X86_KERNELS)
// The processor's brand string, of three times 16 bytes.
static void name_processor(char out[PROCESSOR_SIZE]) {
    unsigned words[12] = {0}, *at = words;
    const unsigned most = (unsigned)__get_cpuid_max(0x80000000U, NULL); // an int to some
    for (unsigned leaf = 0x80000002U; leaf <= 0x80000004U && most >= 0x80000004U; leaf++, at += 4)
        (void)__get_cpuid(leaf, &at[0], &at[1], &at[2], &at[3]);
    memcpy(out, words, sizeof words);
    out[sizeof words] = '\0';
}
#else
static void name_processor(char out[PROCESSOR_SIZE]) {
    (void)snprintf(out, PROCESSOR_SIZE, "any");
}
#endif

static void write_key(const tuner *t, const tuned_layer *w, char out[KEY_SIZE]) {
    const conv_geometry *g = &w->of->conv;
    const size_t threads = tare__thread_count(w->space->pool);
    (void)snprintf(
        out, KEY_SIZE,
        "%s|%s|%zu threads|%zux%lldx%lldx%lld to %lld|%lldx%lld step %lld,%lld apart %lld,%lld "
        "padding %lld,%lld,%lld,%lld",
        t->processor, tare__isa_level_name(w->isa), threads, w->batch, (long long)w->x->shape[2],
        (long long)w->x->shape[3], (long long)g->in_channels, (long long)g->out_channels,
        (long long)g->kernel[1], (long long)g->kernel[2], (long long)g->stride[1],
        (long long)g->stride[2], (long long)g->dilation[1], (long long)g->dilation[2],
        (long long)g->pad_before[1], (long long)g->pad_before[2], (long long)g->pad_after[1],
        (long long)g->pad_after[2]);
}

// --- what is known ---

static void say(measured *m) {
    (void)snprintf(m->why, sizeof m->why, "timed here: oneDNN's sums %.1f us, ours %.1f us",
                   (double)m->library_ns * 1e-3, (double)m->product_ns * 1e-3);
}

static tare_status note(tuner *t, const char *key, const measured *m, measured **out,
                        tare_error *err) {
    measured *kept = tare__arena_alloc(&t->memory, sizeof *kept);
    if (kept == NULL || !tare__map_set(&t->layers, key, kept)) return tare__out_of_memory(err);
    *kept = *m;
    say(kept);
    if (out != NULL) *out = kept;
    return TARE_OK;
}

// --- the file ---

static tare_status read_time(const json_at *layer, const char *key, int64_t *out, tare_error *err) {
    const json_at at = tare__json_get(layer, key);
    TARE_TRY(tare__json_int(&at, out, err));
    return *out >= 0 ? TARE_OK : tare__json_fail(&at, err, "expected nanoseconds");
}

static tare_status read_layer(tuner *t, const json_at *at, tare_error *err) {
    static const char *const keys[] = {"key", "kernel", "product_ns", "library_ns", NULL};
    const char *key = NULL, *kernel = NULL;
    measured m = {0};
    TARE_TRY(tare__json_expect(at, JSON_OBJECT, err));
    TARE_TRY(tare__json_only_keys(at, keys, err));
    const json_at key_at = tare__json_get(at, "key"), kernel_at = tare__json_get(at, "kernel");
    TARE_TRY(tare__json_string(&key_at, &key, err));
    TARE_TRY(tare__json_string(&kernel_at, &kernel, err));
    m.library = strcmp(kernel, "library") == 0;
    if (!m.library && strcmp(kernel, "product") != 0)
        return tare__json_fail(&kernel_at, err, "expected product or library, found '%s'", kernel);
    if (strlen(key) >= KEY_SIZE)
        return tare__json_fail(&key_at, err, "expected at most %d characters", KEY_SIZE - 1);
    if (tare__map_has(&t->layers, key))
        return tare__json_fail(&key_at, err, "'%s' is listed twice", key);
    TARE_TRY(read_time(at, "product_ns", &m.product_ns, err));
    TARE_TRY(read_time(at, "library_ns", &m.library_ns, err));
    return note(t, key, &m, NULL, err);
}

static tare_status read_root(tuner *t, const json_t *json, tare_error *err) {
    static const char *const keys[] = {"format", "layers", NULL};
    const char *format = NULL;
    const json_at root = tare__json_root(json);
    TARE_TRY(tare__json_expect(&root, JSON_OBJECT, err));
    TARE_TRY(tare__json_only_keys(&root, keys, err));
    const json_at format_at = tare__json_get(&root, "format");
    const json_at layers = tare__json_get(&root, "layers");
    TARE_TRY(tare__json_string(&format_at, &format, err));
    if (strcmp(format, FORMAT) != 0)
        return tare__json_fail(&format_at, err, "expected '" FORMAT "', found '%s'", format);
    TARE_TRY(tare__json_expect(&layers, JSON_ARRAY, err));
    if (json_array_size(layers.value) > MOST_LAYERS)
        return tare__json_fail(&layers, err, "expected at most %d layers", MOST_LAYERS);
    for (size_t i = 0; i < json_array_size(layers.value); i++) {
        const json_at item = tare__json_item(&layers, i);
        TARE_TRY(read_layer(t, &item, err));
    }
    return TARE_OK;
}

static tare_status read_file(tuner *t, tare_error *err) {
    json_t *json = NULL;
    if (!tare__file_exists(t->path)) return TARE_OK;
    TARE_TRY(tare__json_parse_file(t->path, &json, err));
    const tare_status status = tare__at(err, read_root(t, json, err), "%s", t->path);
    json_decref(json);
    return status;
}

static void emit_layer(json_emitter *e, const char *key, const measured *m) {
    tare__emit_open(e, '{');
    tare__emit_key(e, "key");
    tare__emit_string(e, key);
    tare__emit_key(e, "kernel");
    tare__emit_string(e, m->library ? "library" : "product");
    tare__emit_key(e, "product_ns");
    tare__emit_int(e, m->product_ns);
    tare__emit_key(e, "library_ns");
    tare__emit_int(e, m->library_ns);
    tare__emit_close(e, '}');
}

static void emit(const tuner *t, text *out) {
    json_emitter e = {.out = out};
    tare__emit_open(&e, '{');
    tare__emit_key(&e, "format");
    tare__emit_string(&e, FORMAT);
    tare__emit_key(&e, "layers");
    tare__emit_open(&e, '[');
    for (size_t i = 0; i < t->layers.count; i++)
        emit_layer(&e, t->layers.entries[i].key, t->layers.entries[i].value);
    tare__emit_close(&e, ']');
    tare__emit_close(&e, '}');
    tare__text_char(out, '\n');
}

tare_status tare__tuner_save(tuner *t, tare_error *err) {
    text out = {0};
    if (t->path == NULL || !t->is_changed) return TARE_OK;
    emit(t, &out);
    tare_status status = tare__text_status(&out, err);
    if (status == TARE_OK)
        status = tare_file_write(t->path, tare__text_chars(&out), out.length, err);
    tare__text_release(&out);
    t->is_changed = t->is_changed && status != TARE_OK;
    return status;
}

// --- measuring ---

// others: memory whose use evicts the weights from the caches before the run. The input is as
// recently written as in a network.
static int64_t time_run(qlayer *layer, const qlayer_run *run, size_t x_bytes, uint8_t *others,
                        bool library) {
    tare__qlayer_choose(layer, library, false);
    memset(others, others[0] + 1, OTHER_BYTES);
    uint8_t *x = (uint8_t *)run->x; // allocated here
    for (size_t i = 0; i < x_bytes; i += 64) x[i]++;
    const int64_t begin = (int64_t)tare__now_ns();
    tare__qlayer_run(layer, run);
    return (int64_t)tare__now_ns() - begin;
}

// Takes the least time of several alternating runs, because disturbances only add time.
static void take_turns(qlayer *layer, const qlayer_run *run, size_t x_bytes, uint8_t *others,
                       measured *m) {
    const int64_t begin = (int64_t)tare__now_ns();
    m->product_ns = m->library_ns = INT64_MAX;
    for (int i = 0; i < MOST_TURNS; i++) {
        const int64_t product = time_run(layer, run, x_bytes, others, false);
        const int64_t library = time_run(layer, run, x_bytes, others, true);
        if (i == 0) continue; // not warmed up
        if (product < m->product_ns) m->product_ns = product;
        if (library < m->library_ns) m->library_ns = library;
        if (i >= LEAST_TURNS && (int64_t)tare__now_ns() - begin > TURN_BUDGET_NS) break;
    }
    m->library = m->library_ns < m->product_ns - m->product_ns / (100 / GAIN_PERCENT);
}

static void fill_quantized(uint8_t *x, size_t count) {
    uint32_t state = 1;
    for (size_t i = 0; i < count; i++) {
        state = state * 1664525U + 1013904223U;
        x[i] = (uint8_t)(state >> 24);
    }
}

static tare_status measure(const tuned_layer *w, measured *m, tare_error *err) {
    enum { ALIGNMENT = 64 };
    const size_t threads = tare__thread_count(w->space->pool);
    const size_t x = tare__round_up((size_t)w->x->count, ALIGNMENT);
    const size_t y = tare__round_up((size_t)w->y->count, ALIGNMENT);
    tare__qlayer_choose(w->layer, true, false);
    size_t work = tare__qlayer_scratch_bytes(w->layer, threads, w->batch);
    tare__qlayer_choose(w->layer, false, false);
    const size_t own = tare__qlayer_scratch_bytes(w->layer, threads, w->batch);
    if (own > work) work = own;
    uint8_t *memory = tare__alloc_aligned(x + y + work + OTHER_BYTES, ALIGNMENT);
    if (memory == NULL) return tare__out_of_memory(err);
    fill_quantized(memory, x);
    memory[x + y + work] = 0;
    const qlayer_run run = {.batch = w->batch,
                            .x = memory,
                            .y = memory + x,
                            .scratch = memory + x + y,
                            .space = w->space};
    take_turns(w->layer, &run, x, memory + x + y + work, m);
    tare__free_aligned(memory);
    return TARE_OK;
}

tare_status tare__tuner_choose(tuner *t, const tuned_layer *wanted, const char **why,
                               tare_error *err) {
    char key[KEY_SIZE];
    bool has_choice = false;
    *why = NULL;
    if (wanted->x->ndim != 4 || wanted->of->weight->ndim != 4) return TARE_OK;
    write_key(t, wanted, key);
    measured *known = tare__map_get(&t->layers, key);
    if (known != NULL && !known->library) {
        *why = known->why;
        return TARE_OK;
    }
    TARE_TRY(tare__qlayer_take_library(wanted->layer, wanted->of, wanted->x, wanted->y, wanted->isa,
                                       tare__thread_count(wanted->space->pool), &has_choice, err));
    if (!has_choice) return TARE_OK;
    if (known == NULL) {
        measured m;
        TARE_TRY(measure(wanted, &m, err));
        TARE_TRY(note(t, key, &m, &known, err));
        t->is_changed = true;
    }
    tare__qlayer_choose(wanted->layer, known->library, true);
    *why = known->why;
    return TARE_OK;
}

// --- tuners ---

tare_status tare__tuner_create(const char *path, tuner **out, tare_error *err) {
    tuner *t = tare__alloc_zeroed(1, sizeof *t);
    if (t == NULL) return tare__out_of_memory(err);
    name_processor(t->processor);
    if (path != NULL) t->path = tare__strdup(path);
    tare_status status = path == NULL || t->path != NULL ? TARE_OK : tare__out_of_memory(err);
    if (status == TARE_OK && path != NULL) status = read_file(t, err);
    if (status == TARE_OK)
        *out = t;
    else
        tare__tuner_destroy(t);
    return status;
}

void tare__tuner_destroy(tuner *t) {
    if (t == NULL) return;
    tare__map_release(&t->layers);
    tare__arena_release(&t->memory);
    tare__free(t->path);
    tare__free(t);
}
