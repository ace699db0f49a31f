// SPDX-License-Identifier: Apache-2.0
// Recorded fake quantizers: torch's two functions with their gradients' mask, and the modules that
// observe or learn. Bit-equal.
#include <stdio.h>
#include <string.h>

#include "core/math/requant.h"
#include "core/tensor/half.h"
#include "core/text/text.h"
#include "observe/fake_quantize.h"
#include "ops/classes/module_call.h"
#include "ops/op.h"
#include "replay/numerics.h"

// One case on its way. The first difference is kept.
typedef struct faked {
    const numerics_cases *cases;
    const json_t *one;
    text difference;
    arena memory;
    tare_error *err;
} faked;

static const char *text_at(const faked *f, const char *key) {
    const char *chars = json_string_value(json_object_get(f->one, key));
    return chars != NULL ? chars : "";
}

static bool is_set(const faked *f, const char *key) {
    return json_is_true(json_object_get(f->one, key));
}

static tare_status need(const faked *f, const char *name, const tare_tensor **out) {
    *out = numerics_tensor(f->cases, f->one, name);
    if (*out != NULL) return TARE_OK;
    return tare__fail(f->err, TARE_MALFORMED_FILE, "tensor '%s' is missing", name);
}

static void differ(faked *f, const char *what, int64_t i, double found, double expected) {
    char left[32], right[32];
    if (f->difference.length > 0) return;
    tare__format_double(found, left);
    tare__format_double(expected, right);
    tare__text_printf(&f->difference, "%s[%lld] = %s, expected %s", what, (long long)i, left,
                      right);
}

// Bits of floats, values of integers.
static tare_status compare(faked *f, const char *name, const tare_tensor *found) {
    const tare_tensor *expected = NULL;
    TARE_TRY(need(f, name, &expected));
    if (found == NULL || found->count != expected->count || found->dtype != expected->dtype) {
        if (f->difference.length == 0)
            tare__text_printf(&f->difference, "%s has another size or dtype", name);
        return TARE_OK;
    }
    for (int64_t i = 0; i < found->count; i++) {
        const double a = tare__tensor_get(found, i), b = tare__tensor_get(expected, i);
        const bool is_float = found->dtype == TARE_FLOAT32;
        if (is_float ? tare__float_bits((float)a) != tare__float_bits((float)b) : a != b)
            differ(f, name, i, a, b);
    }
    return TARE_OK;
}

static value as_value(const tare_tensor *t) {
    return (value){.kind = VALUE_TENSOR, .as.tensor = (tare_tensor *)t};
}

static value number_at(const faked *f, const char *key) {
    return tare__int(json_integer_value(json_object_get(f->one, key)));
}

// --- functions ---

// The gradient passes where the code was inside its limits.
static tare_status compare_gradient(faked *f, bool per_channel) {
    const tare_tensor *x, *scale, *zero_point, *grad_y;
    tare_tensor *grad_x = NULL;
    TARE_TRY(need(f, "x", &x));
    TARE_TRY(need(f, "scale", &scale));
    TARE_TRY(need(f, "zero_point", &zero_point));
    TARE_TRY(need(f, "grad_y", &grad_y));
    TARE_TRY(tare_tensor_create(TARE_FLOAT32, x->ndim, x->shape, &grad_x, f->err));
    const int64_t last = x->ndim > 0 ? x->shape[x->ndim - 1] : 1; // all cases are matrices
    for (int64_t i = 0; i < x->count; i++) {
        const int64_t axis = number_at(f, "axis").as.integer;
        const int64_t c = !per_channel ? 0 : axis == 0 ? i / last : i % last;
        const fake_quantized q = tare__fake_quantize(
            tare__f32(x)[i], tare__f32(scale)[c], (int64_t)tare__tensor_get(zero_point, c),
            number_at(f, "quant_min").as.integer, number_at(f, "quant_max").as.integer);
        tare__f32(grad_x)[i] = tare__f32(grad_y)[i] * (q.inside ? 1.0F : 0.0F);
    }
    const tare_status status = compare(f, "grad_x", grad_x);
    tare_tensor_release(grad_x);
    return status;
}

static tare_status run_function(faked *f) {
    char name[96];
    const tare_tensor *x, *scale, *zero_point;
    snprintf(name, sizeof name, "torch.%s", text_at(f, "op"));
    const bool per_channel = json_object_get(f->one, "axis") != NULL;
    TARE_TRY(need(f, "x", &x));
    TARE_TRY(need(f, "scale", &scale));
    TARE_TRY(need(f, "zero_point", &zero_point));
    value args[6] = {as_value(x), as_value(scale), as_value(zero_point)};
    size_t count = 3;
    if (per_channel) args[count++] = number_at(f, "axis");
    args[count++] = number_at(f, "quant_min");
    args[count++] = number_at(f, "quant_max");
    const op_info *op = tare__op_function(name);
    if (op == NULL) return tare__fail(f->err, TARE_NOT_FOUND, "no function '%s'", name);
    op_call call = {.args = args, .arg_count = count, .memory = &f->memory, .err = f->err};
    TARE_TRY(tare__call_bind(&call, op));
    TARE_TRY(tare__op_run(&call, false));
    const tare_status status = compare(f, "y", call.result.as.tensor);
    tare__value_release_tensors(&call.result);
    return status == TARE_OK ? compare_gradient(f, per_channel) : status;
}

