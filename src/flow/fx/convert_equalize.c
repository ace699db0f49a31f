// SPDX-License-Identifier: Apache-2.0
// Convert: input-weight equalization.
#include "flow/fx/equalize.h"

#include <math.h>
#include <string.h>

#include "core/tensor/map.h"
#include "io/native/model_file.h"
#include "ops/op.h"

static bool is_layer(const op_info *op) {
    return tare__op_id(op) == TARE_OP_LINEAR || tare__op_has(op, OP_CONVOLUTION);
}

bool tare__can_equalize(const tare_model *model, const node *n) {
    if (is_layer(tare__function_row(n)) && tare__uses_first_name(n)) return true;
    const module *m = tare__called_module(model, n);
    if (m == NULL) return false;
    const bool is_plain = m->class->role == ROLE_FLOAT && m->class->fused == FUSED_NONE;
    const bool has_relu = m->class->role == ROLE_FUSED && m->class->fused == FUSED_RELU;
    return (is_plain || has_relu) && is_layer(tare__class_row(m->class));
}

bool tare__is_equalized_weight(int64_t weight_index, const node *n, const node *arg) {
    if (weight_index >= 0 && tare__node_arg(n, (size_t)weight_index) == arg) return true;
    const value *v = tare__node_kwarg(n, "weight");
    return v != NULL && v->kind == VALUE_NODE && v->as.node == arg;
}

// The scale of each channel of an input; count 0: no scaling (torch's tensor(1)).
typedef struct channel_scales {
    float *values;
    int64_t count;
    int ndim; // of the input
} channel_scales;

typedef struct equalize_pass {
    convert_pass *convert;
    channel_scales *scales; // by id, for an input's equalization node and its operator
    bool *is_equalized;     // by id: operators with such an input
    size_t first_new;
} equalize_pass;

static tare_error *err_of(const equalize_pass *p) {
    return p->convert->base->err;
}
static tare_model *model_of(const equalize_pass *p) {
    return p->convert->base->model;
}

// --- ranges of observers ---

// min and max in the scratch arena; *count is 0 if nothing was observed.
static tare_status read_range(const equalize_pass *p, const module *observer, float **min,
                              float **max, int64_t *count) {
    map state = {0};
    tare_status status = tare__observer_state_io.save(observer, &state, err_of(p));
    const tare_tensor *least = tare__map_get(&state, "min_val");
    const tare_tensor *most = tare__map_get(&state, "max_val");
    *count = 0;
    if (status == TARE_OK && least != NULL && most != NULL && least->count == most->count) {
        arena *a = &p->convert->base->scratch;
        *min = tare__arena_array(a, (size_t)least->count + 1, sizeof **min);
        *max = tare__arena_array(a, (size_t)least->count + 1, sizeof **max);
        if (*min == NULL || *max == NULL) status = tare__out_of_memory(err_of(p));
        for (int64_t i = 0; status == TARE_OK && i < least->count; i++) {
            (*min)[i] = (float)tare__tensor_get(least, i);
            (*max)[i] = (float)tare__tensor_get(most, i);
        }
        *count = least->count;
    }
    tare__tensor_map_release(&state);
    return status;
}

static tare_status put_number(map *state, const char *name, float v, tare_error *err) {
    tare_tensor *t = tare__map_get(state, name);
    if (t == NULL || t->count != 1) return TARE_OK; // it has no such range
    tare__tensor_set(t, 0, (double)v);
    (void)err;
    return TARE_OK;
}

// Sets the range that the observer has recorded.
static tare_status set_range(const equalize_pass *p, module *observer, float min, float max) {
    map state = {0};
    tare_status status = tare__observer_state_io.save(observer, &state, err_of(p));
    if (status == TARE_OK) status = put_number(&state, "min_val", min, err_of(p));
    if (status == TARE_OK) status = put_number(&state, "max_val", max, err_of(p));
    if (status == TARE_OK) status = tare__observer_state_io.load(observer, &state, err_of(p));
    tare__tensor_map_release(&state);
    return status;
}

