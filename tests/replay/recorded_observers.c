// SPDX-License-Identifier: Apache-2.0
// Observers that propose recorded parameters: a class of observers as users write them, one for
// every recorded edge.
#include <string.h>

#include "core/memory/alloc.h"
#include "observe/observer.h"
#include "replay/statistics.h"

/// What is to be proposed. Copied at creation, as the class lends it.
typedef struct proposal {
    tare_observer_info info;
    int64_t count;
    double *scale, *zero_point;
} proposal;

static void destroy(void *state) {
    proposal *p = state;
    if (p == NULL) return;
    tare__free(p->scale);
    tare__free(p->zero_point);
    tare__free(p);
}

static tare_status clone(const void *state, void **out, tare_error *err) {
    const proposal *from = state;
    const size_t bytes = (size_t)from->count * sizeof(double);
    proposal *p = tare__alloc_zeroed(1, sizeof *p);
    if (p == NULL) return tare__out_of_memory(err);
    *p = *from;
    p->scale = tare__alloc(bytes);
    p->zero_point = tare__alloc(bytes);
    if (p->scale == NULL || p->zero_point == NULL) {
        destroy(p);
        return tare__out_of_memory(err);
    }
    memcpy(p->scale, from->scale, bytes);
    memcpy(p->zero_point, from->zero_point, bytes);
    *out = p;
    return TARE_OK;
}

static tare_status create(void *user, const tare_observer_args *args, void **state,
                          tare_observer_info *info, tare_error *err) {
    (void)args;
    TARE_TRY(clone(user, state, err));
    *info = ((const proposal *)user)->info;
    return TARE_OK;
}

static tare_status propose(const void *state, tare_qparams_sink sink, void *sink_user,
                           bool *is_calibrated, tare_error *err) {
    const proposal *p = state;
    *is_calibrated = true;
    return sink(sink_user, p->count, p->scale, p->zero_point, err);
}

static tare_status instantiate(proposal *p, module **out, tare_error *err) {
    const tare_observer_class class = {.struct_size = sizeof class,
                                       .name = "RecordedObserver",
                                       .user = p,
                                       .create = create,
                                       .destroy = destroy,
                                       .clone = clone,
                                       .qparams = propose};
    const tare_observer_class *list[] = {&class};
    const observer_classes classes = {.user = list, .user_count = 1};
    tare_observer_spec *spec = tare_observer_spec_create(class.name);
    if (spec == NULL) return tare__out_of_memory(err);
    const tare_status status = tare__observer_spec_instantiate(&classes, spec, out, err);
    tare_observer_spec_release(spec);
    return status;
}

static tare_status read_proposal(const json_t *recorded, proposal *p, tare_error *err) {
    const json_t *scale = json_object_get(recorded, "scale");
    const json_t *zero_point = json_object_get(recorded, "zero_point");
    const size_t count = json_array_size(scale);
    if (json_array_size(zero_point) != count)
        return tare__fail(err, TARE_MALFORMED_FILE, "scales and zero points differ in number");
    p->count = (int64_t)count;
    p->scale = tare__alloc_zeroed(count + 1, sizeof(double));
    p->zero_point = tare__alloc_zeroed(count + 1, sizeof(double));
    if (p->scale == NULL || p->zero_point == NULL) return tare__out_of_memory(err);
    for (size_t i = 0; i < count; i++) {
        p->scale[i] = json_number_value(json_array_get(scale, i));
        p->zero_point[i] = json_number_value(json_array_get(zero_point, i));
    }
    return TARE_OK;
}

/// A module that replaces `observer`; it stands under every name that the observer stands under.
static tare_status replace(module *root, const module *observer, module *with, tare_error *err) {
    for (size_t i = 0; i < root->child_count; i++)
        if (root->children[i].module == observer)
            TARE_TRY(tare__module_set_child(root, root->children[i].name, with, err));
    return TARE_OK;
}

static tare_status use_one(module *root, const char *path, const json_t *recorded,
                           tare_error *err) {
    if (json_array_size(json_object_get(recorded, "scale")) == 0) return TARE_OK; // a placeholder
    if (strchr(path, '.') != NULL) return TARE_OK; // a weight's, or inside a fake quantizer
    module *observer = tare__module_child(root, path), *with = NULL;
    if (observer == NULL || observer->class->role != ROLE_OBSERVER)
        return tare__fail(err, TARE_NOT_FOUND, "there is no such observer");
    proposal p = {.info = *tare__observer_info(observer)};
    tare_status status = read_proposal(recorded, &p, err);
    if (status == TARE_OK) status = instantiate(&p, &with, err);
    tare__free(p.scale);
    tare__free(p.zero_point);
    TARE_TRY(status);
    module *kept = tare__module_retain(observer); // alive while its names are looked for
    status = replace(root, kept, with, err);
    tare__module_release(kept);
    tare__module_release(with);
    return status;
}

tare_status use_recorded_parameters(const recorded_case *c, tare_model *prepared, tare_error *err) {
    const char *path = NULL;
    json_t *recorded = NULL;
    json_object_foreach(json_object_get(c->json, "observers"), path, recorded) {
        const tare_status status = use_one(prepared->root, path, recorded, err);
        if (status != TARE_OK) return tare__at(err, status, "observer %s", path);
    }
    return TARE_OK;
}
