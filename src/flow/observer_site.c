// SPDX-License-Identifier: Apache-2.0
// Replaces an observer by operators.
#include "flow/observer_site.h"

static graph *graph_of(const observer_site *s) {
    return s->p->model->root->graph;
}

tare_status tare__site_insert(const observer_site *s, node_op op, const char *target,
                              const value *args, size_t arg_count, node **out) {
    const node_spec spec = {.op = op, .target = target, .args = args, .arg_count = arg_count};
    return tare__graph_insert(graph_of(s), &spec, s->observer, out, s->p->err);
}

// Consumes the reference to the tensor.
static tare_status insert_buffer(const observer_site *s, const char *suffix, tare_tensor *tensor,
                                 node **out) {
    module *root = s->p->model->root;
    arena *memory = &s->p->scratch;
    size_t number = 0;
    const char *name = NULL, *prefix = tare__arena_printf(memory, "%s%s", s->prefix, suffix);
    if (prefix != NULL) name = tare__module_free_name(root, memory, prefix, &number);
    const tare_status status = name == NULL
                                   ? tare__out_of_memory(s->p->err)
                                   : tare__module_set_tensor(root, name, tensor, false, s->p->err);
    tare_tensor_release(tensor);
    return status == TARE_OK ? tare__site_insert(s, NODE_GET_ATTR, name, NULL, 0, out) : status;
}

// The observed value is now the result of the last operator.
static void hand_on_handle(const observer_site *s, node *with) {
    node *quantized = tare__node_arg(with, 0);
    if (with == s->watched) return;
    with->debug_handle = s->observer->debug_handle;
    if (quantized != NULL && quantized != s->watched)
        quantized->debug_handle = s->observer->debug_handle;
}

tare_status tare__site_finish(const observer_site *s, node *with) {
    hand_on_handle(s, with);
    TARE_TRY(tare__node_replace_uses(s->observer, with, NULL, s->p->err));
    return tare__graph_erase(graph_of(s), s->observer, s->p->err);
}

// --- decomposed ---

tare_status tare__site_insert_numbers(const observer_site *s, const char *suffix, tare_dtype dtype,
                                      bool per_channel, int64_t count, const double *numbers,
                                      value *out) {
    tare_tensor *t = NULL;
    node *read = NULL;
    TARE_TRY(tare_tensor_create(dtype, per_channel ? 1 : 0, &count, &t, s->p->err));
    for (int64_t i = 0; i < count; i++) tare__tensor_set(t, i, numbers[i]);
    TARE_TRY(insert_buffer(s, suffix, t, &read));
    *out = tare__node_value(read);
    return TARE_OK;
}

// Dequantize takes the parameters of the quantize operator.
static op_name overload(op_id id, const char *name) {
    return tare__overload_name((op_overload){id, false, name});
}

tare_status tare__site_call(const observer_site *s, op_id id, const value *args, size_t count,
                            node **out) {
    const op_name name = tare__op_function_name(tare__op_row(id));
    return tare__site_insert(s, NODE_CALL_FUNCTION, name.text, args, count, out);
}

static tare_status finish_pair(const observer_site *s, const decomposed_form *form,
                               const char *target, value *args, size_t count, node *quantized) {
    const bool says_dtype = form->out_dtype != TARE_DTYPE_UNSET && form->out_dtype != TARE_FLOAT32;
    const keyword kwarg = {.name = "out_dtype", .value = tare__dtype_value(form->out_dtype)};
    args[0] = tare__node_value(quantized);
    const node_spec spec = {.op = NODE_CALL_FUNCTION,
                            .target = target,
                            .args = args,
                            .arg_count = count,
                            .kwargs = &kwarg,
                            .kwarg_count = says_dtype ? 1 : 0};
    node *dequantized = NULL;
    TARE_TRY(tare__graph_insert(graph_of(s), &spec, s->observer, &dequantized, s->p->err));
    return tare__site_finish(s, dequantized);
}

tare_status tare__site_refuse_groups(const observer_site *s) {
    if (!tare__qscheme_is_per_group(s->info->qscheme)) return TARE_OK;
    const tare_status status =
        tare__fail(s->p->err, TARE_UNSUPPORTED,
                   "node '%s': only weights of modules are quantized per group", s->observer->name);
    return tare__hint(s->p->err, status, "choose a scheme per channel or per tensor");
}

