// SPDX-License-Identifier: Apache-2.0
// Converts between fake quantizer modules and calls of fused_moving_avg_obs_fake_quant.
#include "model/operator_observers.h"

#include <math.h>
#include <string.h>

#include "core/memory/map.h"
#include "core/text/text.h"
#include "observe/classes/builtin.h"
#include "observe/fake_quantize.h"
#include "ops/op.h"

// Source: torch/ao/quantization/fake_quantize.py, FusedMovingAvgObsFakeQuantize.forward and
// FixedQParamsFakeQuantize.forward (PyTorch 2.15); torch.export writes the same operators.
#define FUSED "torch.ops.aten.fused_moving_avg_obs_fake_quant.default"
#define FIXED "torch.ops.aten.fake_quantize_per_tensor_affine.tensor_qparams"

// Arguments of the fused operator.
enum {
    VALUE,
    OBSERVES,
    QUANTIZES,
    LEAST,
    GREATEST,
    SCALE,
    ZERO_POINT,
    AVERAGING,
    QUANT_MIN,
    QUANT_MAX,
    AXIS,
    PER_CHANNEL,
    SYMMETRIC,
    ARGUMENT_COUNT
};
static const char inside[] = ".activation_post_process";

// --- to operators ---

typedef struct writing {
    module *root;
    node *n;   // the call
    module *m; // the fake quantizer that it called
    const char *path;
    tare_error *err;
} writing;

// Releases a map that owns its tensors.
static void release_all(map *tensors) {
    for (size_t i = 0; i < tensors->count; i++) tare_tensor_release(tensors->entries[i].value);
    tare__map_release(tensors);
}

static tare_status read_tensor(const writing *w, const char *name, value *out) {
    node *made = NULL;
    const char *target = tare__arena_printf(&w->n->owner->memory, "%s.%s", w->path, name);
    if (target == NULL) return tare__out_of_memory(w->err);
    const node_spec spec = {.op = NODE_GET_ATTR, .target = target};
    TARE_TRY(tare__graph_insert(w->n->owner, &spec, w->n, &made, w->err));
    *out = tare__node_value(made);
    return TARE_OK;
}

static tare_status become_call(const writing *w, const char *target, const value *args,
                               size_t count) {
    const char *copy = tare__arena_strdup(&w->n->owner->memory, target);
    if (copy == NULL) return tare__out_of_memory(w->err);
    TARE_TRY(tare__node_set_args(w->n, args, count, NULL, 0, w->err));
    w->n->op = NODE_CALL_FUNCTION;
    w->n->target = copy;
    return TARE_OK;
}

// The number of channels of the tensor that is observed: a weight, possibly scaled.
static int64_t channels_of(const writing *w, int64_t axis) {
    const node *n = tare__node_arg(w->n, 0);
    while (n != NULL && n->op == NODE_CALL_FUNCTION) n = tare__node_arg(n, 0);
    const tare_tensor *t =
        n != NULL && n->op == NODE_GET_ATTR ? tare__module_find_tensor(w->root, n->target) : NULL;
    if (t == NULL || axis < -t->ndim || axis >= t->ndim) return 0;
    return t->shape[axis < 0 ? axis + t->ndim : axis];
}

static tare_status fill_vector(int64_t count, float v, tare_tensor **out, tare_error *err) {
    TARE_TRY(tare_tensor_create(TARE_FLOAT32, 1, &count, out, err));
    for (int64_t i = 0; i < count; i++) tare__f32(*out)[i] = v;
    return TARE_OK;
}

