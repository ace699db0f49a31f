// SPDX-License-Identifier: Apache-2.0
// Valid graphs made of bytes, over the tables of operators and module classes. A call is drawn from
// a row's names and parameters, tried on the values at hand, and joins the graph if the row's shape
// rule and reference accept it. So an operator needs nothing here but its row, unless a parameter
// has a name of its own (random_arguments.c).
#ifndef SUPPORT_DIFFERENTIAL_RANDOM_GRAPH_H
#define SUPPORT_DIFFERENTIAL_RANDOM_GRAPH_H

#include "model/model.h"
#include "ops/op.h"
#include "support/differential/choices.h"

enum { MOST_RANDOM_INPUTS = 3, MOST_RANDOM_CALLS = 12, MOST_RANDOM_ELEMENTS = 1 << 14 };

/// How calls are spelled.
typedef enum graph_spelling {
    SPELL_FX,    // modules, functions and methods, as torch.fx traces them
    SPELL_ATEN,  // torch.ops and tensors read by get_attr, as torch.export does
    SPELL_MIXED, // all of them
} graph_spelling;

/// A node and what it gives for the inputs.
typedef struct drawn_value {
    node *node;
    value value; // owns references
} drawn_value;

typedef struct random_graph {
    choices *choices;
    graph_spelling spelling;
    module *root;
    arena memory; // of values
    drawn_value *values;
    size_t count, capacity;
    tare_tensor *inputs[MOST_RANDOM_INPUTS];
    size_t input_count;
    size_t tensor_count, module_count; // made so far, for their names
    uint64_t numbers;                  // the state of what fills tensors
    bool is_wild;                      // infinities, NaNs and great numbers may come out
    tare_error *err;
} random_graph;

/// Draws inputs and calls, and chooses outputs. False: memory is gone, or nothing fits the bytes.
bool random_graph_draw(random_graph *g, choices *c);
/// The inputs alone.
bool random_graph_begin(random_graph *g, choices *c);
/// Tries one call of a row, by a function or method; is it in the graph now?
bool random_graph_call(random_graph *g, const op_info *op);
/// The same by a module of a float class.
bool random_graph_call_module(random_graph *g, const module_class *class);
/// Takes the module tree with the graph, as a float model; random_graph_release comes after.
tare_model *random_graph_model(random_graph *g);
void random_graph_release(random_graph *g);

// --- for the files of the generator ---

/// A call that is being drawn. Parameters are drawn from left to right; later ones fit earlier
/// ones.
typedef struct call_draft {
    random_graph *g;
    const op_info *op;
    const char *id;       // of the row
    const tare_tensor *x; // the first tensor that was drawn; NULL: none yet
    int dims;             // spatial dimensions: those at the end of the row's id, or of the class
    int dim;              // the last dimension that was drawn, counted from the front
    int64_t groups;       // of a convolution or norm
    int normalized;       // trailing dimensions that a norm takes
    bool is_signed;       // quantized values of the parameters that are drawn
    bool has_size;        // a size was drawn, which stands for a factor
    module *module;       // takes the tensors that are made; NULL: they are read by get_attr
} call_draft;

/// Is there a way to make an argument of this name? `is_needed`: a call rarely works without it.
bool random_argument_is_known(const char *name, bool *is_needed);
/// Draws an argument for a parameter of this name; false: nothing at hand fits.
bool random_argument(call_draft *d, const char *name, value *out);
/// A tensor of this shape, filled with numbers of its dtype.
tare_tensor *random_tensor(random_graph *g, tare_dtype dtype, int ndim, const int64_t *shape);
/// The same as a constant of the model that a get_attr node reads, or as a tensor of the draft's
/// module under this name, of which nothing is read.
bool random_constant(call_draft *d, const char *name, tare_tensor *t, value *out);
/// Integers below `below`, the first of which are chosen.
tare_tensor *random_indices(random_graph *g, int ndim, const int64_t *shape, int64_t below);
/// What a value stands for: that of its node, or itself.
const value *random_value_of(const random_graph *g, const value *v);
/// One of the tensors at hand that `fits`, mostly a late one; NULL: there is none.
const drawn_value *random_pick(random_graph *g,
                               bool (*fits)(const call_draft *d, const tare_tensor *t),
                               const call_draft *d);
/// Channels of the first tensor; a number that divides them goes to d->groups.
int64_t random_channels(const call_draft *d);
bool random_groups(call_draft *d);
/// Parameters that are tensors (random_weights.c).
bool random_weight(call_draft *d, value *out);
bool random_bias(call_draft *d, value *out);
bool random_mean(call_draft *d, value *out);
bool random_variance(call_draft *d, value *out);
/// Gives a float module of recurrent class its sizes and weights.
bool random_recurrent(call_draft *d, module *m);
/// The states and weights of a recurrent function of one layer.
bool random_recurrent_states(call_draft *d, value *out);
bool random_recurrent_weights(call_draft *d, value *out);
bool random_cell_weight_ih(call_draft *d, value *out);
bool random_cell_weight_hh(call_draft *d, value *out);
bool random_cell_bias(call_draft *d, value *out);

#endif
