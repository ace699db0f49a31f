// SPDX-License-Identifier: Apache-2.0
// Checks the inputs of a run against the model's description of them.
#include "runtime/session/inputs.h"

#include <stdio.h>

#include "core/memory/alloc.h"
#include "core/text/text.h"
#include "model/model.h"

tare_status tare__session_inputs_describe(const tare_model *model, session_inputs *out,
                                          tare_error *err) {
    const size_t count = tare_model_input_count(model);
    out->items = tare__alloc_zeroed(count + 1, sizeof *out->items);
    if (out->items == NULL) return tare__out_of_memory(err);
    for (const node *n = model->root->graph->first; n != NULL; n = n->next) {
        if (!tare__node_is_input(n)) continue;
        TARE_TRY(tare__describe_input(n, &out->items[out->count], err));
        out->count++;
    }
    return TARE_OK;
}

void tare__session_inputs_release(session_inputs *s) {
    tare__free(s->items);
    *s = (session_inputs){0};
}

// "torch.float32 [any, 3, 224, 224]"
static void write_input(text *out, tare_dtype dtype, int ndim, const int64_t *shape) {
    tare__text_printf(out, "%s [",
                      dtype != TARE_DTYPE_UNSET ? tare_dtype_name(dtype) : "any dtype");
    for (int d = 0; d < ndim; d++) {
        if (d > 0) tare__text_append(out, ", ");
        if (shape[d] < 0)
            tare__text_append(out, "any");
        else
            tare__text_printf(out, "%lld", (long long)shape[d]);
    }
    tare__text_append(out, "]");
}

static tare_status refuse(const data_input *in, const tare_tensor *x, tare_error *err) {
    text expected = {0}, found = {0};
    write_input(&expected, in->dtype, in->ndim, in->shape);
    write_input(&found, x->dtype, x->ndim, x->shape);
    const tare_status status =
        tare__fail(err, TARE_INVALID_ARGUMENT, "input '%s': expected %s, found %s", in->name,
                   tare__text_chars(&expected), tare__text_chars(&found));
    tare__text_release(&expected);
    tare__text_release(&found);
    return status;
}

// Quantized inputs take the place of float ones if prepare was told so.
static bool has_other_dtype(const data_input *in, const tare_tensor *x) {
    return !in->is_example && x->q == NULL && in->dtype != TARE_DTYPE_UNSET &&
           in->dtype != x->dtype;
}

static bool has_other_rank(const data_input *in, const tare_tensor *x) {
    return in->ndim >= 0 && in->ndim != x->ndim;
}

tare_status tare__session_inputs_check(const session_inputs *s, const tare_tensor *const *inputs,
                                       size_t count, tare_error *err) {
    for (size_t i = 0; i < count && i < s->count; i++)
        if (inputs[i] != NULL && has_other_dtype(&s->items[i], inputs[i]))
            return refuse(&s->items[i], inputs[i], err);
    return TARE_OK;
}

tare_status tare__session_inputs_blame(const session_inputs *s, const tare_tensor *const *inputs,
                                       size_t count, tare_status status, tare_error *err) {
    if (status != TARE_INVALID_ARGUMENT) return status;
    for (size_t i = 0; i < count && i < s->count; i++) {
        if (inputs[i] == NULL || !has_other_rank(&s->items[i], inputs[i])) continue;
        char reason[400]; // the node's error
        (void)snprintf(reason, sizeof reason, "%s", tare_error_message(err));
        return tare__hint(err, refuse(&s->items[i], inputs[i], err), "%s", reason);
    }
    return status;
}