// Clears what the observer has recorded.
static tare_status reset(const equalize_pass *p, module *observer) {
    const map nothing = {0};
    return tare__observer_state_io.load(observer, &nothing, err_of(p));
}

// --- scales ---

static node *find_operator(const equalize_pass *p, const node *equalizer) {
    for (size_t i = 0; i < equalizer->user_count; i++)
        if (tare__can_equalize(model_of(p), equalizer->users[i])) return equalizer->users[i];
    return NULL;
}

// The node that observes a function's weight; NULL: none.
static node *find_weight_equalizer(const equalize_pass *p, const node *op) {
    for (size_t i = 0; i < op->input_count; i++) {
        bool is_input = false;
        if (tare__is_equalizer_node(model_of(p), op->inputs[i], &is_input) && !is_input)
            return op->inputs[i];
    }
    return NULL;
}

// Does another node call the same module?
static bool is_called_elsewhere(const equalize_pass *p, const node *caller) {
    const module *m = tare__called_module(model_of(p), caller);
    for (const node *n = caller->owner->first; n != NULL && m != NULL; n = n->next)
        if (n != caller && tare__called_module(model_of(p), n) == m) return true;
    return false;
}

static module *weighted_module(const equalize_pass *p, const node *op) {
    module *m = tare__called_module(model_of(p), op);
    return m != NULL && m->class->role == ROLE_FUSED ? m->children[0].module : m;
}

// The range of each column of a weight; for a module's, computed by a new observer.
static tare_status weight_range(const equalize_pass *p, const node *op, float **min, float **max,
                                int64_t *count) {
    *count = 0;
    if (op->op == NODE_CALL_FUNCTION) {
        const node *watch = find_weight_equalizer(p, op);
        return watch != NULL
                   ? read_range(p, tare__called_module(model_of(p), watch), min, max, count)
                   : TARE_OK;
    }
    const prepared_node *known = tare__prepared_node(p->convert->prepared, op->name);
    const tare_tensor *weight = tare__module_tensor(weighted_module(p, op), "weight");
    if (known == NULL || known->equalization == NULL || weight == NULL)
        return tare__fail(err_of(p), TARE_INVALID_ARGUMENT,
                          "No equalization qconfig found for op node %s", op->name);
    module *observer = NULL;
    TARE_TRY(tare__observer_spec_instantiate(&model_of(p)->context->observers,
                                             known->equalization->weight, &observer, err_of(p)));
    tare_status status = tare__observer_update(observer, weight, err_of(p));
    if (status == TARE_OK) status = read_range(p, observer, min, max, count);
    tare__module_release(observer);
    return status;
}

// s = sqrt(weight range / input range) in float32; 1 if that is no positive number.
static float scale_of(float weight_min, float weight_max, float input_min, float input_max) {
    const float s = sqrtf((weight_max - weight_min) / (input_max - input_min));
    return isfinite(s) && s != 0.0f ? s : 1.0f;
}

