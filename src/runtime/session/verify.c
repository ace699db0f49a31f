// SPDX-License-Identifier: Apache-2.0
// Verifies that a file's packed weights equal the result of packing: packs all weights that a
// session may use again, from a copy of the model without the file's packed weights.
#include <inttypes.h>
#include <string.h>

#include "core/memory/alloc.h"
#include "model/model.h"
#include "runtime/gemm/depthwise_weights.h"
#include "runtime/gemm/product_weights.h"
#include "tare/session.h"

typedef struct verification {
    tare_model_verified found;
    const tare_tensor **seen; // tensors with packed weights, which modules may share
    size_t seen_count, capacity;
    tare_error *err;
} verification;

static tare_status pack_product(const tare_tensor *weight, const product_form *form,
                                tare_tensor **out, tare_error *err) {
    packed_weights *packed = NULL;
    TARE_TRY(tare__product_weights_get(weight, form, &packed, err));
    const tare_status status = tare__product_weights_bytes(packed, form, out, err);
    tare__packed_weights_release(packed);
    return status;
}

static tare_status pack_depthwise(const tare_tensor *weight, const depthwise_form *form,
                                  tare_tensor **out, tare_error *err) {
    const weight_taps plain = {.are_plain = true};
    packed_weights *packed = NULL;
    TARE_TRY(tare__depthwise_weights_get(weight, form, &plain, &packed, err));
    const tare_status status = tare__depthwise_weights_bytes(packed, form, out, err);
    tare__packed_weights_release(packed);
    return status;
}

static tare_status pack_again(const tare_tensor *weight, const derived_key *key, tare_tensor **out,
                              tare_error *err) {
    product_form product;
    depthwise_form depthwise;
    if (weight->dtype != TARE_QINT8)
        return tare__fail(err, TARE_MALFORMED_FILE, "packed weights of a tensor of dtype %s",
                          tare_dtype_name(weight->dtype));
    if (tare__product_form_of_key(key, weight, &product))
        return pack_product(weight, &product, out, err);
    if (tare__depthwise_form_of_key(key, weight, &depthwise))
        return pack_depthwise(weight, &depthwise, out, err);
    tare__fail(err, TARE_UNSUPPORTED,
               "packed weights in a form that this version does not know (version %" PRIu64 ")",
               key->numbers[0]);
    return tare__hint(err, TARE_UNSUPPORTED, "write the model again with --packed");
}

static tare_status compare(derived_offer offered, const tare_tensor *packed, tare_error *err) {
    const unsigned char *found = offered.data, *expected = packed->data;
    const size_t size = (size_t)packed->count;
    if (offered.size != size)
        return tare__fail(err, TARE_MALFORMED_FILE, "packed weights: expected %zu bytes, found %zu",
                          size, offered.size);
    size_t at = 0;
    while (at < size && found[at] == expected[at]) at++;
    if (at == size) return TARE_OK;
    tare__fail(
        err, TARE_MALFORMED_FILE,
        "packed weights differ from the result of packing: byte %zu of %zu: expected 0x%02x, "
        "found 0x%02x",
        at, size, expected[at], found[at]);
    return tare__hint(err, TARE_MALFORMED_FILE,
                      "write the model again with --packed, from a file that holds");
}

static tare_status verify_offer(const tare_tensor *copy, const derived_key *key,
                                derived_offer offered, tare_error *err) {
    tare_tensor *packed = NULL;
    TARE_TRY(pack_again(copy, key, &packed, err));
    const tare_status status = compare(offered, packed, err);
    tare_tensor_release(packed);
    return status;
}

static tare_status verify_offers(verification *v, const tare_tensor *weight) {
    derived_key key;
    derived_offer offered;
    tare_tensor *copy = NULL;
    TARE_TRY(tare__tensor_copy(weight, &copy, v->err));
    tare_status status = TARE_OK;
    for (size_t i = 0; status == TARE_OK &&
                       tare__derived_offer_at(weight->store, weight->data, i, &key, &offered);
         i++) {
        status = verify_offer(copy, &key, offered, v->err);
        v->found.packed_count += status == TARE_OK;
    }
    tare_tensor_release(copy);
    return status;
}

static bool has_offers(const tare_tensor *t) {
    derived_key key;
    derived_offer offered;
    return t != NULL && t->store != NULL && t->count > 0 &&
           tare__derived_offer_at(t->store, t->data, 0, &key, &offered);
}

static tare_status verify_once(verification *v, const tare_tensor *weight) {
    for (size_t i = 0; i < v->seen_count; i++)
        if (v->seen[i] == weight) return TARE_OK;
    if (!tare__grow((void **)&v->seen, &v->capacity, v->seen_count, sizeof(tare_tensor *)))
        return tare__out_of_memory(v->err);
    v->seen[v->seen_count++] = weight;
    return verify_offers(v, weight);
}

static tare_status visit(void *user, const char *path, module *m, tare_error *err) {
    verification *v = user;
    for (size_t i = 0; i < m->tensor_count; i++) {
        const tare_tensor *t = m->tensors[i].tensor;
        const tare_status status = has_offers(t) ? verify_once(v, t) : TARE_OK;
        if (status != TARE_OK)
            return tare__at(err, status, "tensor '%s%s%s'", path, path[0] != '\0' ? "." : "",
                            m->tensors[i].name);
    }
    return TARE_OK;
}

tare_status tare_model_verify(const tare_model *model, tare_model_verified *out, tare_error *err) {
    if (model == NULL || out == NULL)
        return tare__fail(err, TARE_INVALID_ARGUMENT, "expected a model and a place for results");
    verification v = {.found = {.struct_size = sizeof v.found, .digest_count = model->digest_count},
                      .err = err};
    const tare_status status = tare__module_walk(model->root, visit, &v, err);
    tare__free(v.seen);
    if (status == TARE_OK) *out = v.found;
    return status;
}
