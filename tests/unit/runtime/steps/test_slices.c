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

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(own_slices_change_places)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
