// SPDX-License-Identifier: Apache-2.0
// Runs on inputs of shapes seen before ask for no memory and take no lock, with one thread and two:
// the C library's functions are counted here, in front of it. What oneDNN does in float layers is
// its own. Steps that call an operator's reference may ask for memory: the network that is named
// below has one, a convolution of floats whose borders reflect.
#define _GNU_SOURCE // RTLD_NEXT
#include "support/test.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>

#include "golden/networks.h"
#include "support/models.h"

#if defined(__GLIBC__) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#define CAN_COUNT 1
#else
#define CAN_COUNT 0
#endif

static _Atomic long allocations, locks;

#if CAN_COUNT
// NOLINTBEGIN(bugprone-reserved-identifier): what glibc calls them itself
void *__libc_malloc(size_t size);
void *__libc_calloc(size_t count, size_t size);
void *__libc_realloc(void *memory, size_t size);
void *__libc_memalign(size_t alignment, size_t size);
void *memalign(size_t alignment, size_t size);
void __libc_free(void *memory);
// NOLINTEND(bugprone-reserved-identifier)

static _Atomic bool is_counting;

// oneDNN and the libraries under it do as they like.
static bool is_ours(void *caller) {
    Dl_info about;
    if (dladdr(caller, &about) == 0 || about.dli_fname == NULL) return true;
    return strstr(about.dli_fname, "dnnl") == NULL && strstr(about.dli_fname, "gomp") == NULL &&
           strstr(about.dli_fname, "stdc++") == NULL;
}

static void note(_Atomic long *counter, void *caller) {
    if (atomic_load(&is_counting) && is_ours(caller)) atomic_fetch_add(counter, 1);
}

void *malloc(size_t size) {
    note(&allocations, __builtin_return_address(0));
    return __libc_malloc(size);
}

void *calloc(size_t count, size_t size) {
    note(&allocations, __builtin_return_address(0));
    return __libc_calloc(count, size);
}

void *realloc(void *memory, size_t size) {
    note(&allocations, __builtin_return_address(0));
    return __libc_realloc(memory, size);
}

void *aligned_alloc(size_t alignment, size_t size) {
    note(&allocations, __builtin_return_address(0));
    return __libc_memalign(alignment, size);
}

void *memalign(size_t alignment, size_t size) {
    note(&allocations, __builtin_return_address(0));
    return __libc_memalign(alignment, size);
}

int posix_memalign(void **memory, size_t alignment, size_t size) {
    note(&allocations, __builtin_return_address(0));
    *memory = __libc_memalign(alignment, size);
    return *memory != NULL ? 0 : 12; // ENOMEM
}

void free(void *memory) {
    if (memory != NULL) note(&allocations, __builtin_return_address(0));
    __libc_free(memory);
}

int pthread_mutex_lock(pthread_mutex_t *mutex) {
    static int (*_Atomic lock)(pthread_mutex_t *);
    if (atomic_load(&lock) == NULL) {
        void *found = dlsym(RTLD_NEXT, "pthread_mutex_lock");
        int (*function)(pthread_mutex_t *);
        memcpy(&function, &found, sizeof function);
        atomic_store(&lock, function);
    }
    note(&locks, __builtin_return_address(0));
    return atomic_load(&lock)(mutex);
}
#else
static _Atomic bool is_counting;
#endif

// --- counting ---

static void the_counters_count(void **state) {
    (void)state;
    if (!CAN_COUNT) skip();
    pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
    atomic_store(&is_counting, true);
    void *volatile memory = malloc(16);
    free(memory);
    pthread_mutex_lock(&mutex);
    pthread_mutex_unlock(&mutex);
    atomic_store(&is_counting, false);
    assert_int_equal(atomic_exchange(&allocations, 0), 2);
    assert_int_equal(atomic_exchange(&locks, 0), 1);
}

typedef struct counts {
    long allocations, locks;
    bool has_calls;
} counts;

static bool has_calls(tare_session *s) {
    tare_step step = {.struct_size = sizeof step};
    bool found = tare_session_step_count(s) == 0; // without a plan, all are
    for (size_t i = 0; tare_session_get_step(s, i, &step); i++)
        found = found || strcmp(step.kind, "call") == 0;
    return found;
}

