// SPDX-License-Identifier: Apache-2.0
// Gated linear units: one half of the input times the sigmoid of the other, as torch computes it.
#include "ops/compose.h"
#include "ops/families/families.h"
#include "ops/rules.h"

static value glu(composer *c) {
    const tare_tensor *x = tare__compose_need(c, 0);
    const int64_t given = tare__compose_int(c, 1, -1);
    if (x == NULL) return tare__none();
    const int64_t dim = given < 0 ? given + x->ndim : given;
    const char *wrong = x->dtype != TARE_FLOAT32    ? "expected an input of float32"
                        : dim < 0 || dim >= x->ndim ? "the input has no such dimension"
                        : x->shape[dim] % 2 != 0    ? "the dimension has an odd size"
                                                    : NULL;
    if (wrong != NULL) {
        (void)tare__compose_fail(c, wrong);
        return tare__none();
    }
    const value halves =
        COMPOSE(c, "chunk", tare__compose_param(c, 0), tare__int(2), tare__int(given));
    return COMPOSE(c, "mul", tare__compose_item(c, halves, 0),
                   COMPOSE(c, "sigmoid", tare__compose_item(c, halves, 1)));
}

static const op_info rows[] = {
    COMPOSED_ROW(glu, "torch.nn.functional.glu|torch.ops.aten.glu.default", NULL, "input/self|dim"),
};

const op_table tare__gate_ops = OP_TABLE(rows);
