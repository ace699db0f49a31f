// SPDX-License-Identifier: Apache-2.0
// Every allocation of readers and writers fails, once and from then on: those of the libraries
// under them (jansson, zlib, protobuf-c, libpng, libjpeg, the C library itself) too, because the C
// library's functions stand here. A job then either gives the very result of an undisturbed one or
// is out of memory: never "damaged", nothing left behind, no crash. oneDNN has no part in these
// jobs. TARE_TEST_LONG in the environment takes every allocation; else some are left out.
#define _GNU_SOURCE // RTLD_NEXT
#include "support/test.h"

#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <stdatomic.h>

#include "core/json/json.h"
#include "core/system/file.h"
#include "core/tensor/map.h"
#include "io/data/npz.h"
#include "io/images/image.h"
#include "support/models.h"
#include "support/temp.h"

#if defined(__GLIBC__) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#define CAN_DENY 1
#else
#define CAN_DENY 0
#endif

static _Atomic bool is_counting;
static _Atomic long requests;
static long first_denied, last_denied; // by number, from 1

#if CAN_DENY
// NOLINTBEGIN(bugprone-reserved-identifier): what glibc calls them itself
void *__libc_malloc(size_t size);
void *__libc_calloc(size_t count, size_t size);
void *__libc_realloc(void *memory, size_t size);
void *__libc_memalign(size_t alignment, size_t size);
void *memalign(size_t alignment, size_t size);
// NOLINTEND(bugprone-reserved-identifier)

static bool is_denied(void) {
    if (!atomic_load(&is_counting)) return false;
    const long number = atomic_fetch_add(&requests, 1) + 1;
    if (number < first_denied || number > last_denied) return false;
    errno = ENOMEM;
    return true;
}

void *malloc(size_t size) {
    return is_denied() ? NULL : __libc_malloc(size);
}

void *calloc(size_t count, size_t size) {
    return is_denied() ? NULL : __libc_calloc(count, size);
}

void *realloc(void *memory, size_t size) {
    return is_denied() ? NULL : __libc_realloc(memory, size);
}

void *aligned_alloc(size_t alignment, size_t size) {
    return is_denied() ? NULL : __libc_memalign(alignment, size);
}

void *memalign(size_t alignment, size_t size) {
    return is_denied() ? NULL : __libc_memalign(alignment, size);
}

int posix_memalign(void **memory, size_t alignment, size_t size) {
    if (is_denied()) return ENOMEM;
    *memory = __libc_memalign(alignment, size);
    return *memory != NULL ? 0 : ENOMEM;
}
#endif

// --- what jobs give ---

// All that a job gave, in a number: equal results have equal numbers.
static uint64_t sum;

static void add_bytes(const void *bytes, size_t size) {
    const unsigned char *at = bytes;
    for (size_t i = 0; i < size; i++) sum = (sum ^ at[i]) * UINT64_C(1099511628211);
}

static bool add_chars(void *user, const char *chars, size_t length) {
    (void)user;
    add_bytes(chars, length);
    return true;
}

static void add_tensor(const tare_tensor *t) {
    add_bytes(t->shape, (size_t)t->ndim * sizeof *t->shape);
    add_bytes(t->data, tare__tensor_bytes(t));
}

// What stands in the folder of temporary files, whatever its name: its bytes count.
static size_t files_left(void) {
    size_t count = 0;
    DIR *folder = opendir(temp_folder());
    assert_non_null(folder);
    for (const struct dirent *e; (e = readdir(folder)) != NULL;) {
        if (e->d_name[0] == '.') continue;
        size_t size = 0;
        unsigned char *bytes = temp_read(temp_path(e->d_name), &size);
        add_bytes(bytes, size);
        free(bytes);
        count++;
    }
    (void)closedir(folder);
    return count;
}

static void remove_files(void) {
    DIR *folder = opendir(temp_folder());
    assert_non_null(folder);
    for (const struct dirent *e; (e = readdir(folder)) != NULL;)
        if (e->d_name[0] != '.') (void)remove(temp_path(e->d_name));
    (void)closedir(folder);
}

// --- jobs ---

typedef struct job {
    const char *name;
    tare_status (*run)(const struct job *job, tare_error *err);
    const char *input;
    const char *output;  // in the folder of temporary files; NULL: a reader
    long step;           // of the allocations, one in so many is denied
    const char *feature; // that the build may lack, as `tare version` names it; NULL: none
} job;

static const tare_model *model_at_hand; // of writers, read before

