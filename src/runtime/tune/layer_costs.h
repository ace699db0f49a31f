// SPDX-License-Identifier: Apache-2.0
// The cost of a network's layers with floats and with integers, and the cheapest combination.
//
// A layer is a set of operators of the float model that one step computes together, in the float
// model or in a quantized one. It has a cost with floats and a cost with integers. A value that is
// read on the other side costs a conversion: one quantize for all integer layers that read it, or
// one dequantize for all float layers. The cheapest combination solves an integer program.
#ifndef RUNTIME_TUNE_LAYER_COSTS_H
#define RUNTIME_TUNE_LAYER_COSTS_H

#include "core/math/choice_program.h"
#include "core/memory/arena.h"
#include "model/model.h"
#include "runtime/tune/race.h"

typedef struct layer_cost {
    bool exists;     // false: the operator belongs to another one's layer
    bool may_be_int; // some quantized model computed it with integers
    bool
        gives_floats; // also with integers: it quantizes its input dynamically, or its weight alone
    bool is_float;    // in the latest quantized model
    bool stays_float; // the choice
    int64_t float_ns, int_ns;
    int64_t boundary_ns; // of the conversions that the choice causes
    int64_t other_ns;    // the same with the opposite choice for this layer alone
} layer_cost;

typedef struct layer_costs {
    const tare_model *floats; // lent: the prepared model with every layer left float
    arena memory;
    size_t count;      // operators of the float model
    size_t *parent;    // [count] union-find
    layer_cost *items; // [count] by the operator that represents the layer
    int64_t *elements; // by node id of `floats`: elements of its float tensor; else 0
    bool is_predicted; // the times
    double quantize_ns, dequantize_ns; // per element
} layer_costs;

/// Determines the sizes of values by shape rules. The caller releases *c, also on failure.
tare_status tare__layer_costs_begin(layer_costs *c, const tare_model *floats, const race_setting *s,
                                    tare_error *err);
/// Adds the times of both models' steps in their latest race. Several quantized models may be added
/// in sequence; the integer time of a layer is that of the latest model that computes it with
/// integers.
tare_status tare__layer_costs_add(layer_costs *c, const racer *floats, const racer *quantized,
                                  tare_error *err);
/// Chooses the layers to leave float. Only sets `stays_float`, and never clears it.
tare_status tare__layer_costs_choose(layer_costs *c, tare_error *err);

// What the choices cost: kinds of costs of the program.
enum { COST_ERROR, COST_NS, COST_BYTES };

// What a layer costs beside its time.
typedef struct choice_error {
    double error;                  // that its weight in integers makes; any unit, and errors add up
    double int_bytes, float_bytes; // of its weight
    bool has_wide;                 // its weight could have 8 bits instead of fewer
    double wide_error, wide_ns, wide_bytes;
} choice_error;

typedef struct choice_errors {
    const choice_error *layers; // [count], by the operator that stands for the layer
    /// By id of a node of `floats`: that rounding its value makes. A value is rounded as soon as
    /// the layer that computes it, or one that reads it, is in integers.
    const double *values;
} choice_errors;

/// The program of a choice for each layer. solution: memory for tare__program_solve.
typedef struct layer_program {
    choice_program program;
    size_t *own;   // by layer: its item
    size_t *items; // by layer: the item whose side its values are on
    program_solution solution;
} layer_program;

/// errors NULL: times alone, those in integers less a little, so that noise leaves nothing float.
/// The caller releases out->program, on failure too; the rest is in c's memory.
tare_status tare__layer_costs_program(layer_costs *c, const choice_errors *errors,
                                      layer_program *out, tare_error *err);
/// What the solution says of a layer that exists: float, or 8 bits instead of fewer.
bool tare__layer_program_is_float(const layer_program *x, size_t layer);
bool tare__layer_program_is_wide(const layer_program *x, size_t layer);

/// Computes boundary_ns and other_ns for the choice.
void tare__layer_costs_note_boundaries(layer_costs *c);
void tare__layer_costs_release(layer_costs *c);

/// The layer of an operator of the float model; SIZE_MAX if there is no such operator.
size_t tare__layer_of(const layer_costs *c, const char *name);

#endif