tare_status tare__site_decompose(const observer_site *s, const qparams *q,
                                 const decomposed_form *form) {
    TARE_TRY(tare__site_refuse_groups(s));
    const bool per_channel = tare__qscheme_is_per_channel(q->scheme);
    value args[7] = {tare__node_value(s->watched), tare__float((float)q->scale[0]),
                     tare__int((int64_t)q->zero_point[0])};
    size_t count = 3;
    if (per_channel) {
        TARE_TRY(tare__site_insert_numbers(s, "_scale_", TARE_FLOAT32, true, q->count, q->scale,
                                           &args[1]));
        TARE_TRY(tare__site_insert_numbers(s, "_zero_point_", form->zero_point_dtype, true,
                                           q->count, q->zero_point, &args[2]));
        args[count++] = tare__int(q->axis);
    }
    args[count++] = tare__int(q->quant_min);
    args[count++] = tare__int(q->quant_max);
    args[count++] = tare__dtype_value(tare__dtype(s->info->dtype)->storage);
    node *quantized = NULL;
    const op_name quantize = overload(per_channel ? TARE_OP_DECOMPOSED_QUANTIZE_PER_CHANNEL
                                                  : TARE_OP_DECOMPOSED_QUANTIZE_PER_TENSOR,
                                      "default");
    const op_name dequantize = overload(per_channel ? TARE_OP_DECOMPOSED_DEQUANTIZE_PER_CHANNEL
                                                    : TARE_OP_DECOMPOSED_DEQUANTIZE_PER_TENSOR,
                                        "default");
    TARE_TRY(tare__site_insert(s, NODE_CALL_FUNCTION, quantize.text, args, count, &quantized));
    return finish_pair(s, form, dequantize.text, args, count, quantized);
}

static tare_status insert_item(const observer_site *s, node *of, int64_t index, value *out) {
    const value args[] = {tare__node_value(of), tare__int(index)};
    node *item = NULL;
    TARE_TRY(tare__site_call(s, TARE_OP_GETITEM, args, 2, &item));
    *out = tare__node_value(item);
    return TARE_OK;
}

tare_status tare__site_decompose_dynamic(const observer_site *s, const decomposed_form *form) {
    const tare_observer_info *info = s->info;
    const dtype_info *dtype = tare__dtype(info->dtype);
    const bool is_symmetric = info->qscheme == TARE_PER_TENSOR_SYMMETRIC;
    const value low = tare__int(info->has_range ? info->quant_min : dtype->min),
                high = tare__int(info->has_range ? info->quant_max : dtype->max),
                eps = tare__float(form->eps > 0 ? form->eps : 0x1p-23),
                plain = tare__dtype_value(dtype->storage);
    const value wanted[] = {tare__node_value(s->watched), low, high, eps, plain};
    node *chosen = NULL, *quantized = NULL;
    TARE_TRY(tare__site_call(s,
                             is_symmetric ? TARE_OP_DECOMPOSED_CHOOSE_QPARAMS_SYMMETRIC
                                          : TARE_OP_DECOMPOSED_CHOOSE_QPARAMS,
                             wanted, 5, &chosen));
    value args[] = {tare__node_value(s->watched), tare__none(), tare__none(), low, high, plain};
    TARE_TRY(insert_item(s, chosen, 0, &args[1]));
    TARE_TRY(insert_item(s, chosen, 1, &args[2]));
    const op_name quantize = overload(TARE_OP_DECOMPOSED_QUANTIZE_PER_TENSOR, "tensor");
    const op_name dequantize = overload(TARE_OP_DECOMPOSED_DEQUANTIZE_PER_TENSOR, "tensor");
    TARE_TRY(tare__site_insert(s, NODE_CALL_FUNCTION, quantize.text, args, 6, &quantized));
    return finish_pair(s, form, dequantize.text, args, 6, quantized);
}

tare_status tare__site_decompose_half(const observer_site *s) {
    value args[] = {tare__node_value(s->watched), tare__dtype_value(TARE_FLOAT16)};
    node *half = NULL, *full = NULL;
    TARE_TRY(tare__site_call(s, TARE_OP_DECOMPOSED_CONVERT_ELEMENT_TYPE, args, 2, &half));
    args[0] = tare__node_value(half);
    args[1] = tare__dtype_value(TARE_FLOAT32);
    TARE_TRY(tare__site_call(s, TARE_OP_DECOMPOSED_CONVERT_ELEMENT_TYPE, args, 2, &full));
    return tare__site_finish(s, full);
}