static tare_status find_scales(equalize_pass *p, const node *equalizer) {
    float *wmin = NULL, *wmax = NULL, *xmin = NULL, *xmax = NULL;
    int64_t weight_count = 0, count = 0;
    const node *op = find_operator(p, equalizer);
    if (op == NULL)
        return tare__fail(err_of(p), TARE_INVALID_ARGUMENT,
                          "node '%s': Expected an operation node after the input equalization "
                          "observer",
                          equalizer->name);
    TARE_TRY(tare__at(err_of(p), weight_range(p, op, &wmin, &wmax, &weight_count), "node '%s'",
                      op->name));
    TARE_TRY(read_range(p, tare__called_module(model_of(p), equalizer), &xmin, &xmax, &count));
    p->is_equalized[op->id] = true;
    if (is_called_elsewhere(p, op))
        return TARE_DECIDE(p->convert->base, op, "warning", "equalization",
                           "other nodes call its module, too: it is not scaled");
    if (count == 0 || weight_count == 0)
        return TARE_DECIDE(p->convert->base, op, "warning", "equalization",
                           "its equalization observers have seen no data: it is not scaled");
    if (count != weight_count)
        return tare__fail(err_of(p), TARE_INVALID_ARGUMENT,
                          "node '%s': Input and Weight must have the same column dimension. Found "
                          "%lld and %lld channels instead.",
                          op->name, (long long)count, (long long)weight_count);
    channel_scales s = {.count = count};
    s.values = tare__arena_array(&p->convert->base->scratch, (size_t)count + 1, sizeof *s.values);
    if (s.values == NULL) return tare__out_of_memory(err_of(p));
    for (int64_t i = 0; i < count; i++) s.values[i] = scale_of(wmin[i], wmax[i], xmin[i], xmax[i]);
    const tare_tensor *weight = NULL;
    if (op->op == NODE_CALL_MODULE) weight = tare__module_tensor(weighted_module(p, op), "weight");
    s.ndim = weight != NULL ? weight->ndim : 2;
    p->scales[equalizer->id] = p->scales[op->id] = s;
    return TARE_OK;
}

// --- inputs ---

static tare_status remove_node(const equalize_pass *p, node *n, node *before) {
    TARE_TRY(tare__node_replace_uses(n, before, NULL, err_of(p)));
    return tare__graph_erase(n->owner, n, err_of(p));
}

// The scales as a tensor [1, C, 1, ..], to be multiplied with the input.
static tare_status scale_tensor(const equalize_pass *p, const channel_scales *s,
                                tare_tensor **out) {
    if (s->count == 0) return tare__tensor_scalar_int(1, out, err_of(p));
    int64_t shape[TARE_MAX_DIMS];
    for (int d = 0; d < s->ndim; d++) shape[d] = d == 1 ? s->count : 1;
    return tare_tensor_from_data(TARE_FLOAT32, s->ndim, shape, s->values, out, err_of(p));
}

static tare_status bind_scale(const equalize_pass *p, const node *input, const channel_scales *s,
                              const char **out) {
    module *root = model_of(p)->root;
    const char *name = NULL;
    for (size_t i = 0;; i++) {
        name = tare__arena_printf(&p->convert->base->scratch, "%s_equalization_scale%zu",
                                  input->name, i);
        if (name == NULL) return tare__out_of_memory(err_of(p));
        if (!tare__module_has_tensor(root, name)) break;
    }
    tare_tensor *t = NULL;
    TARE_TRY(scale_tensor(p, s, &t));
    const tare_status status = tare__module_set_tensor(root, name, t, false, err_of(p));
    tare_tensor_release(t);
    *out = name;
    return status;
}

// Changes x -> observer to x -> mul -> observer.
static tare_status insert_mul(const equalize_pass *p, node *input, node *observer,
                              const channel_scales *s) {
    graph *g = observer->owner;
    const char *name = NULL;
    node *scale = NULL, *mul = NULL;
    TARE_TRY(bind_scale(p, input, s, &name));
    const node_spec attr = {.op = NODE_GET_ATTR, .target = name};
    TARE_TRY(tare__graph_insert(g, &attr, observer, &scale, err_of(p)));
    const value args[] = {tare__node_value(input), tare__node_value(scale)};
    const op_name name_of_mul = tare__op_function_name(tare__op_row(TARE_OP_MUL));
    const node_spec call = {
        .op = NODE_CALL_FUNCTION, .target = name_of_mul.text, .args = args, .arg_count = 2};
    TARE_TRY(tare__graph_insert(g, &call, observer, &mul, err_of(p)));
    return tare__node_replace_input(observer, input, mul, err_of(p));
}