static tare_status read_npz(const job *j, tare_error *err) {
    map tensors = {0};
    const tare_status status = tare__npz_read(j->input, 0, &tensors, err);
    for (size_t i = 0; status == TARE_OK && i < tensors.count; i++)
        add_tensor(tensors.entries[i].value);
    tare__tensor_map_release(&tensors);
    return status;
}

static tare_status read_model(const job *j, tare_error *err) {
    tare_model *model = NULL;
    TARE_TRY(tare_model_read(j->input, NULL, &model, err));
    const tare_status status = tare_model_print(model, TARE_PRINT_MODEL, add_chars, NULL, err);
    tare_model_destroy(model);
    return status;
}

static tare_status read_image(const job *j, tare_error *err) {
    image picture = {0};
    TARE_TRY(tare__image_read(j->input, &picture, err));
    add_bytes(picture.pixels,
              (size_t)picture.width * (size_t)picture.height * (size_t)picture.channels);
    tare__image_release(&picture);
    return TARE_OK;
}

static tare_status read_json(const job *j, tare_error *err) {
    json_t *parsed = NULL;
    TARE_TRY(tare__json_parse_file(j->input, &parsed, err));
    const size_t size = json_object_size(parsed);
    add_bytes(&size, sizeof size);
    json_decref(parsed);
    return TARE_OK;
}

static tare_status read_data(const job *j, tare_error *err) {
    tare_data *data = NULL;
    tare_batch batch = {0};
    bool done = false;
    const tare_data_options options = {.batch_size = 8, .sample_limit = 24};
    TARE_TRY(tare_data_open(j->input, model_at_hand, &options, &data, err));
    tare_status status = tare_data_next(data, &batch, &done, err);
    while (status == TARE_OK && !done) {
        for (size_t i = 0; i < batch.input_count; i++) add_tensor(batch.inputs[i]);
        status = tare_data_next(data, &batch, &done, err);
    }
    tare_data_close(data);
    return status;
}

static tare_status write_arrays(const job *j, tare_error *err) {
    tare_tensor *x = NULL;
    const int64_t shape[] = {40, 50};
    TARE_TRY(tare_tensor_create(TARE_FLOAT32, 2, shape, &x, err));
    const char *const names[] = {"x", "y"};
    const tare_tensor *const tensors[] = {x, x};
    const tare_status status = tare_arrays_write(temp_path(j->output), names, tensors, 2, err);
    tare_tensor_release(x);
    return status;
}

static tare_status write_onnx(const job *j, tare_error *err) {
    const int64_t sizes[] = {-1, 1, 8, 8};
    const tare_input_shape shape = {"x", 4, sizes};
    const tare_onnx_options options = {
        .struct_size = sizeof options, .shapes = &shape, .shape_count = 1, .report = add_chars};
    return tare_model_write_onnx(model_at_hand, temp_path(j->output), &options, err);
}

static tare_status write_pt2(const job *j, tare_error *err) {
    return tare_model_write_pt2(model_at_hand, temp_path(j->output), err);
}

static tare_status write_own(const job *j, tare_error *err) {
    return tare_model_write(model_at_hand, temp_path(j->output), err);
}

static const job jobs[] = {
    {"npz read", read_npz, "data/digits/test.npz", NULL, 1, NULL},
    {"npy read", read_data, "tests/data/one_digit.npy", NULL, 1, NULL},
    {"csv read", read_data, "data/digits/digits.csv.gz", NULL, 1, NULL},
    {"json read", read_json, "backends/x86.json", NULL, 1, NULL},
    {"png read", read_image, "tests/fuzz/corpus/image/png_rgb", NULL, 1, "libpng"},
    {"png interlaced", read_image, "tests/fuzz/corpus/image/png_palette_alpha", NULL, 1, "libpng"},
    {"jpeg read", read_image, "tests/fuzz/corpus/image/jpeg_2", NULL, 1, "libjpeg"},
    {"jpeg progressive", read_image, "tests/fuzz/corpus/image/jpeg_progressive", NULL, 1,
     "libjpeg"},
    {"own read", read_model, "data/digits/digits.safetensors", NULL, 1, NULL},
    {"onnx read", read_model, "tests/fuzz/corpus/onnx/conv", NULL, 1, "ONNX"},
    {"pt2 read", read_model, "tests/fuzz/corpus/pt2/arguments", NULL, 1, NULL},
    {"npz write", write_arrays, NULL, "out.npz", 1, NULL},
    {"safetensors write", write_arrays, NULL, "out.safetensors", 1, NULL},
    {"own write", write_own, "data/digits/digits.safetensors", "out.safetensors", 1, NULL},
    {"onnx write", write_onnx, "data/digits/digits.safetensors", "out.onnx", 1, "ONNX"},
    {"quantized onnx write", write_onnx, "quantized", "out.onnx", 7, "ONNX"},
    {"pt2 write", write_pt2, "tests/fuzz/corpus/pt2/arguments", "out.pt2", 1, NULL},
};