// Initializes empty per-channel statistics to the number of channels. torch's operator would resize
// them, but tensors of a file have fixed sizes.
static tare_status count_channels(const writing *w, int64_t axis) {
    const int64_t count = channels_of(w, axis);
    tare_tensor *least = NULL, *greatest = NULL;
    map tensors = {0}, kept = {0};
    const module *observer = tare__fake_quantize_observer((const module *)w->m);
    TARE_TRY(tare__observer_state_io.save(observer, &kept, w->err));
    const tare_tensor *seen = tare__map_get(&kept, "min_val");
    const bool is_empty = seen == NULL || seen->count == 0;
    release_all(&kept);
    if (!is_empty || count == 0) return TARE_OK;
    tare_status status = fill_vector(count, INFINITY, &least, w->err);
    if (status == TARE_OK) status = fill_vector(count, -INFINITY, &greatest, w->err);
    if (status == TARE_OK && (!tare__map_set(&tensors, "min_val", least) ||
                              !tare__map_set(&tensors, "max_val", greatest)))
        status = tare__out_of_memory(w->err);
    if (status == TARE_OK)
        status = tare__observer_load(tare__fake_quantize_observer(w->m), &tensors, w->err);
    double *numbers = tare__arena_array(&w->n->owner->memory, 2 * (size_t)count, sizeof *numbers);
    for (int64_t i = 0; numbers != NULL && i < 2 * count; i++) numbers[i] = i < count ? 1 : 0;
    if (numbers == NULL && status == TARE_OK) status = tare__out_of_memory(w->err);
    if (status == TARE_OK)
        status = tare__fake_quantize_set(w->m, count, numbers, numbers + count, w->err);
    tare_tensor_release(least);
    tare_tensor_release(greatest);
    tare__map_release(&tensors);
    return status;
}

static tare_status write_fused(const writing *w) {
    const tare_observer_info *info = tare__observer_info(w->m);
    tare_observer_spec *spec = NULL;
    value args[ARGUMENT_COUNT] = {w->n->args[0]};
    double averaging = 0.01;
    const bool is_per_channel = tare__qscheme_is_per_channel(info->qscheme);
    if (is_per_channel) TARE_TRY(count_channels(w, info->channel_axis));
    TARE_TRY(read_tensor(w, "observer_enabled", &args[OBSERVES]));
    TARE_TRY(read_tensor(w, "fake_quant_enabled", &args[QUANTIZES]));
    TARE_TRY(read_tensor(w, "activation_post_process.min_val", &args[LEAST]));
    TARE_TRY(read_tensor(w, "activation_post_process.max_val", &args[GREATEST]));
    TARE_TRY(read_tensor(w, "scale", &args[SCALE]));
    TARE_TRY(read_tensor(w, "zero_point", &args[ZERO_POINT]));
    TARE_TRY(tare__observer_spec_of(tare__fake_quantize_observer(w->m), &spec, w->err));
    tare_status status = tare__spec_double(spec, "averaging_constant", &averaging, w->err);
    tare_observer_spec_release(spec);
    TARE_TRY(status);
    args[AVERAGING] = tare__float(averaging);
    args[QUANT_MIN] = tare__int(info->quant_min);
    args[QUANT_MAX] = tare__int(info->quant_max);
    args[AXIS] = tare__int(is_per_channel ? info->channel_axis : -1);
    args[PER_CHANNEL] = tare__bool(is_per_channel);
    args[SYMMETRIC] = tare__bool(info->qscheme == TARE_PER_TENSOR_SYMMETRIC ||
                                 info->qscheme == TARE_PER_CHANNEL_SYMMETRIC);
    return become_call(w, FUSED, args, ARGUMENT_COUNT);
}

static tare_status write_fixed(const writing *w) {
    const tare_observer_info *info = tare__observer_info(w->m);
    value args[5] = {w->n->args[0]};
    TARE_TRY(read_tensor(w, "scale", &args[1]));
    TARE_TRY(read_tensor(w, "zero_point", &args[2]));
    args[3] = tare__int(info->quant_min);
    args[4] = tare__int(info->quant_max);
    return become_call(w, FIXED, args, 5);
}

