// SPDX-License-Identifier: Apache-2.0
// Histograms beside the observers of activations. Those of tare.MergeableHistogramObserver are
// taken: they have the extremes, too, and do not depend on the order of the data.
#include "flow/calibrate/range_histograms.h"

#include <string.h>

#include "core/tensor/map.h"
#include "model/pass.h"
#include "observe/fake_quantize.h"
#include "observe/observer.h"

#define HISTOGRAM "tare.MergeableHistogramObserver"

static bool is_of(const module *observer, const char *class_name) {
    return strcmp(tare__observer_class_of(observer)->name, class_name) == 0;
}

static bool watches_constant(const tare_model *model, const node *n) {
    const node *read = tare__behind_observers(model, tare__node_arg(n, 0));
    return read != NULL && read->op == NODE_GET_ATTR;
}

bool tare__chooses_range(const tare_model *model, const node *n) {
    static const char *const classes[] = {"MinMaxObserver", "MovingAverageMinMaxObserver",
                                          "HistogramObserver", HISTOGRAM};
    const module *m = tare__called_module(model, n);
    if (!tare__is_observer_node(model, n) || watches_constant(model, n)) return false;
    const tare_observer_info *info = tare__observer_info(m);
    if (info->is_dynamic || info->has_fixed_qparams || !info->has_qparams) return false;
    for (size_t i = 0; i < sizeof classes / sizeof *classes; i++)
        if (is_of(m, classes[i])) return true;
    return false;
}

const tare_observer_class *tare__range_class(const tare_model *model) {
    const tare_observer_class *found = NULL;
    for (const node *n = model->root->graph->first; n != NULL; n = n->next) {
        if (!tare__chooses_range(model, n)) continue;
        const tare_observer_class *class = tare__observer_class_of(tare__called_module(model, n));
        if (found != NULL && class != found) return NULL;
        found = class;
    }
    return found;
}

// The histogram of what the observer saw: its own, if it has the usual bins; NULL: there is none.
static const module *histogram_of(const module *observer) {
    const bool is_usual = tare__module_config(observer, "bins") == NULL;
    return is_of(observer, HISTOGRAM) && is_usual ? observer : tare__observer_companion(observer);
}

static tare_status has_data(const module *observer, bool *out, tare_error *err) {
    const qparams *q = NULL;
    TARE_TRY(tare__observer_qparams(observer, &q, out, err));
    tare__qparams_release(q);
    return TARE_OK;
}

static tare_status add_histogram(module *observer, tare_error *err) {
    bool is_late = false;
    module *made = NULL;
    TARE_TRY(has_data(observer, &is_late, err));
    if (is_late) return TARE_OK;
    tare_observer_spec *spec = tare_observer_spec_create(HISTOGRAM);
    if (spec == NULL) return tare__out_of_memory(err);
    const tare_status status = tare__observer_spec_instantiate(NULL, spec, &made, err);
    tare_observer_spec_release(spec);
    if (status == TARE_OK) tare__observer_take_companion(observer, made);
    return status;
}

tare_status tare__histograms_keep(tare_model *prepared, tare_error *err) {
    for (const node *n = prepared->root->graph->first; n != NULL; n = n->next) {
        if (!tare__chooses_range(prepared, n)) continue;
        module *observer = tare__called_module(prepared, n);
        if (histogram_of(observer) == NULL) TARE_TRY(add_histogram(observer, err));
    }
    return TARE_OK;
}

bool tare__histograms_are_kept(const tare_model *prepared) {
    for (const node *n = prepared->root->graph->first; n != NULL; n = n->next)
        if (tare__chooses_range(prepared, n) &&
            histogram_of(tare__called_module(prepared, n)) == NULL)
            return false;
    return true;
}

// Shows the observer the histogram's extremes.
static tare_status show_extremes(const module *histogram, module *to, tare_error *err) {
    map saved = {0};
    tare_tensor *both = NULL;
    const int64_t count = 2;
    tare_status status = tare__observer_state_io.save(histogram, &saved, err);
    if (status == TARE_OK) {
        const float values[] = {tare__f32(tare__map_get(&saved, "min_val"))[0],
                                tare__f32(tare__map_get(&saved, "max_val"))[0]};
        status = tare_tensor_from_data(TARE_FLOAT32, 1, &count, values, &both, err);
        if (status == TARE_OK && values[0] <= values[1])
            status = tare__observer_update(to, both, err);
    }
    tare_tensor_release(both);
    tare__tensor_map_release(&saved);
    return status;
}

tare_status tare__histogram_hand_over(const module *old, module *made, tare_error *err) {
    const module *histogram = histogram_of(old);
    module *copy = NULL;
    if (is_of(made, HISTOGRAM)) return tare__observer_merge(made, histogram, err);
    TARE_TRY(show_extremes(histogram, made, err));
    TARE_TRY(tare__module_clone(histogram, &copy, err));
    tare__observer_take_companion(made, copy);
    return TARE_OK;
}