static tare_status scale_observer(const equalize_pass *p, const node *equalizer, module *observer) {
    const channel_scales *s = &p->scales[equalizer->id];
    float *min = NULL, *max = NULL;
    int64_t count = 0;
    TARE_TRY(read_range(p, tare__called_module(model_of(p), equalizer), &min, &max, &count));
    if (s->count == 0 || count != s->count) return TARE_OK;
    float least = min[0] * s->values[0], most = max[0] * s->values[0];
    for (int64_t i = 1; i < count; i++) {
        least = fminf(least, min[i] * s->values[i]);
        most = fmaxf(most, max[i] * s->values[i]);
    }
    return set_range(p, observer, least, most);
}

// An observer that other nodes call, too, gets a copy for this one: their values are not scaled.
static tare_status own_observer(const equalize_pass *p, node *observer) {
    module *root = model_of(p)->root, *copy = NULL;
    const module *m = tare__called_module(model_of(p), observer);
    if (!is_called_elsewhere(p, observer)) return TARE_OK;
    size_t number = 0;
    const char *path =
        tare__module_free_name(root, &observer->owner->memory, "activation_post_process_", &number);
    if (path == NULL) return tare__out_of_memory(err_of(p));
    TARE_TRY(tare__module_clone(m, &copy, err_of(p)));
    const tare_status status = tare__module_set_child(root, path, copy, err_of(p));
    tare__module_release(copy);
    if (status == TARE_OK) observer->target = path;
    return status;
}

// --- layers in a row ---

static bool is_relu(const tare_model *model, const node *n) {
    const module *m = tare__called_module(model, n);
    if (m != NULL) return m->class->role == ROLE_FLOAT && tare__class_op(m->class) == TARE_OP_RELU;
    return tare__function_op(n) == TARE_OP_RELU && tare__uses_first_name(n);
}

static bool is_input_equalizer(const tare_model *model, const node *n) {
    bool is_input = false;
    return tare__is_equalizer_node(model, n, &is_input) && is_input;
}

static const node *only_user(const node *n) {
    return n->user_count == 1 ? n->users[0] : NULL;
}

// The equalization node behind a layer, and its relu, if nothing else reads what the layer gives;
// NULL: none.
static const node *next_equalizer(const equalize_pass *p, const node *op) {
    const node *n = only_user(op);
    if (n != NULL && is_relu(model_of(p), n)) n = only_user(n);
    if (n == NULL || !tare__is_observer_node(model_of(p), n)) return NULL;
    const node *next = only_user(n);
    return next != NULL && next->id < p->first_new && is_input_equalizer(model_of(p), next) ? next
                                                                                            : NULL;
}

static bool fits_rows(const tare_tensor *t, const channel_scales *s) {
    return t != NULL && t->dtype == TARE_FLOAT32 && t->shape[0] == s->count;
}

// Can a layer multiply its output by these scales? torch scales the layers alone that are equalized
// themselves, and the weight of the next one all the same: the network computes something else. So
// it would where another node calls the layer.
static bool can_multiply(const equalize_pass *p, const node *op, const channel_scales *s) {
    if (op->op == NODE_CALL_FUNCTION) return p->is_equalized[op->id] && p->scales[op->id].count > 0;
    if (is_called_elsewhere(p, op)) return false;
    const module *m = weighted_module(p, op);
    const tare_tensor *weight = tare__module_tensor(m, "weight");
    const tare_tensor *bias = tare__module_tensor(m, "bias");
    return !tare__op_has(tare__class_row(m->class), OP_TRANSPOSED) && fits_rows(weight, s) &&
           weight->ndim >= 2 && (bias == NULL || fits_rows(bias, s));
}

// The scales by which a layer multiplies its output for the next layer's input; NULL: none.
static const channel_scales *next_scales(const equalize_pass *p, const node *op) {
    const node *next = tare__can_equalize(model_of(p), op) ? next_equalizer(p, op) : NULL;
    const channel_scales *s = next != NULL ? &p->scales[next->id] : NULL;
    return s != NULL && s->count > 0 && can_multiply(p, op, s) ? s : NULL;
}