static tare_status write_call(const writing *w) {
    const tare_observer_class *class = tare__observer_class_of(w->m);
    if (w->n->arg_count != 1 || w->n->kwarg_count > 0)
        return tare__fail(w->err, TARE_UNSUPPORTED, "an observer takes one tensor");
    if (class == &tare__fused_moving_average_fake_quantize_class) return write_fused(w);
    if (class == &tare__fixed_qparams_fake_quantize_class) return write_fixed(w);
    tare__fail(w->err, TARE_UNSUPPORTED,
               "the observer '%s' is a %s, which torch has no operator for", w->path, class->name);
    return tare__hint(w->err, TARE_UNSUPPORTED,
                      "prepare the model with --qat and FusedMovingAvgObsFakeQuantize, as the "
                      "quantizers and default mappings do");
}

// --- the modules of observers ---

static tare_status copy_statistics(const module *observer, module *to, tare_error *err) {
    map tensors = {0};
    tare_status status = tare__observer_state_io.save(observer, &tensors, err);
    static const char *const names[] = {"eps", "min_val", "max_val"};
    for (size_t i = 0; status == TARE_OK && i < sizeof names / sizeof *names; i++) {
        tare_tensor *t = tare__map_get(&tensors, names[i]);
        if (t != NULL) status = tare__module_set_tensor(to, names[i], t, false, err);
    }
    release_all(&tensors);
    return status;
}

// Creates a container module with the fake quantizer's state, under torch's names.
static tare_status make_container(const module *m, module **out, tare_error *err) {
    module *outer = NULL, *inner = NULL;
    TARE_TRY(tare__module_create(&tare__class_container, &outer, err));
    tare_status status = tare__module_create(&tare__class_container, &inner, err);
    if (status == TARE_OK) status = tare__module_copy_tensors(outer, m, err);
    if (status == TARE_OK) status = copy_statistics(tare__fake_quantize_observer(m), inner, err);
    if (status == TARE_OK)
        status = tare__module_set_child(outer, "activation_post_process", inner, err);
    tare__module_release(inner);
    return tare__module_hand_out(outer, status, out);
}

static tare_status write_node(module *root, node *n, map *made, tare_error *err) {
    module *m = n->op == NODE_CALL_MODULE ? tare__module_find(root, n->target) : NULL;
    if (m == NULL || m->class->role != ROLE_OBSERVER) return TARE_OK;
    writing w = {root, n, m, n->target, err};
    // A module with several names is written under the first one.
    for (size_t i = 0; i < made->count; i++)
        if (made->entries[i].value == m) w.path = made->entries[i].key;
    TARE_TRY(tare__at(err, write_call(&w), "node '%s'", n->name));
    return tare__map_set(made, w.path, m) ? TARE_OK : tare__out_of_memory(err);
}

static tare_status put_containers(module *root, const map *made, tare_error *err) {
    for (size_t i = 0; i < made->count; i++) {
        const map_entry *entry = &made->entries[i];
        module *container = NULL;
        TARE_TRY(make_container(entry->value, &container, err));
        const tare_status status =
            tare__module_set_path(root, entry->key, container, &tare__class_container, err);
        tare__module_release(container);
        TARE_TRY(status);
    }
    return TARE_OK;
}

tare_status tare__operators_from_observers(module *root, tare_error *err) {
    map made = {0};
    tare_status status = TARE_OK;
    for (node *n = root->graph != NULL ? root->graph->first : NULL; n != NULL; n = n->next)
        if (status == TARE_OK) status = write_node(root, n, &made, err);
    if (status == TARE_OK) status = put_containers(root, &made, err);
    tare__map_release(&made);
    return status;
}

// --- from operators ---

typedef struct reading {
    tare_model *model;
    node *n;
    const char *path; // of the module that holds the operator's tensors
    tare_error *err;
} reading;

static const tare_tensor *tensor_at(const reading *r, size_t i) {
    const node *read = tare__node_arg(r->n, i);
    return read != NULL && read->op == NODE_GET_ATTR
               ? tare__module_find_tensor(r->model->root, read->target)
               : NULL;
}