// --- denying ---

typedef struct outcome {
    tare_status status;
    uint64_t sum;
    long requests;
    size_t files;
    char message[512];
} outcome;

static outcome attempt(const job *j, long first, long last) {
    tare_error *err = tare_error_create();
    first_denied = first;
    last_denied = last;
    sum = 0;
    atomic_store(&requests, 0);
    atomic_store(&is_counting, true);
    const tare_status status = j->run(j, err);
    atomic_store(&is_counting, false);
    outcome o = {.status = status, .requests = atomic_load(&requests)};
    if (j->output != NULL) o.files = files_left();
    o.sum = sum;
    (void)snprintf(o.message, sizeof o.message, "%s: %s", tare_error_where(err),
                   tare_error_message(err));
    remove_files();
    tare_error_destroy(err);
    return o;
}

static void check_attempt(const job *j, const outcome *whole, long first, long last) {
    const outcome o = attempt(j, first, last);
    const char *how = last > first ? "from there on" : "alone";
    if (o.status != TARE_OK && o.status != TARE_OUT_OF_MEMORY)
        fail_msg("%s: without allocation %ld of %ld (%s) it says '%s'", j->name, first,
                 whole->requests, how, o.message);
    if (o.status != TARE_OK && o.files != 0)
        fail_msg("%s: without allocation %ld of %ld (%s) it leaves %zu files", j->name, first,
                 whole->requests, how, o.files);
    if (o.status == TARE_OK && (o.sum != whole->sum || o.files != whole->files))
        fail_msg("%s: without allocation %ld of %ld (%s) it gives something else", j->name, first,
                 whole->requests, how);
}

static tare_model *open_model(const char *path) {
    tare_model *model = NULL;
    if (path != NULL && strcmp(path, "quantized") == 0) return digits_in_integers();
    const bool is_model = path != NULL && strstr(path, "data/digits/test") == NULL;
    CHECK_DONE(tare_model_read(is_model ? path : "data/digits/digits.safetensors", NULL, &model,
                               job_error()));
    return model;
}

static void check_job(void **state) {
    const job *j = *state;
    if (!CAN_DENY) skip();
    const bool writes = j->output != NULL;
    tare_model *model = open_model(writes ? j->input : NULL);
    model_at_hand = model;
    (void)attempt(j, 0, 0); // what the C library makes once is there afterwards
    const outcome whole = attempt(j, 0, 0);
    if (whole.status == TARE_UNSUPPORTED && j->feature != NULL) {
        tare_model_destroy(model);
        skip();
    }
    if (whole.status != TARE_OK) fail_msg("%s: %s", j->name, whole.message);
    const long step = getenv("TARE_TEST_LONG") != NULL ? 1 : j->step;
    for (long n = 1; n <= whole.requests; n += step) {
        check_attempt(j, &whole, n, n);
        check_attempt(j, &whole, n, INT32_MAX);
    }
    tare_model_destroy(model);
}

// --- the seam itself ---

static void denied_requests_fail(void **state) {
    (void)state;
    if (!CAN_DENY) skip();
    first_denied = last_denied = 2;
    atomic_store(&requests, 0);
    atomic_store(&is_counting, true);
    void *volatile one = malloc(16);
    void *volatile two = calloc(4, 4);
    void *volatile three = malloc(16);
    atomic_store(&is_counting, false);
    assert_non_null(one);
    assert_null(two);
    assert_non_null(three);
    free(one);
    free(three);
}

int main(void) {
    enum { COUNT = sizeof jobs / sizeof *jobs };
    struct CMUnitTest tests[COUNT + 1] = {cmocka_unit_test(denied_requests_fail)};
    for (size_t i = 0; i < COUNT; i++)
        tests[i + 1] =
            (struct CMUnitTest){jobs[i].name, check_job, NULL, NULL, (void *)(uintptr_t)&jobs[i]};
    return cmocka_run_group_tests(tests, temp_make, temp_remove);
}
