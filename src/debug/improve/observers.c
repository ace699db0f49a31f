// SPDX-License-Identifier: Apache-2.0
// The step that replaces the observers of activations.
#include "debug/improve/observers.h"

#include <string.h>

#include "core/memory/alloc.h"
#include "debug/improve/weight_observers.h"
#include "flow/calibrate/observer_list.h"
#include "flow/calibrate/range_histograms.h"
#include "observe/fake_quantize.h"
#include "observe/observer_spec.h"
#include "tare/improve.h"

typedef struct replacing {
    pass base;
    const char *class_name, *rule;
    double percentile; // negative: by entropy
    bool hands_over;   // the new ones get what the old ones saw
    struct {
        module *old, *made; // references, so that addresses stay unique
    } * pairs;
    size_t pair_count, pair_capacity;
    size_t count;
    tare_error *err;
} replacing;

// --- observers of activations ---

static tare_status make_observer(replacing *r, const module *old, module **out) {
    tare_observer_spec *of_old = NULL, *spec = NULL;
    TARE_TRY(tare__observer_spec_of(old, &of_old, r->err));
    tare_status status = tare__spec_like(of_old, r->class_name, &spec, r->err);
    if (status == TARE_OK && r->percentile > 0)
        tare_observer_spec_set_double(spec, "percentile", r->percentile);
    if (status == TARE_OK && r->percentile < 0) tare_observer_spec_set_bool(spec, "entropy", true);
    if (status == TARE_OK)
        status =
            tare__observer_spec_instantiate(&r->base.model->context->observers, spec, out, r->err);
    tare_observer_spec_release(of_old);
    tare_observer_spec_release(spec);
    return status;
}

// The replacement of m; NULL: none yet. is_new: m is a replacement itself.
static module *find_made(const replacing *r, const module *m, bool *is_new) {
    *is_new = false;
    for (size_t i = 0; i < r->pair_count; i++) {
        if (r->pairs[i].made == m) *is_new = true;
        if (r->pairs[i].old == m) return r->pairs[i].made;
    }
    return NULL;
}

static tare_status add_pair(replacing *r, module *old, module **out) {
    module *made = NULL;
    if (!tare__grow((void **)&r->pairs, &r->pair_capacity, r->pair_count, sizeof *r->pairs))
        return tare__out_of_memory(r->err);
    TARE_TRY(make_observer(r, old, &made));
    const tare_status status =
        r->hands_over ? tare__histogram_hand_over(old, made, r->err) : TARE_OK;
    if (status != TARE_OK) {
        tare__module_release(made);
        return status;
    }
    r->pairs[r->pair_count].old = tare__module_retain(old);
    r->pairs[r->pair_count++].made = made;
    r->count++;
    *out = made;
    return TARE_OK;
}

// A module with several paths (the observer of a group) is replaced by one module.
static tare_status replace_module(replacing *r, const node *n) {
    module *old = tare__called_module(r->base.model, n);
    bool is_new = false;
    module *made = find_made(r, old, &is_new);
    if (is_new) return TARE_OK;
    if (made == NULL) TARE_TRY(add_pair(r, old, &made));
    TARE_TRY(TARE_DECIDE(&r->base, n, "observed", r->rule, "by %s instead of %s", r->class_name,
                         tare__observer_class_of(old)->name));
    return tare__module_set_path(r->base.model->root, n->target, made, &tare__class_container,
                                 r->err);
}

static tare_status replace_all(replacing *r) {
    tare_status status = TARE_OK;
    for (const node *n = r->base.model->root->graph->first; n != NULL && status == TARE_OK;
         n = n->next) {
        const module *m = tare__called_module(r->base.model, n);
        if (m != NULL && m->class->role == ROLE_OBSERVER && tare__fake_quantize_kind_of(m) != NULL)
            status =
                tare__fail(r->err, TARE_UNSUPPORTED,
                           "node '%s': fake quantizers were trained with their observers", n->name);
        if (status == TARE_OK && m != NULL && tare__chooses_range(r->base.model, n))
            status = replace_module(r, n);
    }
    return status;
}

static void end(replacing *r) {
    for (size_t i = 0; i < r->pair_count; i++) {
        tare__module_release(r->pairs[i].old);
        tare__module_release(r->pairs[i].made);
    }
    tare__free(r->pairs);
}

static tare_status replace(replacing *r, const tare_model *prepared, size_t *count,
                           tare_model **out) {
    static const char *const classes[] = {"MinMaxObserver", "HistogramObserver",
                                          "tare.MergeableHistogramObserver"};
    bool is_known = false;
    for (size_t i = 0; i < sizeof classes / sizeof *classes && r->class_name != NULL; i++)
        is_known = is_known || strcmp(r->class_name, classes[i]) == 0;
    if (!is_known)
        return tare__fail(r->err, TARE_NOT_FOUND,
                          "'%s' is not an observer class that can replace others",
                          r->class_name != NULL ? r->class_name : "NULL");
    TARE_TRY(tare__improve_begin(&r->base, prepared, out, r->err));
    if (!r->hands_over) tare__observers_forget_data(r->base.model);
    const tare_status status = replace_all(r);
    if (status == TARE_OK && count != NULL) *count = r->count;
    end(r);
    return tare__pass_end(&r->base, status, out);
}

tare_status tare_replace_observers(const tare_model *prepared, const char *class_name,
                                   double percentile, size_t *count, tare_model **out,
                                   tare_error *err) {
    replacing r = {
        .class_name = class_name, .rule = "observers", .percentile = percentile, .err = err};
    return replace(&r, prepared, count, out);
}

bool tare__observers_can_hand_over(const tare_model *prepared, const char *class_name) {
    return strcmp(class_name, "HistogramObserver") != 0 && tare__histograms_are_kept(prepared);
}

tare_status tare__hand_over_observers(const tare_model *prepared, const char *class_name,
                                      double percentile, size_t *count, tare_model **out,
                                      tare_error *err) {
    replacing r = {.class_name = class_name,
                   .rule = "observers",
                   .percentile = percentile,
                   .hands_over = true,
                   .err = err};
    return replace(&r, prepared, count, out);
}
