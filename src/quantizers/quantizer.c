// SPDX-License-Identifier: Apache-2.0
// Quantizers: creation and destruction, and their calls in the order of prepare.
#include "quantizers/quantizer.h"

#include "core/error.h"
#include "core/memory/alloc.h"
#include "core/struct_size.h"
#include "model/model.h"

tare_status tare_quantizer_create(const tare_quantizer_class *quantizer_class, void *self,
                                  tare_quantizer **out, tare_error *err) {
    tare_quantizer *made = tare__alloc_zeroed(1, sizeof *made);
    if (made == NULL) return tare__out_of_memory(err);
    tare__struct_copy(&made->class, sizeof made->class, quantizer_class);
    tare_status status = TARE_OK;
    if (made->class.name == NULL || made->class.annotate == NULL)
        status = tare__fail(err, TARE_INVALID_ARGUMENT, "a quantizer needs a name and annotate");
    else if ((made->class.name = tare__strdup(made->class.name)) == NULL)
        status = tare__out_of_memory(err);
    if (status != TARE_OK) {
        tare__free(made);
        return status;
    }
    made->self = self;
    *out = made;
    return TARE_OK;
}

void tare_quantizer_destroy(tare_quantizer *q) {
    if (q == NULL) return;
    if (q->class.destroy != NULL) q->class.destroy(q->self);
    tare__free((char *)q->class.name);
    tare__free(q);
}

const char *tare_quantizer_name(const tare_quantizer *q) {
    return q->class.name;
}

static tare_status at(const tare_quantizer *q, tare_status status, tare_error *err) {
    return status == TARE_OK ? status : tare__at(err, status, "%s", q->class.name);
}

tare_status tare_quantizer_transform(const tare_quantizer *q, tare_model *model, tare_error *err) {
    if (q->class.transform_for_annotation == NULL) return TARE_OK;
    TARE_TRY(at(q, q->class.transform_for_annotation(q->self, model, err), err));
    return at(q, tare__graph_verify(model->root->graph, err), err);
}

tare_status tare_quantizer_annotate(const tare_quantizer *q, tare_model *model, tare_error *err) {
    TARE_TRY(at(q, q->class.annotate(q->self, model, err), err));
    TARE_TRY(tare__annotations_note_quantizer(&model->annotations, q->class.name, err));
    if (q->class.validate == NULL) return TARE_OK;
    return at(q, q->class.validate(q->self, model, err), err);
}
