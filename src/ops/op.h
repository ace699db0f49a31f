// SPDX-License-Identifier: Apache-2.0
// Operators are rows: everything about an operator is in one row of its family's table. To add an
// operator: add a row to the family's file in ops/ (or a new family to ops/table.c), and its test.
#ifndef OPS_OP_H
#define OPS_OP_H

#include "ops/call.h"
#include "ops/ids.h"

struct gather;
struct composer;
struct row_call;

/// Properties of operators that passes ask for instead of names.
typedef enum op_trait {
    OP_ELEMENTWISE = 1 << 0, // one output element per input element
    OP_KEEPS_QPARAMS =
        1 << 1, // on quantized input the output has the input's qparams (max_pool, relu, clamp)
    OP_MOVES_DATA =
        1 << 2, // only moves elements: works on the integers as they are (view, cat of equals)
    OP_WEIGHTED = 1 << 3,       // multiply-accumulates with a weight
    OP_IMPURE = 1 << 4,         // kept by dead code elimination (setitem, assert)
    OP_NOT_ON_TENSORS = 1 << 5, // result is not a tensor (size, getattr shape)
    OP_IN_PLACE = 1 << 6,       // torch writes the first input; we return the result
    OP_ANY_DTYPE = 1 << 7, // takes quantized and half-precision tensors as they are (quantize, to)
    OP_ON_QUANTIZED = 1 << 8,    // averages: torch computes on quantized values minus their zero
                                 // point, so that ties are exact
    OP_SHAPED_BY_DATA = 1 << 9,  // what comes out depends on the elements of an input
    OP_BLIND_TO_FIRST = 1 << 10, // asks the first input for no more than its shape and dtype
    // If dimension 0 of the inputs and the result is a batch, each item of the result depends only
    // on the items with its index. Shapes tell which dimension is the batch.
    OP_BY_SAMPLE = 1 << 11,
    OP_BY_MATRIX = 1 << 12,   // the last two dimensions are a matrix's; the others are broadcast
    OP_ALONG_DIM = 1 << 13,   // combines or selects along dimension `dim` only
    OP_PICKS_ITEM = 1 << 14,  // gives an item of a tuple or list, or a slice of a tensor
    OP_CONVOLUTION = 1 << 15, // weighted: conv1d, 2d, 3d
    OP_TRANSPOSED = 1 << 16,  // weighted: conv_transpose1d, 2d, 3d
    OP_BOUNDS = 1 << 17,      // of one input: gives its values, cut off at one or two bounds
    OP_GREATEST = 1 << 18,    // gives the greatest of some values
    OP_DEQUANTIZES = 1 << 19,
    OP_FLOAT_WEIGHT = 1 << 20, // torch leaves its weight float, regardless of the qconfig
    OP_NORMALIZES = 1 << 21,   // divides rows by deviations of their own
    OP_AMPLIFIES = 1 << 22,    // amplifies small errors of its input: exponentials
} op_trait;

typedef struct op_info {
    const char *id; // family member: "relu", "conv2d", "add"
    // Qualified names as torch prints them, separated by '|':
    // "torch.nn.functional.relu|torch.relu". Other names of the same functions are in ops/names.c.
    // NULL: no function.
    const char *functions;
    const char *methods; // "relu|relu_"; NULL: no method
    // Overloads whose parameters stand in another order than the row's: in that of their signature
    // (signatures.h), by whose names the row's parameters are found. "name name(-x|mode=linear)":
    // "-x" is taken and has no meaning here; "mode=linear" is a string that the overload stands
    // for. Functions without a signature have all their parameters there: "function(a|b)". NULL:
    // none.
    const char *overloads;
    // Names of the parameters in the order of Python's functions, which also is that of the
    // signatures of `functions` (a test holds them against each other): "input|inplace". A last one
    // that begins with '*' takes the remaining positional arguments as a tuple, or the one list
    // that stands there: "input|*shape". A '/' gives a parameter a second name: "min/min_val". From
    // a '!' on, parameters are bound by module configs only.
    const char *params;
    // The arguments of a module's call, in order, among these parameters; the others are the
    // module's tensors and configs, by name. NULL: the first parameter. "*": the arguments are not
    // inspected.
    const char *module_inputs;
    unsigned traits;
    // For a row of quantized values with a float result: the number of leading parameters that are
    // quantized. 0: determined by packed weights.
    int quantized_inputs;
    // The operator that writes what became of this one's result into its first input, as torch does
    // when a view is written in place: put_back(input, result, the other arguments). NULL: none.
    const char *put_back;
    /// Output qparams that do not depend on the input (sigmoid: 1/256, 0); scale 0: none.
    float fixed_scale;
    int fixed_zero_point; // of quint8; that of qint8 is 128 less
    tare_status (*shape)(op_call *call);
    tare_status (*reference)(op_call *call); // float (and plain integer) tensors
    /// Replaces both in a row that is composed of others (compose.h). NULL: it is not.
    value (*forward)(struct composer *c);
    /// Quantized inputs, where the general rule quantize(op(dequantize(x))) with KEEPS_QPARAMS or
    /// fixed output qparams is not it. NULL: the general rule.
    tare_status (*quantized)(op_call *call);
    /// Multiply-accumulates of one call, for coverage. NULL: none.
    int64_t (*macs)(const op_call *call);
    /// The float32 loop behind the reference (element.h), unary or binary, for executors that fuse
    /// such loops. NULL: none.
    const struct op_element *element;
    const struct op_binary *binary;
    /// The function of rows over the last dimensions behind the reference (layer_call.h). NULL:
    /// none.
    tare_status (*row_function)(op_call *call, struct row_call *out);
    /// The source of the elements of result `index` (gather.h), of a row that moves elements; its x
    /// is NULL if this call has no such box. NULL: none has.
    tare_status (*box)(op_call *call, size_t index, struct gather *out);
} op_info;

