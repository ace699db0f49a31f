// SPDX-License-Identifier: Apache-2.0
// What the layers of a network cost in floats and in integers, and which choice of both costs
// least.
//
// A layer is a set of operators of the float model that one step computes together, in the float
// model or in a quantized one. Each has a cost on either side, and so has every value that changes
// sides: it is quantized once for all integer layers that read it, and dequantized once for all
// float ones. The cheapest choice is a minimum cut between the two sides.
// Private to runtime/tune.
#ifndef RUNTIME_TUNE_LAYER_COSTS_H
#define RUNTIME_TUNE_LAYER_COSTS_H

#include "core/memory/arena.h"
#include "model/model.h"
#include "runtime/tune/race.h"

typedef struct layer_cost {
    bool exists;       // else this operator belongs to another one's layer
    bool may_be_int;   // some quantized model computed it so
    bool gives_floats; // in integers too: it quantizes what it reads on the fly
    bool is_float;     // as the latest quantized model computes it
    bool stays_float;  // chosen
    int64_t float_ns, int_ns;
    int64_t boundary_ns; // of conversions that its choice costs, as chosen
    int64_t other_ns;    // the same, had it alone been chosen otherwise
} layer_cost;

typedef struct layer_costs {
    const tare_model *floats; // lent: the prepared model with every layer left float
    arena memory;
    size_t count;      // operators of the float model
    size_t *parent;    // [count] union-find
    layer_cost *items; // [count] by the operator that stands for the layer
    int64_t *elements; // by id of a node of `floats`: of the float tensor it gives; else 0
    double quantize_ns, dequantize_ns; // per element
} layer_costs;

/// Sizes of values are found out by a run. The caller releases *c, on failure too.
tare_status tare__layer_costs_begin(layer_costs *c, const tare_model *floats, const race_setting *s,
                                    tare_error *err);
/// The times of both models' steps in their latest race. There may be several quantized models
/// after each other; a layer's time in integers is that of the latest one that has it so.
tare_status tare__layer_costs_add(layer_costs *c, const racer *floats, const racer *quantized,
                                  tare_error *err);
/// Chooses what stays float: nothing but `stays_float` changes. What was chosen before still is.
tare_status tare__layer_costs_choose(layer_costs *c, tare_error *err);
/// Fills boundary_ns and other_ns by what is chosen.
void tare__layer_costs_note_boundaries(layer_costs *c);
void tare__layer_costs_release(layer_costs *c);

/// The layer of an operator of the float model; SIZE_MAX if it has none of that name.
size_t tare__layer_of(const layer_costs *c, const char *name);

#endif
