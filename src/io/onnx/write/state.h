// SPDX-License-Identifier: Apache-2.0
// State of the writer. Only the rules of quantized values use it directly.
// Private to io/onnx.
#ifndef IO_ONNX_WRITE_STATE_H
#define IO_ONNX_WRITE_STATE_H

#include "core/memory/arena.h"
#include "core/memory/map.h"
#include "core/text/text.h"
#include "io/onnx/read/open.h"
#include "io/onnx/write/file.h"
#include "io/onnx/write/write.h"
#include "ir/module.h"

// --- the trace ---

/// A call as its shape rule left it.
typedef struct out_record {
    const node *node;
    op_call call;
    value result; // a copy
} out_record;

/// Every call of the graph for inputs of some shapes.
typedef struct out_trace {
    module *root;
    out_record *records;
    size_t record_count, record_capacity;
    tare_tensor **kept; // results and inputs, references owned
    size_t kept_count, kept_capacity;
    map pure;      // "%p" of constants that depend on no tensor of the model
    value *inputs; // one tensor for each
    value outputs; // the graph's result; references owned
    size_t folded; // elements of constants computed so far
    arena memory;
    tare_error *err;
} out_trace;

/// Runs the shape rules for inputs of these shapes and computes constants.
tare_status tare__onnx_trace(module *root, tare_tensor *const *inputs, size_t input_count,
                             out_trace *out, tare_error *err);
/// Keeps the tensor alive as long as the trace.
tare_status tare__onnx_keep(out_trace *t, tare_tensor *tensor);
void tare__onnx_trace_release(out_trace *t);
bool tare__onnx_is_pure(const out_trace *t, const tare_tensor *tensor);

// --- the file in the making ---

typedef struct out_node {
    const char *op_type, *name;
    const char *domain; // NULL: the default one
    const char **inputs, **outputs;
    size_t input_count, output_count;
    bool has_optional; // the last output is optional
    bool wraps;        // values above the result's range wrap around in ONNX Runtime
    text attributes;   // serialized
    const node *from;
} out_node;

/// Scale and zero point that are computed at run time.
typedef struct out_dynamic {
    const char *scale, *zero_point, *source; // source: the tensor that was quantized; NULL: unknown
    const char *quantized;                   // the quantized values; NULL: not computed yet
} out_dynamic;
out_dynamic *tare__out_find_dynamic(const onnx_out *o, const tare_tensor *t);

typedef struct onnx_writer onnx_writer;
struct onnx_writer {
    const onnx_write_spec *spec;
    module *root;
    int opset;
    out_trace trace, other; // other: for another batch size or other stand-in sizes
    bool has_other;
    int64_t batch, other_batch;
    onnx_open open;         // open dimensions, if there are others than the batch
    bool is_second;         // the second image, for the second pair of stand-in sizes
    const char **dim_names; // name of dimension d of input i at [i * TARE_MAX_DIMS + d]; NULL: none
    map numbers; // "13|31", a size in both traces -> const char *, a vector of one element
    out_node *nodes;
    size_t node_count, node_capacity;
    out_tensor *tensors; // initializers
    size_t tensor_count, tensor_capacity;
    map tensor_names; // name -> index + 1 into tensors
    map values;       // "%p" of a tensor -> const char * (its name)
    map paths;        // "%p" of a tensor of the model -> const char * (its path)
    map names;        // the name of every value
    map node_names;
    map output_names;          // a value -> its name as an output
    call_names wanted_outputs; // requested, one per output; NULL: the node's name
    map constants;             // content -> const char *
    map quantized;             // path of a weight -> tare_tensor *, its integers; references owned
    map weights;               // "%p" of such integers -> path of the weight
    map dynamic;               // "%p" of a tensor -> out_dynamic *
    map sources;               // path of a tensor of the model -> onnx_source *
    const char *batch_size;    // the value that holds the batch size; NULL: not computed yet
    text refusals, notes;      // items of JSON lists
    size_t refusal_count;
    text first_refusal; // in sentences, for the error
    text outputs;       // serialized
    arena memory;
    tare_error *rule_err; // returned by rules; owned
    tare_error *err;
};

struct onnx_out {
    onnx_writer *w;
    const onnx_write_rule *rule;
    const out_record *record, *other; // other may be NULL
    op_call call;
    tare_status status;
    bool on_quantized; // the operator only moves elements, so quantized values stay integers
    bool then_relu;
    int depth; // of rules that call rules
};

/// How a tensor of the model is obtained from the file.
typedef struct onnx_source {
    const char *initializer, *scale,
        *zero_point; // with scale and zero_point: dequantize(initializer)
    int axis;        // -1: per-tensor
    int turned_bits; // not 0: bits of the quantized values, stored in bytes; the
                     // initializer is the transposed matrix, signed or unsigned
} onnx_source;
/// Records that the model's tensor at `path` is stored as these initializers.
void tare__out_source(onnx_out *o, const char *path, const char *quantized, const char *scale,
                      const char *zero_point, int axis);
/// The same for a matrix of quantized values that the file stores transposed.
void tare__out_turned_source(onnx_out *o, const char *path, const char *initializer, int bits);

const char *tare__out_unique(onnx_writer *w, map *names, const char *wish);
bool tare__out_bind(onnx_writer *w, const tare_tensor *t, const char *name);
const char *tare__out_bound(const onnx_writer *w, const tare_tensor *t);
/// Adds an initializer and retains *t. Returns its name; NULL if memory ran out.
const char *tare__out_add_tensor(onnx_writer *w, const char *name, const tare_tensor *t, int type);
out_tensor *tare__out_find_tensor(const onnx_writer *w, const char *name);
/// The path of a tensor of the model; NULL if it is none.
const char *tare__out_path(const onnx_writer *w, const tare_tensor *t);

/// Finds w->open and the inputs' names for these dimensions (write/open.c).
tare_status tare__onnx_find_open(onnx_writer *w);
/// The name of a dimension with both sizes; NULL if it has none.
const char *tare__onnx_open_name(const onnx_writer *w, int64_t size, int64_t other);
/// A size as an int64 vector of one element, for models with open dimensions.
const char *tare__out_open_size(onnx_out *o, int64_t size, int64_t other);
/// True if tare__out_open_size can compute the size.
bool tare__out_knows_size(const onnx_out *o, int64_t size, int64_t other);
/// Writes a number that depends on open sizes, if ONNX has the function.
void tare__out_number_node(onnx_out *o);

const onnx_write_rule *tare__onnx_find_write_rule(const char *id);
/// Writes a call by the rule of its row.
void tare__out_dispatch(onnx_out *o);
/// Changes nodes so that ONNX Runtime runs them in integers where it can (write/runtime.c).
tare_status tare__onnx_fit_runtime(onnx_writer *w);

#endif