/// One family's rows; families.h lists the tables.
typedef struct op_table {
    const op_info *rows;
    size_t count;
} op_table;
#define OP_TABLE(rows)                                                                             \
    { (rows), sizeof(rows) / sizeof *(rows) }

/// The row of a family with this id; NULL: there is none.
const op_info *tare__op_of_family(const op_table *family, const char *id);
size_t tare__op_param_count(const op_info *op);
/// The i-th parameter's (first) name into out[size]; its length, 0 past the end.
size_t tare__op_param_name(const op_info *op, size_t i, char *out, size_t size);
/// The row's remarks on an overload, up to a ')' or the end; NULL if it has no overload of this
/// name.
const char *tare__op_overload(const op_info *op, const char *name);
/// The index of the parameter of this name; tare__op_param_count if there is none.
size_t tare__op_param_index(const op_info *op, const char *name);
bool tare__op_param_is(const op_info *op, size_t i, const char *name);

/// By qualified name (any synonym) or bare method name; NULL if unknown.
const op_info *tare__op_function(const char *name);
const op_info *tare__op_method(const char *name);
/// By id; with `dims` > 0 the id may carry them: ("conv", 2) finds "conv2d". NULL if there is none.
const op_info *tare__op_by_id(const char *id, int dims);
/// The name that torch prints for a function: synonyms of one object share it ("torch.conv2d" for
/// "torch.nn.functional.conv2d"). The argument itself when the name is unknown. Static storage or
/// the argument.
const char *tare__function_canonical(const char *name);
/// Code that torch prints for a function: "torch.conv2d", "operator.add" -> "_operator.add" forms
/// are handled by print.c; this returns the base for node names ("conv2d").
const char *tare__function_base_name(const char *name);

/// The calls that a call of a composed function consists of, with the shapes of their results. The
/// caller releases the tensors of *out with tare__value_release_tensors.
tare_status tare__composed_calls(const op_call *call,
                                 tare_status (*shaped)(void *user, const op_call *call), void *user,
                                 value *out);

/// Every row, for listings and tests; NULL past the end.
const op_info *tare__op_at(size_t index);

// --- by number ---

/// The row of an id; NULL for TARE_OP_NONE.
const op_info *tare__op_row(op_id id);
/// The id of a row; TARE_OP_NONE for NULL.
op_id tare__op_id(const op_info *op);

/// The row of the function or method that a node calls; NULL if it calls none that is known.
const op_info *tare__node_row(const node *n);
op_id tare__node_op(const node *n);
/// The same for functions only; NULL or TARE_OP_NONE for a NULL node.
const op_info *tare__function_row(const node *n);
op_id tare__function_op(const node *n);
/// True if the node calls this method. False for NULL.
bool tare__calls_method(const node *n, op_id id);
static inline bool tare__op_has(const op_info *op, unsigned traits) {
    return op != NULL && (op->traits & traits) != 0;
}
/// The row that computes a module of this class; NULL if there is none.
const op_info *tare__class_row(const module_class *class);
op_id tare__class_op(const module_class *class);