static bool flag(const node *n, size_t i) {
    return i < n->arg_count && n->args[i].kind == VALUE_BOOL && n->args[i].as.boolean;
}

static tare_dtype dtype_for(int64_t least, int64_t most) {
    if (least >= 0) return most <= UINT8_MAX ? TARE_UINT8 : TARE_UINT16;
    if (least >= INT8_MIN && most <= INT8_MAX) return TARE_INT8;
    return least >= INT16_MIN && most <= INT16_MAX ? TARE_INT16 : TARE_INT32;
}

static tare_status refuse(const reading *r, const char *what) {
    tare__fail(r->err, TARE_UNSUPPORTED, "node '%s' (%s): %s", r->n->name, r->n->target, what);
    return tare__hint(r->err, TARE_UNSUPPORTED,
                      "convert the model in torch (convert_pt2e, convert_to_reference_fx), or "
                      "train it with FusedMovingAvgObsFakeQuantize");
}

static tare_status read_bounds(const reading *r, size_t i, int64_t *least, int64_t *most) {
    const node *n = r->n;
    if (n->kwarg_count > 0 || n->arg_count < i + 2 || n->args[i].kind != VALUE_INT ||
        n->args[i + 1].kind != VALUE_INT || n->args[i].as.integer >= n->args[i + 1].as.integer)
        return refuse(r, "its range is not two integers");
    *least = n->args[i].as.integer;
    *most = n->args[i + 1].as.integer;
    return TARE_OK;
}

// Collects the arguments of the observer and of the fake quantizer.
static tare_status fused_spec(const reading *r, tare_observer_spec **out) {
    const node *n = r->n;
    int64_t least = 0, most = 0;
    double averaging = 0;
    TARE_TRY(read_bounds(r, QUANT_MIN, &least, &most));
    if (n->arg_count <= AXIS || n->args[AXIS].kind != VALUE_INT ||
        !tare__value_number(&n->args[AVERAGING], &averaging))
        return refuse(r, "its averaging constant and axis are no numbers");
    const bool is_per_channel = flag(n, PER_CHANNEL), is_symmetric = flag(n, SYMMETRIC);
    tare_observer_spec *spec = tare_observer_spec_create("FusedMovingAvgObsFakeQuantize");
    tare_observer_spec *observer = tare_observer_spec_create(
        is_per_channel ? "MovingAveragePerChannelMinMaxObserver" : "MovingAverageMinMaxObserver");
    *out = spec;
    if (spec == NULL || observer == NULL) {
        tare_observer_spec_release(observer);
        return tare__out_of_memory(r->err);
    }
    tare_observer_spec_set_observer(spec, "observer", observer);
    tare_observer_spec_set_int(spec, "quant_min", least);
    tare_observer_spec_set_int(spec, "quant_max", most);
    tare_observer_spec_set_dtype(spec, "dtype", dtype_for(least, most));
    tare_observer_spec_set_qscheme(spec, "qscheme",
                                   is_per_channel ? is_symmetric ? TARE_PER_CHANNEL_SYMMETRIC
                                                                 : TARE_PER_CHANNEL_AFFINE
                                   : is_symmetric ? TARE_PER_TENSOR_SYMMETRIC
                                                  : TARE_PER_TENSOR_AFFINE);
    tare_observer_spec_set_double(spec, "averaging_constant", averaging);
    if (is_per_channel) tare_observer_spec_set_int(spec, "ch_axis", n->args[AXIS].as.integer);
    tare_observer_spec_release(observer);
    return TARE_OK;
}

// Reads a number, or a buffer with one element.
static bool fixed_number(const reading *r, size_t i, double *out) {
    const tare_tensor *t = tensor_at(r, i);
    if (t == NULL) return tare__value_number(&r->n->args[i], out);
    if (t->count != 1 || t->data == NULL) return false;
    *out = tare__tensor_get(t, 0);
    return true;
}

static bool fixed_whole(const reading *r, size_t i, int64_t *out) {
    double number = 0;
    if (!fixed_number(r, i, &number) || number != rint(number) || fabs(number) > INT32_MAX)
        return false;
    *out = (int64_t)number;
    return true;
}

