// SPDX-License-Identifier: Apache-2.0
// Convert: checks the backend's constraints on scales and zero points that torch's DTypeConfig
// lacks. The values are known only after calibration.
#include <inttypes.h>
#include <math.h>

#include "config/constraints.h"
#include "core/memory/alloc.h"
#include "flow/fx/convert.h"
#include "flow/match.h"

enum {
    DEMANDS = TARE_SET_SCALE_MAX | TARE_SET_ZERO_POINT_MIN | TARE_SET_ZERO_POINT_MAX |
              TARE_SET_POWER_OF_TWO,
    // For the weight of a module, which prepare does not check.
    WEIGHT_DEMANDS = DEMANDS | TARE_SET_QSCHEMES | TARE_SET_CHANNEL_AXIS,
};

static bool has_demand(const tare_dtype_config *d) {
    return ((d->input.set | d->output.set) & DEMANDS) != 0 || (d->weight.set & WEIGHT_DEMANDS) != 0;
}

static bool backend_has_demand(const tare_backend_config *b) {
    for (size_t i = 0; i < b->count; i++)
        for (size_t k = 0; k < b->configs[i]->dtype_configs.count; k++)
            if (has_demand(&b->configs[i]->dtype_configs.items[k])) return true;
    return false;
}

static tare_status add(convert_pass *c, const module *m, const tare_dtype_constraints *constraints,
                       const tare_pattern_config *config, const node *n) {
    if (m == NULL || !(constraints->set & WEIGHT_DEMANDS)) return TARE_OK;
    if (c->limit_count == c->limit_capacity) {
        const size_t capacity = c->limit_capacity ? c->limit_capacity * 2 : 16;
        convert_limit *grown = tare__arena_array(&c->base->scratch, capacity, sizeof *grown);
        if (grown == NULL) return tare__out_of_memory(c->base->err);
        for (size_t i = 0; i < c->limit_count; i++) grown[i] = c->limits[i];
        c->limits = grown;
        c->limit_capacity = capacity;
    }
    c->limits[c->limit_count++] =
        (convert_limit){.module = m, .constraints = constraints, .config = config, .node = n->name};
    return TARE_OK;
}

static bool watches(const convert_pass *c, const node *n, tare_dtype dtype) {
    return n != NULL && tare__is_observer_node(c->base->model, n) &&
           (dtype == TARE_DTYPE_UNSET ||
            tare__observer_info(tare__called_module(c->base->model, n))->dtype == dtype);
}

// Adds limits for the observers of an operator's arguments.
static tare_status limit_inputs(convert_pass *c, const node *n, const tare_pattern_config *config,
                                const tare_dtype_config *d) {
    const int64_t weight_index = tare__pattern_config_input_index(config, "weight");
    for (size_t i = 0; i < n->input_count; i++) {
        const node *input = n->inputs[i];
        const bool is_weight =
            weight_index >= 0 && tare__node_arg(n, (size_t)weight_index) == input;
        const tare_dtype_constraints *of = is_weight ? &d->weight : &d->input;
        if (watches(c, input, of->dtype))
            TARE_TRY(add(c, tare__called_module(c->base->model, input), of, config, n));
    }
    const module *called = tare__called_module(c->base->model, n);
    return called != NULL ? add(c, called, &d->weight, config, n) : TARE_OK;
}

static tare_status limit_outputs(convert_pass *c, const node *last,
                                 const tare_pattern_config *config, const tare_dtype_config *d) {
    for (size_t i = 0; i < last->user_count; i++)
        if (watches(c, last->users[i], d->output.dtype))
            TARE_TRY(add(c, tare__called_module(c->base->model, last->users[i]), &d->output, config,
                         last));
    return TARE_OK;
}

// Visits the nodes that a pattern matched, the last one first.
static tare_status limit_matched(convert_pass *c, const pattern *p, const node *n,
                                 const tare_pattern_config *config, const tare_dtype_config *d,
                                 bool *is_taken) {
    if (n == NULL || p->kind == PATTERN_ANY) return TARE_OK;
    is_taken[n->id] = true;
    TARE_TRY(limit_inputs(c, n, config, d));
    for (size_t i = 1; p->kind == PATTERN_TUPLE && i < p->item_count; i++)
        TARE_TRY(limit_matched(c, &p->items[i], tare__node_arg(n, i - 1), config, d, is_taken));
    return TARE_OK;
}

// The dtype config with which the matched operator was prepared: the first one that fits the dtypes
// of the observers around it.
static const tare_dtype_config *find_dtypes(const convert_pass *c, const node *last,
                                            const tare_pattern_config *config) {
    for (size_t i = 0; i < config->dtype_configs.count; i++) {
        const tare_dtype_config *d = &config->dtype_configs.items[i];
        for (size_t k = 0; k < last->user_count; k++)
            if (watches(c, last->users[k], d->output.dtype)) return d;
    }
    return NULL;
}

static tare_status limit_node(convert_pass *c, const tare_pattern_config *const *configs,
                              const node *n, bool *is_taken) {
    const value v = {.kind = VALUE_NODE, .as.node = (node *)n};
    for (size_t i = 0; i < c->base->backend->count; i++) {
        if (!tare__pattern_matches(configs[i]->complex, &v, c->base->model->root)) continue;
        const tare_dtype_config *d = find_dtypes(c, n, configs[i]);
        if (d == NULL || !has_demand(d)) return TARE_OK;
        TARE_TRY(limit_outputs(c, n, configs[i], d));
        return limit_matched(c, configs[i]->complex, n, configs[i], d, is_taken);
    }
    return TARE_OK;
}

