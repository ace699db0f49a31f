// SPDX-License-Identifier: Apache-2.0
// The fields of a program that is being written.
// Private to io/pt2/write.
#ifndef IO_PT2_WRITE_PROGRAM_H
#define IO_PT2_WRITE_PROGRAM_H

#include "core/memory/map.h"
#include "io/pt2/write/argument.h"

typedef enum lifted_kind { LIFTED_PARAMETER, LIFTED_BUFFER, LIFTED_CONSTANT } lifted_kind;

/// A tensor that get_attr reads, and that is an input of the program.
typedef struct lifted {
    const node *reader; // the first one
    const char *path, *name;
    const tare_tensor *data;
    lifted_kind kind;
    bool is_persistent; // a buffer that state dicts have
    bool requires_grad;
    size_t record; // among those of weights, or of constants
} lifted;

typedef struct program_writer {
    bool is_branch; // a graph that is an argument, and takes all tensors as inputs
    const module *root;
    const graph *g;
    pt2_sizes *sizes;
    lifted *lifted;
    size_t lifted_count;
    map lifted_at;    // path -> index + 1
    map taken;        // names of values
    pt2_given *given; // by node id
    // The items of lists and objects of `graph` and `signature`.
    text inputs, outputs, nodes, input_specs, output_specs;
    text tensor_values, sym_int_values, sym_float_values, sym_bool_values;
    arena memory;
    tare_error *err;
} program_writer;

/// Refuses calls that no program can hold, before anything else is found missing.
tare_status tare__pt2_check_calls(const program_writer *w);
/// Each fills texts of w, in this order.
tare_status tare__pt2_write_inputs(program_writer *w);
tare_status tare__pt2_write_nodes(program_writer *w);
tare_status tare__pt2_write_outputs(program_writer *w);

/// {"inputs": [..], "outputs": [..], ..}, assembled from the texts.
void tare__pt2_write_graph(const program_writer *w, text *out);
/// TARE_OUT_OF_MEMORY if one of the texts could not grow.
tare_status tare__pt2_check_texts(const program_writer *w);
/// Makes sizes and everything that the texts need, and fills these.
tare_status tare__pt2_write_fields(program_writer *w);
void tare__pt2_release_fields(program_writer *w);

/// True if n only checks the inputs. Programs have their own guards.
bool tare__pt2_is_guard(const program_writer *w, const node *n);
/// A copy_ at the end into an input of the program: an output of the program, not a node.
bool tare__pt2_is_mutation(const node *n);
/// Appends ", " unless the list is empty yet.
void tare__pt2_separate(text *list);
/// Enters what n gives (or an item of it) under its name in the tables of values.
tare_status tare__pt2_note_value(program_writer *w, const node *n, int64_t item, pt2_given g);

/// `module_call_graph` as in the file, or for a plain call with the graph's inputs and outputs.
tare_status tare__pt2_write_calls(const program_writer *w, text *out);

#endif
