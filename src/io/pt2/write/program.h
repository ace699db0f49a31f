// SPDX-License-Identifier: Apache-2.0
// The writer's state: the fields of a program as text.
// Private to io/pt2/write.
#ifndef IO_PT2_WRITE_PROGRAM_H
#define IO_PT2_WRITE_PROGRAM_H

#include "core/memory/map.h"
#include "io/pt2/write/argument.h"

typedef enum lifted_kind { LIFTED_PARAMETER, LIFTED_BUFFER, LIFTED_CONSTANT } lifted_kind;

/// A tensor that get_attr nodes read and that becomes an input of the program.
typedef struct lifted {
    const node *reader; // the first one
    const char *path, *name;
    const tare_tensor *data;
    lifted_kind kind;
    bool is_persistent; // in the state dict
    bool requires_grad;
    size_t record; // index among the records of weights or of constants
} lifted;

typedef struct program_writer {
    bool is_branch; // the graph is an argument of a node; it has no lifted tensors
    const module *root;
    const graph *g;
    pt2_sizes *sizes;
    lifted *lifted;
    size_t lifted_count;
    map lifted_at;    // path -> index + 1
    map taken;        // names of values
    pt2_given *given; // by node id
    // The items of the lists and objects in `graph` and `signature`, without brackets.
    text inputs, outputs, nodes, input_specs, output_specs;
    text tensor_values, sym_int_values, sym_float_values, sym_bool_values;
    arena memory;
    tare_error *err;
} program_writer;

/// Refuses calls that programs cannot contain. Called first, so that no other error hides this one.
tare_status tare__pt2_check_calls(const program_writer *w);
/// Fill the texts of w; to be called in this order.
tare_status tare__pt2_write_inputs(program_writer *w);
tare_status tare__pt2_write_nodes(program_writer *w);
tare_status tare__pt2_write_outputs(program_writer *w);

/// {"inputs": [..], "outputs": [..], ..}, assembled from the texts.
void tare__pt2_write_graph(const program_writer *w, text *out);
/// TARE_OUT_OF_MEMORY if one of the texts could not grow.
tare_status tare__pt2_check_texts(const program_writer *w);
/// Creates w->sizes and fills all texts.
tare_status tare__pt2_write_fields(program_writer *w);
void tare__pt2_release_fields(program_writer *w);

/// True if n only checks the inputs. Programs have their own guards.
bool tare__pt2_is_guard(const program_writer *w, const node *n);
/// True for a copy_ into an input at the end of the graph, which becomes a mutation among the
/// outputs instead of a node.
bool tare__pt2_is_mutation(const node *n);
/// Appends ", " unless the list is empty.
void tare__pt2_separate(text *list);
/// Adds the result of n (or an item of it) to the table of values of its kind.
tare_status tare__pt2_note_value(program_writer *w, const node *n, int64_t item, pt2_given g);

/// Appends `module_call_graph` as read from a file, else one with the graph's inputs and outputs.
tare_status tare__pt2_write_calls(const program_writer *w, text *out);

#endif
