// SPDX-License-Identifier: Apache-2.0
// Graphs inside a graph: their rows of the records are sorted once, and the work of passes is
// linear in the number of graphs.
#include "model/nested/nested.h"

#include "core/text/text.h"
#include "support/faults.h"
#include "support/models.h"
#include "support/test.h"

// A model of `count` operators `cond`, one behind another, whose graphs are all different ones.
static tare_model *chain(int count) {
    module *root = new_tree();
    text code = {0};
    tare__text_append(&code, "def forward(self, p, x):\n");
    for (int i = 0; i < 2 * count; i++) {
        char name[32];
        (void)snprintf(name, sizeof name, "g%d", i);
        tare_model *inner = new_model(NULL, new_tree(),
                                      "def forward(self, x):\n"
                                      "    y = torch.ops.aten.relu.default(x)\n"
                                      "    z = torch.ops.aten.add.Tensor(y, x)\n"
                                      "    return (z,)\n");
        CHECK_DONE(tare__module_set_child(root, name, inner->root, job_error()));
        tare_model_destroy(inner);
        tare__text_printf(&code, "    %s = self.%s\n", name, name);
    }
    for (int i = 0; i < count; i++) {
        tare__text_printf(&code, "    r%d = torch.ops.higher_order.cond(p, g%d, g%d, [", i, 2 * i,
                          2 * i + 1);
        if (i > 0)
            tare__text_printf(&code, "x%d])\n", i - 1);
        else
            tare__text_append(&code, "x])\n");
        tare__text_printf(&code, "    x%d = r%d[0]\n", i, i);
    }
    tare__text_printf(&code, "    return (x%d,)\n", count - 1);
    tare_model *model = new_model(NULL, root, tare__text_chars(&code));
    tare__text_release(&code);
    return model;
}

static tare_tensor *filled(tare_dtype dtype, int ndim, const int64_t *shape) {
    tare_tensor *t = NULL;
    CHECK_DONE(tare_tensor_create(dtype, ndim, shape, &t, job_error()));
    for (int64_t i = 0; i < t->count; i++) tare__tensor_set(t, i, 1);
    return t;
}

// Allocations of prepare, convert, lower and a preview of a chain of `count` operators.
enum { JOBS = 4 };
static void count_work(int count, long work[JOBS]) {
    tare_model *model = chain(count), *converted = NULL, *lowered = NULL;
    tare_tensor *p = filled(TARE_BOOL, 0, NULL), *x = filled(TARE_FLOAT32, 1, (int64_t[]){4});
    const tare_tensor *const inputs[] = {p, x};
    faults_order((fault_order){.kinds = FAULT_MEMORY});
    tare_model *prepared = prepared_program(model);
    work[0] = faults_count();
    CHECK_DONE(tare_calibrate(prepared, inputs, 2, job_error()));
    text out = {0};
    faults_order((fault_order){.kinds = FAULT_MEMORY});
    CHECK_DONE(tare_model_preview(prepared, false, tare__text_append_writer, &out, job_error()));
    work[1] = faults_count();
    faults_order((fault_order){.kinds = FAULT_MEMORY});
    CHECK_DONE(tare_convert_pt2e(prepared, NULL, &converted, job_error()));
    work[2] = faults_count();
    faults_order((fault_order){.kinds = FAULT_MEMORY});
    CHECK_DONE(tare_lower_pt2e(converted, NULL, &lowered, job_error()));
    work[3] = faults_count();
    faults_end();
    assert_int_equal(lowered->op_count, 6 * (size_t)count); // cond, its item, twice two inside
    tare__text_release(&out);
    tare_tensor_release(p);
    tare_tensor_release(x);
    tare_model_destroy(model);
    tare_model_destroy(prepared);
    tare_model_destroy(converted);
    tare_model_destroy(lowered);
}

// Lists that grow by doubling allocate a little less often per row the longer they are.
static void work_is_linear_in_the_number_of_graphs(void **state) {
    (void)state;
    long few[JOBS], many[JOBS];
    count_work(8, few);
    count_work(64, many);
    for (int i = 0; i < JOBS; i++) assert_in_range(many[i], 4 * few[i], 8 * few[i]);
}

// --- sorting ---

typedef struct names {
    const char *const *of;
    size_t asked;
} names;

static const char *name_at(const void *list, size_t row) {
    names *n = (names *)list; // NOLINT: counts
    n->asked++;
    return n->of[row];
}

static void rows_are_sorted_by_looking_at_each_once(void **state) {
    (void)state;
    static const char *const of[] = {"g1/y", "x",    "g0/g1/y", NULL, "g1/z",
                                     "",     "g9/y", "g0/y",    "g1"};
    enum { COUNT = sizeof of / sizeof *of, GRAPHS = 4 };
    static const size_t sorted[] = {2, 7, 0, 4, 1, 3, 5, 6, 8};
    static const size_t first[GRAPHS + 2] = {0, 2, 4, 4, 4, COUNT};
    tare_model *model = chain(GRAPHS / 2);
    nested_graphs g = {0};
    nested_rows rows = {0};
    names n = {.of = of};
    CHECK_DONE(tare__nested_list(model, &g, job_error()));
    assert_int_equal(g.count, GRAPHS);
    CHECK_DONE(tare__nested_sort(&g, &n, COUNT, name_at, &rows, job_error()));
    assert_int_equal(n.asked, COUNT);
    for (size_t i = 0; i < COUNT; i++) assert_int_equal(rows.items[i], sorted[i]);
    for (size_t i = 0; i < GRAPHS + 2; i++) assert_int_equal(rows.first[i], first[i]);
    tare__nested_release(&g);
    tare_model_destroy(model);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(work_is_linear_in_the_number_of_graphs),
        cmocka_unit_test(rows_are_sorted_by_looking_at_each_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
