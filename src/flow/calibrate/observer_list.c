// SPDX-License-Identifier: Apache-2.0
// All observers of a model.
#include "flow/calibrate/observer_list.h"

#include "core/memory/alloc.h"
#include "tare/calibration.h"

static tare_status list_observer(void *user, const char *path, module *m, tare_error *err) {
    observer_list *list = user;
    (void)path;
    if (m->class->role != ROLE_OBSERVER) return TARE_OK;
    for (size_t i = 0; i < list->count; i++)
        if (list->items[i] == m) return TARE_OK;
    if (!tare__grow((void **)&list->items, &list->capacity, list->count, sizeof(module *)))
        return tare__out_of_memory(err);
    list->items[list->count++] = m;
    return TARE_OK;
}

tare_status tare__observers_list(const tare_model *model, observer_list *out, tare_error *err) {
    return tare__module_walk(model->root, list_observer, out, err);
}

// An observer like this one, without data.
static tare_status make_fresh(const tare_model *model, const module *observer, module **out,
                              tare_error *err) {
    tare_observer_spec *spec = NULL;
    TARE_TRY(tare__observer_spec_of(observer, &spec, err));
    const tare_status status =
        tare__observer_spec_instantiate(&model->context->observers, spec, out, err);
    tare_observer_spec_release(spec);
    return status;
}

static tare_status forget(const tare_model *model, module *observer, tare_error *err) {
    module *fresh = NULL, *companion = NULL;
    if (!tare__observer_watches(observer)) return TARE_OK;
    const module *old = tare__observer_companion(observer);
    if (old != NULL) TARE_TRY(make_fresh(model, old, &companion, err));
    const tare_status status = make_fresh(model, observer, &fresh, err);
    if (status != TARE_OK) {
        tare__module_release(companion);
        return status;
    }
    if (companion != NULL) tare__observer_take_companion(fresh, companion);
    tare__observer_swap(observer, fresh);
    tare__module_release(fresh);
    return TARE_OK;
}

void tare__observers_forget_data(tare_model *model) {
    tare__seen_release(&model->seen);
    tare__record_remove(&model->decisions, TARE_CALIBRATION_DATA_RULE);
}

tare_status tare__observers_forget(tare_model *model, tare_error *err) {
    observer_list list = {0};
    tare__observers_forget_data(model);
    tare_status status = tare__observers_list(model, &list, err);
    for (size_t i = 0; i < list.count && status == TARE_OK; i++)
        status = forget(model, list.items[i], err);
    tare__free(list.items);
    return status;
}