// Of the third run: the first makes the plan, after the second calls know how much memory they
// work in.
static counts count_run(const tare_model *model, const tensors *inputs, int threads) {
    tare_session *s = NULL;
    tensors out = {.count = 0};
    const tare_session_options options = {.thread_count = threads};
    CHECK_DONE(tare_session_create(model, &options, &s, job_error()));
    CHECK_DONE(tare_session_run(s, inputs->items, inputs->count, (tare_tensor **)(void *)out.items,
                                MOST_TENSORS, &out.count, job_error()));
    tare_tensor *const *into = (tare_tensor *const *)(const void *)out.items;
    CHECK_DONE(
        tare_session_run_into(s, inputs->items, inputs->count, into, out.count, job_error()));
    atomic_store(&is_counting, true);
    const tare_status status =
        tare_session_run_into(s, inputs->items, inputs->count, into, out.count, NULL);
    atomic_store(&is_counting, false);
    const counts c = {atomic_exchange(&allocations, 0), atomic_exchange(&locks, 0), has_calls(s)};
    CHECK_DONE(status);
    release_tensors(&out);
    tare_session_destroy(s);
    return c;
}

static void check_runs(const char *name, const char *kind, bool may_call, int most_threads,
                       const tare_model *model, const tensors *inputs) {
    for (int threads = 1; threads <= most_threads; threads++) {
        const counts c = count_run(model, inputs, threads);
        if (c.allocations != 0 && !(may_call && c.has_calls))
            fail_msg("%s in %s, %d threads: a run asks %ld times for memory", name, kind, threads,
                     c.allocations);
        if (c.locks != 0)
            fail_msg("%s in %s, %d threads: a run takes %ld locks", name, kind, threads, c.locks);
    }
}

// inputs: a network's; NULL: it is calibrated with a small batch of pictures.
static tare_model *in_integers(const tare_model *model, const tensors *inputs) {
    tare_backend_config *backend = builtin_backend("x86");
    tare_qconfig_mapping *mapping = default_mapping("x86");
    tare_model *p = prepared(model, backend, mapping);
    if (inputs != NULL)
        calibrate_network(p, inputs);
    else
        CALIBRATED(p, 2, 4, 64, 64);
    tare_model *out = lowered(p, backend);
    tare_model_destroy(p);
    tare_qconfig_mapping_destroy(mapping);
    tare_backend_config_destroy(backend);
    return out;
}

static const char calls_in_floats[] = "layers";

static void check_network(void **state) {
    const char *name = *state;
    recorded_case c;
    tare_model *model = NULL;
    if (!CAN_COUNT) skip();
    read_network(name, &c);
    CHECK_DONE(case_model(&c, &model, job_error()));
    const tensors inputs = tensors_of(&c.data, "input");
    check_runs(name, "float", strcmp(name, calls_in_floats) == 0, 2, model, &inputs);
    tare_model *q = in_integers(model, &inputs);
    check_runs(name, "integers", false, 2, q, &inputs);
    tare_model_destroy(q);
    tare_model_destroy(model);
    case_release(&c);
}

// Large enough that threads run whole samples, and some that are left together.
static void samples_on_threads_of_their_own(void **state) {
    (void)state;
    if (!CAN_COUNT) skip();
    module *root = new_tree();
    put_module(root, NULL, "conv", "torch.nn.Conv2d",
               "in_channels=4, out_channels=32, kernel_size=(3, 3), stride=(1, 1), padding=(1, 1), "
               "dilation=(1, 1), groups=1, padding_mode='zeros'");
    tare_model *model = new_model(NULL, root,
                                  "def forward(self, x):\n"
                                  "    conv = self.conv(x)\n"
                                  "    relu = torch.relu(conv)\n"
                                  "    pool = torch.nn.functional.max_pool2d(relu, 2)\n"
                                  "    return pool\n");
    tare_tensor *x = NEW_INPUT(17, 4, 64, 64);
    const tensors inputs = {.items = {x}, .count = 1};
    check_runs("a batch", "float", false, 4, model, &inputs);
    tare_model *q = in_integers(model, NULL);
    check_runs("a batch", "integers", false, 4, q, &inputs);
    tare_model_destroy(q);
    tare_model_destroy(model);
    tare_tensor_release(x);
}

#define NETWORK(name, least_sqnr) {name, check_network, NULL, NULL, (void *)(uintptr_t)name},

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(the_counters_count),
                                       cmocka_unit_test(samples_on_threads_of_their_own),
                                       NETWORKS(NETWORK)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