// Does the layer in front of an equalization node multiply by its scales?
static bool is_scaled_before(const equalize_pass *p, const node *input, const node *equalizer) {
    const node *op = is_relu(model_of(p), input) ? tare__node_arg(input, 0) : input;
    if (op == NULL || op->id >= p->first_new || !tare__can_equalize(model_of(p), op)) return false;
    return next_equalizer(p, op) == equalizer &&
           (next_scales(p, op) != NULL || p->scales[equalizer->id].count == 0);
}

// If a preceding layer scales its output, the input needs no multiplication.
static tare_status convert_input(const equalize_pass *p, node *equalizer) {
    node *observer = tare__node_arg(equalizer, 0);
    node *input = observer != NULL ? tare__node_arg(observer, 0) : NULL;
    if (input == NULL || !tare__is_observer_node(model_of(p), observer))
        return tare__fail(err_of(p), TARE_INVALID_ARGUMENT,
                          "node '%s': an equalization observer watches no observed value",
                          equalizer->name);
    const bool is_scaled = is_scaled_before(p, input, equalizer);
    if (!is_scaled || !p->convert->options->keeps_equalized_ranges) {
        TARE_TRY(own_observer(p, observer));
        TARE_TRY(scale_observer(p, equalizer, tare__called_module(model_of(p), observer)));
    }
    if (!is_scaled) TARE_TRY(insert_mul(p, input, observer, &p->scales[equalizer->id]));
    return remove_node(p, equalizer, observer);
}

// --- weights ---

static tare_status scaled_weight(const equalize_pass *p, const tare_tensor *weight,
                                 const channel_scales *s, const channel_scales *next,
                                 tare_tensor **out) {
    if (weight == NULL || weight->dtype != TARE_FLOAT32 || weight->ndim < 2 ||
        (s->count > 0 && weight->shape[1] != s->count) ||
        (next != NULL && weight->shape[0] != next->count))
        return tare__fail(err_of(p), TARE_INVALID_ARGUMENT,
                          "the weight does not fit %lld input channels", (long long)s->count);
    TARE_TRY(tare_tensor_create(TARE_FLOAT32, weight->ndim, weight->shape, out, err_of(p)));
    const int64_t columns = weight->shape[1];
    int64_t inner = 1;
    for (int d = 2; d < weight->ndim; d++) inner *= weight->shape[d];
    for (int64_t i = 0; i < weight->count; i++) {
        const int64_t row = i / inner / columns, column = i / inner % columns;
        float w = tare__f32(weight)[i];
        if (s->count > 0) w *= 1.0f / s->values[column];
        if (next != NULL) w *= next->values[row];
        tare__f32(*out)[i] = w;
    }
    return TARE_OK;
}

static tare_status scaled_bias(const equalize_pass *p, const tare_tensor *bias,
                               const channel_scales *next, tare_tensor **out) {
    if (bias->dtype != TARE_FLOAT32 || bias->count != next->count)
        return tare__fail(err_of(p), TARE_INVALID_ARGUMENT,
                          "the bias does not fit %lld output channels", (long long)next->count);
    TARE_TRY(tare_tensor_create(TARE_FLOAT32, bias->ndim, bias->shape, out, err_of(p)));
    for (int64_t i = 0; i < bias->count; i++)
        tare__f32(*out)[i] = tare__f32(bias)[i] * next->values[i];
    return TARE_OK;
}

static tare_status scale_module(const equalize_pass *p, const node *op, const channel_scales *s,
                                const channel_scales *next) {
    module *m = weighted_module(p, op);
    tare_tensor *weight = NULL, *bias = NULL;
    TARE_TRY(scaled_weight(p, tare__module_tensor(m, "weight"), s, next, &weight));
    tare_status status = tare__module_set_tensor(m, "weight", weight, true, err_of(p));
    tare_tensor_release(weight);
    const tare_tensor *old_bias = tare__module_tensor(m, "bias");
    if (status != TARE_OK || next == NULL || old_bias == NULL) return status;
    TARE_TRY(scaled_bias(p, old_bias, next, &bias));
    status = tare__module_set_tensor(m, "bias", bias, true, err_of(p));
    tare_tensor_release(bias);
    return status;
}