// --- modules ---

static tare_qscheme scheme_of(bool per_channel, bool is_symmetric) {
    if (per_channel) return is_symmetric ? TARE_PER_CHANNEL_SYMMETRIC : TARE_PER_CHANNEL_AFFINE;
    return is_symmetric ? TARE_PER_TENSOR_SYMMETRIC : TARE_PER_TENSOR_AFFINE;
}

// What the recorder gave to the constructor.
static tare_status make(faked *f, bool is_symmetric, module **out) {
    const bool per_channel = is_set(f, "per_channel");
    const bool is_learnable = strcmp(text_at(f, "op"), "_LearnableFakeQuantize") == 0;
    tare_observer_spec *spec = tare_observer_spec_create(text_at(f, "op"));
    tare_observer_spec *inner = tare_observer_spec_create(
        per_channel ? "MovingAveragePerChannelMinMaxObserver" : "MovingAverageMinMaxObserver");
    tare_observer_spec_set_observer(spec, "observer", inner);
    tare_observer_spec_set_int(spec, "quant_min", is_symmetric ? -128 : 0);
    tare_observer_spec_set_int(spec, "quant_max", is_symmetric ? 127 : 255);
    tare_observer_spec_set_dtype(spec, "dtype", is_symmetric ? TARE_QINT8 : TARE_QUINT8);
    tare_observer_spec_set_qscheme(spec, "qscheme", scheme_of(per_channel, is_symmetric));
    if (per_channel) tare_observer_spec_set_int(spec, "ch_axis", 0);
    if (is_learnable) {
        tare_observer_spec_set_double(spec, "scale",
                                      json_number_value(json_object_get(f->one, "scale")));
        tare_observer_spec_set_double(spec, "zero_point",
                                      json_number_value(json_object_get(f->one, "zero_point")));
        tare_observer_spec_set_int(spec, "channel_len", per_channel ? 4 : -1);
        tare_observer_spec_set_bool(spec, "use_grad_scaling", is_set(f, "use_grad_scaling"));
    }
    const tare_status status = tare__observer_spec_instantiate(NULL, spec, out, f->err);
    tare_observer_spec_release(inner);
    tare_observer_spec_release(spec);
    return status;
}

static tare_status run_batch(faked *f, module *m, const char *x_name, const char *y_name) {
    const tare_tensor *x;
    TARE_TRY(need(f, x_name, &x));
    const value arg = as_value(x);
    op_call call = {
        .module = m, .own = m, .args = &arg, .arg_count = 1, .memory = &f->memory, .err = f->err};
    TARE_TRY(tare__module_run(&call, false));
    const tare_status status = compare(f, y_name, call.result.as.tensor);
    tare__value_release_tensors(&call.result);
    return status;
}

static tare_status compare_state(faked *f, const module *m) {
    map state = {0};
    TARE_TRY(compare(f, "scale", tare__module_tensor(m, "scale")));
    TARE_TRY(compare(f, "zero_point", tare__module_tensor(m, "zero_point")));
    tare_status status =
        tare__observer_state_io.save(tare__fake_quantize_observer(m), &state, f->err);
    if (status == TARE_OK) status = compare(f, "min_val", tare__map_get(&state, "min_val"));
    if (status == TARE_OK) status = compare(f, "max_val", tare__map_get(&state, "max_val"));
    for (size_t i = 0; i < state.count; i++) tare_tensor_release(state.entries[i].value);
    tare__map_release(&state);
    return status;
}

static tare_status run_fused(faked *f, module *m) {
    const json_int_t count = json_integer_value(json_object_get(f->one, "batches"));
    for (json_int_t i = 0; i < count; i++) {
        char x[32], y[32];
        snprintf(x, sizeof x, "x%lld", (long long)i);
        snprintf(y, sizeof y, "y%lld", (long long)i);
        TARE_TRY(run_batch(f, m, x, y));
    }
    return compare_state(f, m);
}

// Recorded while scale and zero point are parameters that the observer does not touch.
static tare_status run_learnable(faked *f, module *m) {
    TARE_TRY(tare__fake_quantize_switch(m, "static_enabled", false, f->err));
    TARE_TRY(tare__fake_quantize_switch(m, "learning_enabled", true, f->err));
    return run_batch(f, m, "x", "y");
}

static tare_status run_module(faked *f) {
    module *m = NULL;
    const bool is_learnable = strcmp(text_at(f, "op"), "_LearnableFakeQuantize") == 0;
    TARE_TRY(make(f, is_learnable || is_set(f, "symmetric"), &m));
    const tare_status status = is_learnable ? run_learnable(f, m) : run_fused(f, m);
    tare__module_release(m);
    return status;
}

static void run_case(const numerics_cases *cases, const json_t *one, text *label, text *difference,
                     tare_error *err) {
    faked f = {.cases = cases, .one = one, .err = err};
    const bool is_function = strncmp(text_at(&f, "op"), "fake_quantize", 13) == 0;
    const tare_status status = is_function ? run_function(&f) : run_module(&f);
    if (status != TARE_OK) tare__text_append(&f.difference, tare_error_message(err));
    tare__text_append(label, text_at(&f, "op"));
    tare__arena_release(&f.memory);
    *difference = f.difference;
}

const numerics_kind numerics_fake_quantizers = {"fake_quantize", run_case};
