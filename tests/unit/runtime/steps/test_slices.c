// SPDX-License-Identifier: Apache-2.0
// Slices that are written at given indices: nothing is read after it was written.
#include "support/test.h"

#include "support/models.h"
#include "support/plan_checks.h"

// A tensor's own slices, turned round.
static void own_slices_change_places(void **state) {
    static const char *const bodies[] = {"    y = torch.index_copy(a, 0, i, a)\n",
                                         "    y = torch.index_put(a, [i], a)\n"};
    (void)state;
    for (size_t k = 0; k < sizeof bodies / sizeof *bodies; k++) {
        char code[512];
        tare_tensor *x = NEW_INPUT(3, 6, 4, 5);
        snprintf(code, sizeof code,
                 "def forward(self, x):\n"
                 "    a = x * 2\n"
                 "    i = torch.arange(2, -1, -1)\n"
                 "%s"
                 "    return y\n",
                 bodies[k]);
        tare_model *m = new_model(NULL, new_tree(), code);
        tare_session *s = session_of(m, false);
        tare_tensor *y = output_of(s, x);
        const float *from = tare_tensor_data(x), *to = tare_tensor_data(y);
        for (int64_t i = 0; i < x->count; i++)
            assert_true(to[i] == 2 * from[(2 - i / 120) * 120 + i % 120]);
        tare_tensor_release(y);
        tare_session_destroy(s);
        tare_model_destroy(m);
        tare_tensor_release(x);
    }
}

// What y becomes, and whether it is written into the memory of the old tensor.
static const struct place {
    const char *line;
    bool is_in_place;
} places[] = {
    {"b = torch.narrow(a, 1, 1, 2)\n    c = torch.relu(b)\n    y = torch.slice_scatter(a, c, 1, 1, "
     "3, 1)",
     true},
    {"b = torch.narrow(a, 2, 1, 2)\n    c = b * 3\n    y = torch.slice_scatter(a, c, 2, 0, 4, 2)",
     true},
    {"b = torch.amax(a, 3)\n    y = torch.select_scatter(a, b, 3, -1)", true},
    {"b = torch.amax(a, 0)\n    c = torch.select_scatter(a, b, 0, 1)\n    y = c + a", false},
    {"b = torch.amax(a, (0, 1))\n    c = torch.amax(b, 1)\n    d = torch.narrow(c, 0, 0, 4)\n"
     "    y = torch.diagonal_scatter(b, d, 0, 0, 1)",
     true},
    {"y = torch.slice_scatter(a, a, 0, 0, 3, 1)", false},
};

static void check_step(const tare_session *s, size_t which) {
    assert_int_equal(count_steps(s, "place", places[which].is_in_place ? "in place" : "after"), 1);
    assert_int_equal(count_steps(s, "call", NULL), 0);
}

static void boxes_are_replaced(void **state) {
    (void)state;
    tare_tensor *x = NEW_INPUT(3, 6, 4, 5);
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        char code[512];
        (void)snprintf(code, sizeof code,
                       "def forward(self, x):\n    a = x * 2\n    %s\n    return y\n",
                       places[i].line);
        tare_model *m = new_model(NULL, new_tree(), code);
        check_plans(m, x, check_step, i);
        check_run_without_memory(m, NULL, (const tare_tensor *const[]){x}, 1);
        tare_model_destroy(m);
    }
    tare_tensor_release(x);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(own_slices_change_places),
        cmocka_unit_test(boxes_are_replaced),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