/// The rows that compute the same on quantized values. They are found by their ids: "linear" has
/// "quantized.linear_relu".
typedef enum op_form {
    FORM_QUANTIZED, // torch's function, or ours where torch has none
    FORM_QUANTIZED_RELU,
    FORM_FLOAT_RESULT, // quantized input, float result
    FORM_DYNAMIC,      // float input, which is quantized on the fly
    FORM_DYNAMIC_RELU,
    FORM_DYNAMIC_HALF, // float input, float16 weight
    FORM_DYNAMIC_HALF_RELU,
    FORM_DECOMPOSED_DYNAMIC, // as choose_qparams, quantize and dequantize in exported programs
    FORM_DECOMPOSED_DYNAMIC_RELU,
    FORM_ADD, // a layer to whose result a tensor is added
    FORM_ADD_RELU,
    FORM_BY_RULE, // quantize(op(dequantize(x))), ours
} op_form;
/// NULL: there is none.
const op_info *tare__op_form(const op_info *op, op_form form);

/// The name by which torch calls a row's function, or its method: the first one.
typedef struct op_name {
    char text[96];
} op_name;
op_name tare__op_function_name(const op_info *op);
op_name tare__op_method_name(const op_info *op);

/// True if the node calls the function by this name: torch distinguishes F.relu from torch.relu in
/// some places.
bool tare__uses_first_name(const node *n);
/// An overload in torch.ops: IN_PLACE_OVERLOAD(ADD, "Tensor") is "torch.ops.aten.add_.Tensor". A
/// list ends with OVERLOADS_END.
typedef struct op_overload {
    op_id op;
    bool is_in_place;
    const char *name;
} op_overload;
#define OVERLOAD(id, name)                                                                         \
    { TARE_OP_##id, false, name }
#define IN_PLACE_OVERLOAD(id, name)                                                                \
    { TARE_OP_##id, true, name }
#define OVERLOADS_END                                                                              \
    { TARE_OP_NONE, false, NULL }
/// Its name; empty if the row has none such.
op_name tare__overload_name(op_overload o);
/// True if n, which may be NULL, calls this overload, but not in place.
bool tare__calls_overload(const node *n, op_id id, const char *name);
/// True if it calls one of the list.
bool tare__calls_one_of(const node *n, const op_overload *list);
/// True for a name "torch.ops.NAMESPACE.NAME.OVERLOAD"; and for one whose NAME ends with one
/// underscore, which writes its first argument.
bool tare__is_overload(const char *function);
bool tare__is_in_place_overload(const char *function);
/// "add.Tensor" of "torch.ops.aten.add.Tensor"; NULL: it is no such name.
const char *tare__aten_name(const char *function);

/// True if `id` is one of these.
bool tare__op_is_any(op_id id, const op_id *ids, size_t count);
#define OP_IS_ANY(id, ...)                                                                         \
    tare__op_is_any((id), (const op_id[]){__VA_ARGS__},                                            \
                    sizeof((const op_id[]){__VA_ARGS__}) / sizeof(op_id))

// --- running ---

/// The three steps of a bound call. shape: the row's shape rule, or the general rule for quantized
/// inputs, sets meta tensors in call->result. allocate: gives them data. compute: fills it.
tare_status tare__op_shape(op_call *call);
/// Fails with TARE_LIMIT_EXCEEDED where call->budget has too little left.
tare_status tare__call_allocate(op_call *call);
/// The rest of call->budget, for a run within the call: as interpreter.memory_limit.
uint64_t tare__call_memory_left(const op_call *call);
tare_status tare__op_compute(op_call *call);
/// A copy of v in which quantized and half tensors became float32 (meta ones, if `meta`). It owns a
/// reference on every tensor inside, also after a failure.
tare_status tare__value_to_float(const value *v, bool meta, arena *memory, value *out,
                                 tare_error *err);
/// A call whose parameters are such copies, and its result. begin takes what `call` has bound; a
/// failed one must be ended too.
typedef struct float_call {
    op_call call;
    value params[OP_MAX_PARAMS];
} float_call;
tare_status tare__float_call_begin(const op_call *call, bool meta, float_call *out);
void tare__float_call_end(float_call *f);
/// True if the row computes such a call only as quantize(op(dequantize(x))).
bool tare__op_goes_through_float(const op_call *call);
/// All three (only the first if shapes_only). On success call->result holds references that
/// tare__value_release_tensors gives back; on failure it holds none.
tare_status tare__op_run(op_call *call, bool shapes_only);
void tare__value_release_tensors(value *v); // gives back every tensor reference inside
/// Limits of results.
enum { VALUE_MOST_ITEMS = 1 << 16, VALUE_MOST_DEPTH = 64 };
/// A copy in `memory` with references of its own on the tensors inside. Fails on values that are
/// larger than the limits.
tare_status tare__value_share(arena *memory, const value *v, value *out, tare_error *err);
/// True for tensors without elements and sequences of them: nothing is left to compute, and loops
/// over their other sizes could take forever.
bool tare__value_is_empty(const value *v);
/// False when a result tensor still waits for its data.
bool tare__value_has_data(const value *v);

#endif
