// SPDX-License-Identifier: Apache-2.0
// Padding: in the layout in which its input lies, with the reference's bits.
#include "support/test.h"

#include "support/models.h"
#include "support/plan_checks.h"

typedef struct network {
    const char *name, *body;
} network;

#define PAD(name, arguments)                                                                       \
    {                                                                                              \
        name, "    a = torch.exp(x)\n"                                                             \
              "    y = torch.nn.functional.pad(a, " arguments ")\n"                                \
              "    z = torch.tanh(y)\n"                                                            \
              "    return z\n"                                                                     \
    }
// Resized images lie channels last.
#define PAD_PIXELS(name, arguments)                                                                \
    {                                                                                              \
        name, "    a = torch.nn.functional.interpolate(x, scale_factor = 2)\n"                     \
              "    y = torch.nn.functional.pad(a, " arguments ")\n"                                \
              "    z = torch.nn.functional.max_pool2d(y, 2, 1)\n"                                  \
              "    return z\n"                                                                     \
    }

static const network networks[] = {
    PAD("zeros", "[1, 2, 3, 0]"),
    PAD("another constant", "[1, 2], 'constant', 1.5"),
    PAD("rows alone", "[0, 0, 1, 1], 'constant', -2.5"),
    PAD("channels and samples", "[0, 0, 0, 0, 1, 2, 2, 0]"),
    PAD("cropping", "[-1, -2, 0, -1]"),
    PAD("cropping and filling", "[-1, 2, 2, -1], 'constant', 3.0"),
    PAD("reflection", "[2, 1, 1, 3], 'reflect'"),
    PAD("replication", "[2, 1, 1, 3], 'replicate'"),
    PAD("replication of a cropped image", "[-2, 1, 1, -3], 'replicate'"),
    PAD("around", "[2, 1, 1, 3], 'circular'"),
    PAD_PIXELS("zeros around pixels", "[0, 1, 0, 1]"),
    PAD_PIXELS("another constant around pixels", "[2, 1, 1, 0], 'constant', 0.5"),
    PAD_PIXELS("channels", "[0, 0, 0, 0, 1, 2]"),
    PAD_PIXELS("reflected pixels", "[1, 1, 2, 0], 'reflect'"),
    PAD_PIXELS("cropped pixels", "[-1, -1, -2, 0]"),
};

static void check_steps(const tare_session *s, size_t which) {
    if (count_steps(s, "pad", NULL) != 1)
        fail_msg("%s: %zu steps", networks[which].name, count_steps(s, "pad", NULL));
    check_calls(s, "", networks[which].name);
}

static void rows_are_copied_and_filled(void **state) {
    tare_tensor *x = NEW_INPUT(2, 6, 4, 5);
    (void)state;
    for (size_t i = 0; i < sizeof networks / sizeof *networks; i++) {
        char code[1024];
        (void)snprintf(code, sizeof code, "def forward(self, x):\n%s", networks[i].body);
        tare_model *m = new_model(NULL, new_tree(), code);
        check_plans(m, x, check_steps, i);
        tare_model_destroy(m);
    }
    tare_tensor_release(x);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(rows_are_copied_and_filled)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
