// SPDX-License-Identifier: Apache-2.0
// Two models watched while they run: what each layer of one gives, beside what the other has there.
#ifndef CLI_LAYERS_H
#define CLI_LAYERS_H

#include "tare/tare.h"

/// How far y is from x, over all that was added.
typedef struct difference {
    double signal, noise; // sums of x^2 and of (x - y)^2
    double largest_error;
} difference;

/// Adds two float32 tensors; false if their shapes differ.
bool difference_add(difference *d, const tare_tensor *x, const tare_tensor *y);
/// 20 log10(|x| / |x - y|); infinite when nothing differs.
double signal_to_noise_db(const difference *d);

typedef struct layer {
    char *quantized_name, *float_name;
    difference difference;
} layer;

typedef struct kept_result {
    char *name;
    tare_tensor *tensor; // float32, a copy of our own
} kept_result;

typedef struct layer_list {
    const tare_model *quantized_model; // says which float node a node computes
    layer *items;                      // in order of execution
    size_t count, capacity;
    kept_result *kept; // of the float model, for the batch at hand
    size_t kept_count, kept_capacity;
} layer_list;

/// tare_node_watchers; user: the layer_list.
tare_status layers_keep_float(void *user, const char *node_name, const tare_tensor *result,
                              tare_error *err);
tare_status layers_compare(void *user, const char *node_name, const tare_tensor *result,
                           tare_error *err);
void layers_forget(layer_list *l); // the kept results
void layers_release(layer_list *l);

#endif
