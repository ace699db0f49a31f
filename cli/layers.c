// SPDX-License-Identifier: Apache-2.0
// Two models watched while they run.
#include "layers.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "report.h"

bool difference_add(difference *d, const tare_tensor *x, const tare_tensor *y) {
    const int64_t count = tare_tensor_element_count(x);
    if (tare_tensor_element_count(y) != count || tare_tensor_dtype(x) != TARE_FLOAT32 ||
        tare_tensor_dtype(y) != TARE_FLOAT32)
        return false;
    const float *a = tare_tensor_data(x), *b = tare_tensor_data(y);
    for (int64_t i = 0; i < count; i++) {
        const double error = (double)a[i] - (double)b[i];
        d->signal += (double)a[i] * (double)a[i];
        d->noise += error * error;
        if (fabs(error) > d->largest_error) d->largest_error = fabs(error);
    }
    return true;
}

double signal_to_noise_db(const difference *d) {
    return d->noise > 0 ? 10 * log10(d->signal / d->noise) : (double)INFINITY;
}

static void *grown(void *items, size_t *capacity, size_t count, size_t size) {
    if (count < *capacity) return items;
    const size_t wanted = *capacity > 0 ? 2 * *capacity : 32;
    void *larger = realloc(items, wanted * size);
    if (larger != NULL) *capacity = wanted;
    return larger;
}

static char *copy_name(const char *name) {
    const size_t size = strlen(name) + 1;
    char *copy = malloc(size);
    return copy != NULL ? memcpy(copy, name, size) : NULL;
}

/// A copy, because a session may use the memory of a result again once its readers have run.
static tare_status float_copy(const tare_tensor *t, tare_tensor **out, tare_error *err) {
    tare_tensor *plain = NULL;
    TRY(tare_tensor_to_float(t, &plain, err));
    const tare_status status =
        tare_tensor_from_data(TARE_FLOAT32, tare_tensor_ndim(plain), tare_tensor_shape(plain),
                              tare_tensor_data(plain), out, err);
    tare_tensor_release(plain);
    return status;
}

tare_status layers_keep_float(void *user, const char *node_name, const tare_tensor *result,
                              tare_error *err) {
    layer_list *l = user;
    if (result == NULL) return TARE_OK;
    kept_result *kept = grown(l->kept, &l->kept_capacity, l->kept_count, sizeof *kept);
    if (kept == NULL) return TARE_OUT_OF_MEMORY;
    l->kept = kept;
    kept_result made = {.name = copy_name(node_name)};
    if (made.name == NULL) return TARE_OUT_OF_MEMORY;
    const tare_status status = float_copy(result, &made.tensor, err);
    if (status == TARE_OK)
        l->kept[l->kept_count++] = made;
    else
        free(made.name);
    return status;
}

static const tare_tensor *find_kept(const layer_list *l, const char *name) {
    for (size_t i = 0; i < l->kept_count; i++)
        if (strcmp(l->kept[i].name, name) == 0) return l->kept[i].tensor;
    return NULL;
}

static layer *find_layer(layer_list *l, const char *quantized_name, const char *float_name) {
    for (size_t i = 0; i < l->count; i++)
        if (strcmp(l->items[i].quantized_name, quantized_name) == 0) return &l->items[i];
    layer *items = grown(l->items, &l->capacity, l->count, sizeof *items);
    if (items == NULL) return NULL;
    l->items = items;
    const layer made = {.quantized_name = copy_name(quantized_name),
                        .float_name = copy_name(float_name)};
    if (made.quantized_name == NULL || made.float_name == NULL) {
        free(made.quantized_name);
        free(made.float_name);
        return NULL;
    }
    l->items[l->count] = made;
    return &l->items[l->count++];
}

tare_status layers_compare(void *user, const char *node_name, const tare_tensor *result,
                           tare_error *err) {
    layer_list *l = user;
    const char *float_name = tare_model_float_node(l->quantized_model, node_name);
    const tare_tensor *expected = float_name != NULL ? find_kept(l, float_name) : NULL;
    if (result == NULL || expected == NULL) return TARE_OK;
    layer *found = find_layer(l, node_name, float_name);
    if (found == NULL) return TARE_OUT_OF_MEMORY;
    tare_tensor *plain = NULL;
    TRY(tare_tensor_to_float(result, &plain, err));
    const bool fits = difference_add(&found->difference, expected, plain);
    tare_tensor_release(plain);
    return fits ? TARE_OK
                : fail_here(node_name, NULL,
                            "its result has another size than the float model's '%s'", float_name);
}

void layers_forget(layer_list *l) {
    for (size_t i = 0; i < l->kept_count; i++) {
        free(l->kept[i].name);
        tare_tensor_release(l->kept[i].tensor);
    }
    l->kept_count = 0;
}

void layers_release(layer_list *l) {
    layers_forget(l);
    for (size_t i = 0; i < l->count; i++) {
        free(l->items[i].quantized_name);
        free(l->items[i].float_name);
    }
    free(l->items);
    free(l->kept);
}
