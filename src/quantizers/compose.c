// SPDX-License-Identifier: Apache-2.0
// ComposableQuantizer: applies several quantizers in order. None may replace an annotation of an
// earlier one, but, as in torchao, it may add to one in place.
#include <string.h>

#include "core/memory/alloc.h"
#include "core/memory/map.h"
#include "model/model.h"
#include "quantizers/quantizer.h"
#include "tare/quantizer.h"

typedef struct composition {
    tare_quantizer **items;
    size_t count;
} composition;

static tare_status transform_all(void *self, tare_model *model, tare_error *err) {
    const composition *c = self;
    for (size_t i = 0; i < c->count; i++)
        TARE_TRY(tare_quantizer_transform(c->items[i], model, err));
    return TARE_OK;
}

// Checks that no annotation was replaced or removed. known: node name -> serial number of the
// annotation before.
static tare_status check_known(const tare_quantizer *q, const tare_model *model, const map *known,
                               tare_error *err) {
    for (size_t i = 0; i < known->count; i++) {
        const char *name = known->entries[i].key;
        const tare_annotation *now = tare__annotation_find(&model->annotations, name);
        if (now != NULL && tare__map_int(now->serial) == known->entries[i].value) continue;
        return tare__fail(err, TARE_INVALID_ARGUMENT, "Quantizer %s has %s annotations on node %s",
                          tare_quantizer_name(q), now != NULL ? "changed" : "removed", name);
    }
    return TARE_OK;
}

static tare_status note_all(const tare_model *model, map *known, tare_error *err) {
    const map *book = &model->annotations.by_node;
    for (size_t i = 0; i < book->count; i++) {
        const tare_annotation *a = book->entries[i].value;
        if (!tare__map_set(known, book->entries[i].key, tare__map_int(a->serial)))
            return tare__out_of_memory(err);
    }
    return TARE_OK;
}

static tare_status annotate_all(void *self, tare_model *model, tare_error *err) {
    const composition *c = self;
    map known = {0};
    tare_status status = TARE_OK;
    for (size_t i = 0; i < c->count && status == TARE_OK; i++) {
        const tare_quantizer *q = c->items[i];
        status = q->class.annotate(q->self, model, err);
        if (status == TARE_OK)
            status = tare__annotations_note_quantizer(&model->annotations, q->class.name, err);
        if (status == TARE_OK) status = check_known(q, model, &known, err);
        if (status == TARE_OK) status = note_all(model, &known, err);
    }
    tare__map_release(&known);
    return status;
}

static tare_status validate_all(void *self, const tare_model *model, tare_error *err) {
    const composition *c = self;
    for (size_t i = 0; i < c->count; i++) {
        const tare_quantizer *q = c->items[i];
        if (q->class.validate != NULL) TARE_TRY(q->class.validate(q->self, model, err));
    }
    return TARE_OK;
}

static tare_status call_back_all(void *self, const tare_model *model, tare_observer_map *observers,
                                 tare_error *err) {
    const composition *c = self;
    for (size_t i = 0; i < c->count; i++) {
        const tare_quantizer *q = c->items[i];
        if (q->class.prepare_obs_or_fq_callback != NULL)
            TARE_TRY(q->class.prepare_obs_or_fq_callback(q->self, model, observers, err));
    }
    return TARE_OK;
}

static void destroy_all(void *self) {
    composition *c = self;
    for (size_t i = 0; i < c->count; i++) tare_quantizer_destroy(c->items[i]);
    tare__free(c->items);
    tare__free(c);
}

tare_status tare_quantizer_compose(tare_quantizer *const *quantizers, size_t count,
                                   tare_quantizer **out, tare_error *err) {
    static const tare_quantizer_class class = {.struct_size = sizeof class,
                                               .name = "ComposableQuantizer",
                                               .transform_for_annotation = transform_all,
                                               .annotate = annotate_all,
                                               .validate = validate_all,
                                               .prepare_obs_or_fq_callback = call_back_all,
                                               .destroy = destroy_all};
    composition *c = tare__alloc_zeroed(1, sizeof *c);
    tare_quantizer **items = tare__alloc_zeroed(count + 1, sizeof *items);
    tare_status status = c != NULL && items != NULL ? TARE_OK : tare__out_of_memory(err);
    if (status == TARE_OK) {
        c->items = items;
        status = tare_quantizer_create(&class, c, out, err);
    }
    if (status == TARE_OK) {
        memcpy(items, quantizers, count * sizeof *items);
        c->count = count;
        (*out)->members = items;
        (*out)->member_count = count;
        return TARE_OK;
    }
    tare__free(items);
    tare__free(c);
    return status;
}
