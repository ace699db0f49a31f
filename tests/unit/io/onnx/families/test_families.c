// SPDX-License-Identifier: Apache-2.0
// Node tests of the onnx package, packed by tools/onnx_node_tests.py --pack into
// tests/data/onnx_nodes.zip: NAME/model.onnx, NAME/in.npz, NAME/out.npz.
#include "support/test.h"

#ifdef TARE_HAVE_ONNX

#include <math.h>

#include "io/data/npz.h"
#include "replay/zip_memory.h"
#include "support/models.h"
#include "support/temp.h"

enum { MOST_MEMBER = 1 << 16, MOST_ARRAYS = 8 };

static void extract(unzFile zip, const char *path) {
    static unsigned char bytes[MOST_MEMBER];
    assert_int_equal(unzOpenCurrentFile(zip), UNZ_OK);
    const int size = unzReadCurrentFile(zip, bytes, sizeof bytes);
    assert_in_range(size, 1, MOST_MEMBER - 1);
    assert_int_equal(unzCloseCurrentFile(zip), UNZ_OK);
    temp_write(path, bytes, (size_t)size);
}

static void check_close(const char *test, const tare_tensor *found, const tare_tensor *expected) {
    if (found->dtype != expected->dtype || found->ndim != expected->ndim ||
        memcmp(found->shape, expected->shape, (size_t)found->ndim * sizeof *found->shape) != 0)
        fail_msg("%s: another dtype or shape than expected", test);
    // What float16 can hold of the default tolerance.
    const double relative = found->dtype == TARE_FLOAT16 ? 2e-3 : 1e-3;
    for (int64_t i = 0; i < found->count; i++) {
        const double a = tare__tensor_get(found, i), b = tare__tensor_get(expected, i);
        const bool same =
            a == b || (isnan(a) && isnan(b)) || fabs(a - b) <= 1e-6 + relative * fabs(b);
        if (!same) fail_msg("%s: element %lld is %g, expected %g", test, (long long)i, a, b);
    }
}

static void run_packed(const char *test, const char *model_path, const char *in_path,
                       const char *out_path) {
    map in = {0}, out = {0};
    tare_model *model = NULL;
    tare_session *session = NULL;
    const tare_tensor *inputs[MOST_ARRAYS];
    tare_tensor *outputs[MOST_ARRAYS] = {NULL};
    size_t count = 0;
    CHECK_OK(tare__npz_read(in_path, 0, &in, NULL));
    CHECK_OK(tare__npz_read(out_path, 0, &out, NULL));
    assert_true(in.count <= MOST_ARRAYS && out.count <= MOST_ARRAYS);
    for (size_t i = 0; i < in.count; i++) inputs[i] = in.entries[i].value;
    if (tare_model_read(model_path, NULL, &model, job_error()) != TARE_OK ||
        tare_session_create(model, NULL, &session, job_error()) != TARE_OK ||
        tare_session_run(session, inputs, in.count, outputs, MOST_ARRAYS, &count, job_error()) !=
            TARE_OK)
        fail_msg("%s: %s", test, tare_error_message(job_error()));
    assert_int_equal(count, out.count);
    for (size_t i = 0; i < count; i++) {
        check_close(test, outputs[i], out.entries[i].value);
        tare_tensor_release(outputs[i]);
    }
    tare_session_destroy(session);
    tare_model_destroy(model);
    tare__tensor_map_release(&in);
    tare__tensor_map_release(&out);
}

static void packed_node_tests_pass(void **state) {
    (void)state;
    size_t size = 0, tests = 0;
    unsigned char *bytes = temp_read("tests/data/onnx_nodes.zip", &size);
    zip_memory memory = {.data = bytes, .size = size};
    unzFile zip = unzip_open(&memory);
    assert_non_null(zip);
    for (int found = unzGoToFirstFile(zip); found == UNZ_OK; found = unzGoToNextFile(zip)) {
        char name[256];
        unz_file_info info;
        CHECK_OK(unzGetCurrentFileInfo(zip, &info, name, sizeof name, NULL, 0, NULL, 0));
        char *slash = strchr(name, '/');
        assert_non_null(slash);
        extract(zip, temp_path(slash + 1));
        if (strcmp(slash + 1, "out.npz") != 0) continue; // the last of a test
        *slash = '\0';
        run_packed(name, temp_path("model.onnx"), temp_path("in.npz"), temp_path("out.npz"));
        tests++;
    }
    assert_true(tests > 200);
    (void)unzClose(zip);
    free(bytes);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(packed_node_tests_pass)};
    return cmocka_run_group_tests(tests, temp_make, temp_remove);
}

#else

int main(void) {
    return skip_tests("this build reads no ONNX");
}

#endif