tare_status tare__convert_find_limits(convert_pass *c) {
    if (!backend_has_demand(c->base->backend)) return TARE_OK;
    const graph *g = c->base->model->root->graph;
    const tare_pattern_config **configs = NULL;
    TARE_TRY(
        tare__backend_config_sorted(c->base->backend, &c->base->scratch, &configs, c->base->err));
    bool *is_taken = tare__arena_array(&c->base->scratch, g->next_id, sizeof *is_taken);
    if (is_taken == NULL) return tare__out_of_memory(c->base->err);
    for (size_t i = 0; i < g->next_id; i++) is_taken[i] = false;
    for (const node *n = g->last; n != NULL; n = n->prev)
        if (!is_taken[n->id] && !tare__convert_has_no_qconfig(c, n))
            TARE_TRY(limit_node(c, configs, n, is_taken));
    return TARE_OK;
}

// Rounds up to a power of two. The range stays or grows; the zero point is moved so that the least
// representable value stays, up to rounding.
static void raise_scale(const qparams *q, double *scale, double *zero_point) {
    int exponent = 0;
    if (!(*scale > 0) || frexp(*scale, &exponent) == 0.5) return;
    const double raised = ldexp(1, exponent), least = (double)q->quant_min;
    const bool is_fixed = *zero_point == 0 || q->scheme == TARE_PER_TENSOR_SYMMETRIC ||
                          q->scheme == TARE_PER_CHANNEL_SYMMETRIC;
    if (!is_fixed) *zero_point = least - nearbyint((least - *zero_point) * *scale / raised);
    *scale = raised;
}

static tare_status raise_scales(convert_pass *c, const node *n, const qparams **q) {
    tare_error *err = c->base->err;
    const qparams *was = *q;
    qparams *made = tare__qparams_create(was->scheme, was->dtype, was->axis, was->count, was->scale,
                                         was->zero_point);
    if (made == NULL) return tare__out_of_memory(err);
    made->quant_min = was->quant_min;
    made->quant_max = was->quant_max;
    int64_t raised = 0;
    for (int64_t i = 0; i < was->count; i++) {
        raise_scale(made, &made->scale[i], &made->zero_point[i]);
        raised += made->scale[i] != was->scale[i];
    }
    const double before = was->scale[0], after = made->scale[0];
    tare__qparams_release(was);
    *q = made;
    if (raised == 0) return TARE_OK;
    return TARE_DECIDE(c->base, n, "scale raised", "scale_power_of_two",
                       "%" PRId64 " of %" PRId64 " scales raised to powers of two, the first from "
                       "%.9g to %.9g",
                       raised, made->count, before, after);
}

static bool has_wrong_scheme(const tare_dtype_constraints *d, const qparams *q, char *why,
                             size_t size) {
    if (d->set & TARE_SET_QSCHEMES && !(d->allowed_qschemes & TARE_QSCHEME_BIT(q->scheme))) {
        (void)snprintf(why, size, "the backend does not allow the scheme %s",
                       tare_qscheme_name(q->scheme));
        return true;
    }
    if (!(d->set & TARE_SET_CHANNEL_AXIS) || !tare__qscheme_is_per_channel(q->scheme) ||
        q->axis == d->channel_axis)
        return false;
    (void)snprintf(why, size, "channels are along axis %d, the backend wants %" PRId64, q->axis,
                   d->channel_axis);
    return true;
}

// Describes how the parameters violate the limit at the first such channel; false if they do not.
static bool breaks(const tare_dtype_constraints *d, const qparams *q, char *why, size_t size) {
    if (has_wrong_scheme(d, q, why, size)) return true;
    for (int64_t i = 0; i < q->count; i++) {
        if (d->set & TARE_SET_SCALE_MAX && q->scale[i] > d->scale_max_upper_bound) {
            (void)snprintf(why, size,
                           "the scale %.9g is greater than the backend's greatest (%.9g)",
                           q->scale[i], d->scale_max_upper_bound);
            return true;
        }
        const bool is_low = d->set & TARE_SET_ZERO_POINT_MIN &&
                            q->zero_point[i] < (double)d->zero_point_lower_bound;
        const bool is_high = d->set & TARE_SET_ZERO_POINT_MAX &&
                             q->zero_point[i] > (double)d->zero_point_upper_bound;
        if (!is_low && !is_high) continue;
        (void)snprintf(why, size, "the zero point %g is %s the backend's %s (%" PRId64 ")",
                       q->zero_point[i], is_low ? "below" : "above", is_low ? "least" : "greatest",
                       is_low ? d->zero_point_lower_bound : d->zero_point_upper_bound);
        return true;
    }
    return false;
}

static tare_status check_limit(convert_pass *c, const node *n, const convert_limit *limit,
                               const qparams *q) {
    char why[160];
    if (!breaks(limit->constraints, q, why, sizeof why)) return TARE_OK;
    if (c->options->is_lenient)
        return TARE_DECIDE(c->base, n, "warning", "constraints", "%s, for '%s'", why, limit->node);
    const tare_status status = tare__fail(c->base->err, TARE_INVALID_ARGUMENT,
                                          "node '%s': %s, for '%s'", n->name, why, limit->node);
    return tare__hint(c->base->err, status,
                      "leave '%s' float in the qconfig mapping, choose an observer with another "
                      "range, or widen the bound",
                      limit->node);
}

tare_status tare__convert_apply_limits(convert_pass *c, const node *n, const module *m,
                                       const qparams **q) {
    for (size_t i = 0; i < c->limit_count; i++)
        if (c->limits[i].module == m && c->limits[i].constraints->set & TARE_SET_POWER_OF_TWO) {
            TARE_TRY(raise_scales(c, n, q));
            break;
        }
    for (size_t i = 0; i < c->limit_count; i++)
        if (c->limits[i].module == m) TARE_TRY(check_limit(c, n, &c->limits[i], *q));
    return TARE_OK;
}