static tare_status fixed_spec(const reading *r, tare_observer_spec **out) {
    int64_t least = 0, most = 0;
    double scale = 0;
    int64_t zero_point = 0;
    TARE_TRY(read_bounds(r, 3, &least, &most));
    if (!fixed_number(r, 1, &scale) || !fixed_whole(r, 2, &zero_point))
        return refuse(r, "its scale and zero point are computed, by an observer that is no module");
    tare_observer_spec *spec = tare_observer_spec_create("FixedQParamsFakeQuantize");
    tare_observer_spec *observer = tare_observer_spec_create("FixedQParamsObserver");
    *out = spec;
    if (spec == NULL || observer == NULL) {
        tare_observer_spec_release(observer);
        return tare__out_of_memory(r->err);
    }
    tare_observer_spec_set_double(observer, "scale", scale);
    tare_observer_spec_set_int(observer, "zero_point", zero_point);
    tare_observer_spec_set_int(observer, "quant_min", least);
    tare_observer_spec_set_int(observer, "quant_max", most);
    tare_observer_spec_set_dtype(observer, "dtype", dtype_for(least, most));
    tare_observer_spec_set_observer(spec, "observer", observer);
    tare_observer_spec_release(observer);
    return TARE_OK;
}

// Moves the statistics that torch collected to a new module.
static tare_status take_statistics(const reading *r, module *m) {
    const tare_tensor *least = tensor_at(r, LEAST), *greatest = tensor_at(r, GREATEST);
    const module *held = tare__module_find(r->model->root, r->path);
    const module *held_inside = held != NULL ? tare__module_child(held, inside + 1) : NULL;
    tare_tensor *eps = held_inside != NULL ? tare__module_tensor(held_inside, "eps") : NULL;
    map tensors = {0};
    bool has_memory = tare__map_set(&tensors, "min_val", (void *)least) &&
                      tare__map_set(&tensors, "max_val", (void *)greatest);
    if (eps != NULL) has_memory = has_memory && tare__map_set(&tensors, "eps", eps);
    const tare_status status =
        has_memory ? tare__observer_load(tare__fake_quantize_observer(m), &tensors, r->err)
                   : tare__out_of_memory(r->err);
    tare__map_release(&tensors);
    return status;
}

static tare_status take_tensor(const reading *r, module *m, const char *name, size_t argument) {
    const tare_tensor *t = tensor_at(r, argument);
    return t != NULL ? tare__module_set_tensor(m, name, (tare_tensor *)t, false, r->err)
                     : refuse(r, "its statistics are no buffers");
}

static tare_status fill_fused(const reading *r, module *m) {
    TARE_TRY(take_tensor(r, m, "observer_enabled", OBSERVES));
    TARE_TRY(take_tensor(r, m, "fake_quant_enabled", QUANTIZES));
    TARE_TRY(take_tensor(r, m, "scale", SCALE));
    TARE_TRY(take_tensor(r, m, "zero_point", ZERO_POINT));
    if (tensor_at(r, LEAST) == NULL || tensor_at(r, GREATEST) == NULL)
        return refuse(r, "its statistics are no buffers");
    TARE_TRY(take_statistics(r, m));
    return tare__fake_quantize_module_check(m, r->err);
}

static bool is_fused(const node *n) {
    return strcmp(n->target, FUSED) == 0;
}

static tare_status make_module(const reading *r, module **out) {
    tare_observer_spec *spec = NULL;
    module *m = NULL;
    tare_status status = is_fused(r->n) ? fused_spec(r, &spec) : fixed_spec(r, &spec);
    if (status == TARE_OK)
        status = tare__observer_spec_instantiate(&r->model->context->observers, spec, &m, r->err);
    tare_observer_spec_release(spec);
    TARE_TRY(status);
    if (is_fused(r->n)) status = fill_fused(r, m);
    return tare__module_hand_out(m, status, out);
}