// Replaces the tensor that a get_attr node reads; consumes the reference.
static tare_status set_attribute(const equalize_pass *p, const node *attr, tare_tensor *t) {
    module *root = model_of(p)->root;
    const tare_status status = tare__module_replace_tensor(root, attr->target, t, err_of(p));
    tare_tensor_release(t);
    return status;
}

static const node *find_bias(const node *op) {
    for (size_t i = 0; i < op->arg_count; i++) {
        const node *arg = tare__node_arg(op, i);
        if (arg != NULL && arg->op == NODE_GET_ATTR && strstr(arg->name, "bias") != NULL)
            return arg;
    }
    return NULL;
}

static tare_status scale_attributes(const equalize_pass *p, const node *op, const node *weight_attr,
                                    const channel_scales *s, const channel_scales *next) {
    const module *root = model_of(p)->root;
    tare_tensor *weight = NULL, *bias = NULL;
    const tare_tensor *old = tare__module_find_tensor(root, weight_attr->target);
    TARE_TRY(scaled_weight(p, old, s, next, &weight));
    TARE_TRY(set_attribute(p, weight_attr, weight));
    const node *bias_attr = next != NULL ? find_bias(op) : NULL;
    const tare_tensor *old_bias =
        bias_attr != NULL ? tare__module_find_tensor(root, bias_attr->target) : NULL;
    if (old_bias == NULL) return TARE_OK;
    TARE_TRY(scaled_bias(p, old_bias, next, &bias));
    return set_attribute(p, bias_attr, bias);
}

// get_attr -> observer -> equalizer -> function: resets the observer, which sees the scaled weight
// when weight observers run.
static tare_status convert_function(const equalize_pass *p, node *op, const channel_scales *s,
                                    const channel_scales *next) {
    node *watch = find_weight_equalizer(p, op);
    node *observer = watch != NULL ? tare__node_arg(watch, 0) : NULL;
    const node *attr = observer != NULL ? tare__node_arg(observer, 0) : NULL;
    if (attr == NULL || attr->op != NODE_GET_ATTR || !tare__is_observer_node(model_of(p), observer))
        return TARE_OK;
    if (s->count > 0) TARE_TRY(scale_attributes(p, op, attr, s, next));
    TARE_TRY(reset(p, tare__called_module(model_of(p), observer)));
    return remove_node(p, watch, observer);
}

static tare_status convert_operator(const equalize_pass *p, node *op) {
    const channel_scales *s = &p->scales[op->id], *next = next_scales(p, op);
    if (op->op == NODE_CALL_FUNCTION)
        return p->is_equalized[op->id] ? convert_function(p, op, s, next) : TARE_OK;
    return s->count > 0 || next != NULL ? scale_module(p, op, s, next) : TARE_OK;
}

tare_status tare__convert_equalize(convert_pass *c) {
    graph *g = c->base->model->root->graph;
    equalize_pass p = {.convert = c, .first_new = g->next_id};
    p.scales = tare__arena_array(&c->base->scratch, g->next_id + 1, sizeof *p.scales);
    p.is_equalized = tare__arena_array(&c->base->scratch, g->next_id + 1, sizeof *p.is_equalized);
    if (p.scales == NULL || p.is_equalized == NULL) return tare__out_of_memory(c->base->err);
    for (const node *n = g->first; n != NULL; n = n->next)
        if (is_input_equalizer(c->base->model, n)) TARE_TRY(find_scales(&p, n));
    for (node *n = g->first, *next; n != NULL; n = next) {
        next = n->next;
        if (n->id >= p.first_new) continue;
        if (is_input_equalizer(c->base->model, n))
            TARE_TRY(convert_input(&p, n));
        else if (tare__can_equalize(c->base->model, n))
            TARE_TRY(tare__at(c->base->err, convert_operator(&p, n), "node '%s'", n->name));
    }
    return TARE_OK;
}
