// SPDX-License-Identifier: Apache-2.0
// Runs each call on fixed inputs by the interpreter, and compares shapes and values.
#include "support/aten_cases.h"

#include <stdio.h>
#include <string.h>

#include "support/run.h"
#include "support/test.h"

static void check_shape(const char *call, const tare_tensor *t, const char *expected) {
    char found[128] = "";
    size_t at = 0;
    for (int d = 0; d < t->ndim; d++)
        at += (size_t)snprintf(found + at, sizeof found - at, "%s%lld", d > 0 ? "x" : "",
                               (long long)t->shape[d]);
    if (strcmp(found, expected) != 0) fail_msg("%s: shape %s, expected %s", call, found, expected);
}

const char *spelled_aten(const char *call) {
    static char chars[2048];
    size_t at = 0;
    for (; *call != '\0' && at < sizeof chars - 32; call++) {
        if (*call == '@')
            at += (size_t)snprintf(chars + at, sizeof chars - at, "torch.ops.aten.");
        else
            chars[at++] = *call;
    }
    chars[at] = '\0';
    return chars;
}

void check_aten_cases(const aten_case *cases, size_t count) {
    for (size_t k = 0; k < count; k++) {
        tare_tensor *const inputs[] = {COUNTING(-1.5, 0.125, 2, 3, 4),
                                       COUNTING(-1.5, 0.25, 1, 2, 4, 4),
                                       COUNTING(-0.75, 0.125, 2, 2, 3, 3), COUNTING(0.5, 0.25, 2)};
        tare_tensor *y = run_expression("x, i, w, v", spelled_aten(cases[k].call), inputs, 4);
        check_shape(cases[k].call, y, cases[k].shape);
        check_floats(y, cases[k].values, cases[k].count);
    }
}

void refuse_aten(const char *expression, const char *words) {
    module *model = model_of("x", spelled_aten(expression));
    tare_error *err = tare_error_create();
    tare_tensor *out = NULL, *const inputs[] = {COUNTING(0, 1, 2, 2)};
    assert_int_not_equal(run_model(model, inputs, 1, NULL, &out, err), TARE_OK);
    if (strstr(tare_error_message(err), words) == NULL)
        fail_msg("%s: '%s' lacks '%s'", expression, tare_error_message(err), words);
    tare_error_destroy(err);
    tare_tensor_release(inputs[0]);
    tare__module_release(model);
}