// Identifies an observer: by the path of its first statistic, or by the node's name.
static const char *key_of(const node *n) {
    const node *named = tare__node_arg(n, is_fused(n) ? LEAST : 1);
    return named != NULL && named->op == NODE_GET_ATTR ? named->target : n->name;
}

// Finds the path of the module: "observer" for "observer.activation_post_process.min_val". For
// other buffers, a new name.
static tare_status find_path(reading *r, map *made) {
    arena *memory = &r->n->owner->memory;
    const char *key = key_of(r->n), *end = strstr(key, is_fused(r->n) ? inside : ".scale");
    size_t number = 0;
    r->path =
        end != NULL && end > key
            ? tare__arena_printf(memory, "%.*s", (int)(end - key), key)
            : tare__module_free_name(r->model->root, memory, "activation_post_process_", &number);
    if (r->path == NULL || !tare__map_set(made, key, (void *)r->path))
        return tare__out_of_memory(r->err);
    return TARE_OK;
}

static tare_status call_module(const reading *r) {
    const value x = r->n->args[0];
    TARE_TRY(tare__node_set_args(r->n, &x, 1, NULL, 0, r->err));
    r->n->op = NODE_CALL_MODULE;
    r->n->target = r->path;
    return TARE_OK;
}

static tare_status read_node(tare_model *model, node *n, map *made, tare_error *err) {
    reading r = {.model = model, .n = n, .err = err};
    module *m = NULL;
    if (n->arg_count < 5) return refuse(&r, "it lacks arguments");
    r.path = tare__map_get(made, key_of(n)); // several nodes may share an observer
    if (r.path != NULL) return call_module(&r);
    TARE_TRY(find_path(&r, made));
    TARE_TRY(make_module(&r, &m));
    const tare_status status =
        tare__module_set_path(model->root, r.path, m, &tare__class_container, err);
    tare__module_release(m);
    return status == TARE_OK ? call_module(&r) : status;
}

static bool is_fake_quantize(const node *n) {
    static const char fixed[] = "torch.ops.aten.fake_quantize_per_tensor_affine.";
    return n->op == NODE_CALL_FUNCTION && (is_fused(n) || tare__starts_with(n->target, fixed));
}

// Refuses other fake quantize operators, which would otherwise count as operators of a float model.
static tare_status refuse_others(const tare_model *model, const node *n, tare_error *err) {
    static const char *const names[] = {"torch.ops.aten.fake_quantize_per_channel_affine",
                                        "torch.ops.aten._fake_quantize_learnable_per",
                                        "torch.ops.aten._fused_moving_avg_obs_fq_helper"};
    const reading r = {.model = (tare_model *)model, .n = (node *)n, .err = err};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (n->op == NODE_CALL_FUNCTION && tare__starts_with(n->target, names[i]))
            return refuse(&r, "this kind of fake quantizer is not read");
    return TARE_OK;
}

// Erases unused reads of buffers.
static tare_status erase_unread(graph *g, tare_error *err) {
    for (node *n = g->first, *next; n != NULL; n = next) {
        next = n->next;
        if (n->op == NODE_GET_ATTR && n->user_count == 0) TARE_TRY(tare__graph_erase(g, n, err));
    }
    return TARE_OK;
}

tare_status tare__observers_from_operators(tare_model *model, tare_error *err) {
    map made = {0};
    graph *g = model->root->graph;
    tare_status status = TARE_OK;
    bool any = false;
    for (node *n = g != NULL ? g->first : NULL; n != NULL && status == TARE_OK; n = n->next) {
        status = refuse_others(model, n, err);
        if (status != TARE_OK || !is_fake_quantize(n)) continue;
        status = read_node(model, n, &made, err);
        any = true;
    }
    tare__map_release(&made);
    if (!any || status != TARE_OK) return status;
    model->stage = TARE_STAGE_PREPARED;
    return erase_unread(g, err);
}
