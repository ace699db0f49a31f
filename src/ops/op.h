// SPDX-License-Identifier: Apache-2.0
// The operator table. Each operator is described by one row of its family's table;
// ops/rows/rows.def lists further tables. To add an operator, add a row to its family in
// ops/families/ (or a new family to ops/families/families.h), and its test.
#ifndef OPS_OP_H
#define OPS_OP_H

#include "ops/call.h"
#include "ops/ids.h"

struct gather;
struct composer;
struct row_call;
struct call_parts;

/// Properties of operators, which passes test instead of names.
typedef enum op_trait {
    OP_ELEMENTWISE = 1 << 0, // one output element per input element
    OP_KEEPS_QPARAMS =
        1 << 1, // on quantized input the output has the input's qparams (max_pool, relu, clamp)
    OP_MOVES_DATA =
        1 << 2,           // only moves elements: quantized values are moved as integers (view, cat)
    OP_WEIGHTED = 1 << 3, // multiply-accumulates with a weight
    OP_IMPURE = 1 << 4,   // kept by dead code elimination (setitem, assert)
    OP_NOT_ON_TENSORS = 1 << 5, // result is not a tensor (size, getattr shape)
    OP_IN_PLACE = 1 << 6,       // torch overwrites the first input; tare returns the result
    OP_ANY_DTYPE = 1 << 7, // takes quantized and half-precision tensors as they are (quantize, to)
    OP_ON_QUANTIZED = 1 << 8,    // averages: torch computes on quantized values minus their zero
                                 // point, so that ties are exact
    OP_SHAPED_BY_DATA = 1 << 9,  // shape, qparams or number in the result depend on data
    OP_BLIND_TO_FIRST = 1 << 10, // uses only the shape and dtype of the first input
    // If dimension 0 of the inputs and the result is a batch, each item of the result depends only
    // on the items with its index. Shapes tell which dimension is the batch.
    OP_BY_SAMPLE = 1 << 11,
    OP_BY_MATRIX = 1 << 12,   // the last two dimensions are matrices; the others are broadcast
    OP_ALONG_DIM = 1 << 13,   // combines or selects along dimension `dim` only
    OP_PICKS_ITEM = 1 << 14,  // returns an item of a tuple or list, or a slice of a tensor
    OP_CONVOLUTION = 1 << 15, // weighted: conv1d, 2d, 3d
    OP_TRANSPOSED = 1 << 16,  // weighted: conv_transpose1d, 2d, 3d
    OP_BOUNDS = 1 << 17,      // clamps its only input at one or two bounds
    OP_GREATEST = 1 << 18,    // returns the maximum of several values (max_pool)
    OP_DEQUANTIZES = 1 << 19,
    OP_FLOAT_WEIGHT = 1 << 20, // torch leaves its weight float, regardless of the qconfig
    OP_NORMALIZES = 1 << 21,   // divides each row or group by its deviation or root mean square
    OP_AMPLIFIES = 1 << 22,    // amplifies small errors of its input: exponentials
} op_trait;

typedef struct op_info {
    const char *id; // family member: "relu", "conv2d", "add"
    // Qualified names as torch prints them, separated by '|':
    // "torch.nn.functional.relu|torch.relu". ops/names.c lists other names of the same functions.
    // NULL: no function.
    const char *functions;
    const char *methods; // "relu|relu_"; NULL: no method
    // Overloads with positional arguments in another order than `params`, separated by spaces.
    // Their arguments are in the order of the overload's signature (signatures.h) and are bound to
    // this row's parameters by name. Remarks follow in parentheses: "name name(-x|mode=linear)".
    // "-x": the argument x is ignored. "mode=linear": the overload implies this string for the
    // parameter `mode`. For functions without a signature the remarks list all their arguments:
    // "function(a|b)". NULL: none.
    const char *overloads;
    // Names of the parameters, in the order of Python's functions and of the signatures of
    // `functions` (a test compares them): "input|inplace". If the last one begins with '*', it
    // takes the remaining positional arguments as a tuple, or a single list given instead:
    // "input|*shape". A '/' gives a parameter a second name: "min/min_val". Parameters from a '!'
    // on are bound by module configs only.
    const char *params;
    // The parameters that the arguments of a module's call are bound to, in order. The other
    // parameters are tensors and configs of the module, by name. NULL: the first parameter. "*":
    // arguments are not inspected.
    const char *module_inputs;
    unsigned traits;
    // For an operator on quantized values with a float result: the number of leading parameters
    // that are quantized. 0: determined by packed weights.
    int quantized_inputs;
    // For views: the operator that copies a changed view back into its base, because torch's writes
    // to a view also change the base. Called as put_back(base, view, the view's other arguments);
    // returns the new base. NULL: none.
    const char *put_back;
    /// Output qparams that do not depend on the input (sigmoid: 1/256, 0). Scale 0: none.
    float fixed_scale;
    int fixed_zero_point; // of quint8; that of qint8 is 128 less
    tare_status (*shape)(op_call *call);
    tare_status (*reference)(op_call *call); // float (and plain integer) tensors
    /// Replaces `shape` and `reference` if the operator is composed of others (compose.h). NULL: it
    /// is not.
    value (*forward)(struct composer *c);
    /// Computes quantized inputs if the general rule, quantize(op(dequantize(x))) with
    /// OP_KEEPS_QPARAMS or fixed output qparams, does not apply. NULL: the general rule.
    tare_status (*quantized)(op_call *call);
    /// Multiply-accumulates of one call, for coverage. NULL: none.
    int64_t (*macs)(const op_call *call);
    /// The float32 loop of the reference (element.h), unary or binary, for executors that fuse such
    /// loops. NULL: none.
    const struct op_element *element;
    const struct op_binary *binary;
    /// The function of the reference if it computes rows along the last dimensions independently
    /// (layer_call.h). NULL: none.
    tare_status (*row_function)(op_call *call, struct row_call *out);
    /// The parts of the reference's work that do not depend on each other (parts.h). NULL: none.
    tare_status (*parts)(op_call *call, struct call_parts *out);
    /// For operators that only move elements: describes where the elements of result `index` come
    /// from (gather.h). out->x is NULL if this call cannot be described so. NULL: no call can.
    tare_status (*box)(op_call *call, size_t index, struct gather *out);
    /// For operators whose result is the first parameter with a part of it replaced by the second:
    /// describes which elements of the first one these are. NULL: no call does.
    tare_status (*place)(op_call *call, struct gather *out);
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
/// The remarks on an overload, up to a ')' or the end; "" if there are none. NULL if the row has no
/// overload of this name.
const char *tare__op_overload(const op_info *op, const char *name);
/// The index of the parameter of this name; tare__op_param_count if there is none.
size_t tare__op_param_index(const op_info *op, const char *name);
bool tare__op_param_is(const op_info *op, size_t i, const char *name);

/// By qualified name (any synonym) or bare method name; NULL if unknown.
const op_info *tare__op_function(const char *name);
const op_info *tare__op_method(const char *name);
/// By id. If `dims` > 0, the id may end with the number of dimensions: ("conv", 2) finds "conv2d".
/// NULL if there is none.
const op_info *tare__op_by_id(const char *id, int dims);
/// The name that torch prints for a function, because synonyms are one object in Python:
/// "torch.conv2d" for "torch.nn.functional.conv2d". The argument itself if the name is unknown.
/// Static storage or the argument.
const char *tare__function_canonical(const char *name);
/// The last part of the name that torch prints, from which node names are made: "conv2d" of
/// "torch.conv2d", "add.Tensor" of "torch.ops.aten.add.Tensor".
const char *tare__function_base_name(const char *name);

/// Visits the calls that a composed operator consists of, with the shapes of their results. The
/// caller releases the tensors of *out with tare__value_release_tensors.
tare_status tare__composed_calls(const op_call *call,
                                 tare_status (*shaped)(void *user, const op_call *call), void *user,
                                 value *out);

/// The row with this index among all rows, for listings and tests; NULL past the end.
const op_info *tare__op_at(size_t index);

// --- ids ---

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

/// Variants of an operator for quantized values. They are found by their ids: "linear" has
/// "quantized.linear_relu".
typedef enum op_form {
    FORM_QUANTIZED, // torch's function, or tare's if torch has none
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
    FORM_BY_RULE, // tare's own, quantize(op(dequantize(x)))
} op_form;
/// The row of this variant; NULL if there is none.
const op_info *tare__op_form(const op_info *op, op_form form);

/// The name of a row's function or method: the first one.
typedef struct op_name {
    char text[96];
} op_name;
op_name tare__op_function_name(const op_info *op);
op_name tare__op_method_name(const op_info *op);

/// True if the node calls its function by the row's first name: torch distinguishes F.relu from
/// torch.relu in some places.
bool tare__uses_first_name(const node *n);
/// An overload in torch.ops: IN_PLACE_OVERLOAD(ADD, "Tensor") is "torch.ops.aten.add_.Tensor".
/// Lists end with OVERLOADS_END.
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
/// Its name; empty if the row has no such overload.
op_name tare__overload_name(op_overload o);
/// True if n, which may be NULL, calls this overload, but not in place.
bool tare__calls_overload(const node *n, op_id id, const char *name);
/// True if it calls one of the list.
bool tare__calls_one_of(const node *n, const op_overload *list);
/// True for a name "torch.ops.NAMESPACE.NAME.OVERLOAD". The second function also requires that NAME
/// ends with one underscore: the overload writes its first argument.
bool tare__is_overload(const char *function);
bool tare__is_in_place_overload(const char *function);
/// The usual name of an overload of aten without a row of its own: that of the function which an
/// overload in place computes ("torch.ops.aten.cumsum_.default": "..cumsum.default"), or another
/// name of the same function ("..greater.Tensor": "..gt.Tensor"; "torch.greater": "torch.gt").
/// False: there is none.
bool tare__overload_usual_name(const char *function, op_name *out);
/// "add.Tensor" of "torch.ops.aten.add.Tensor"; NULL: it is no such name.
const char *tare__aten_name(const char *function);

/// True if `id` is one of these.
bool tare__op_is_any(op_id id, const op_id *ids, size_t count);
#define OP_IS_ANY(id, ...)                                                                         \
    tare__op_is_any((id), (const op_id[]){__VA_ARGS__},                                            \
                    sizeof((const op_id[]){__VA_ARGS__}) / sizeof(op_id))

/// True if the operator returns its first input unchanged outside of training.
bool tare__passes_on(const op_info *op);
/// True if it moves elements without changing them, and takes quantized ones. False for NULL.
bool tare__moves_quantized(const op_info *op);

// --- running ---

/// The three steps of a bound call. shape: sets meta tensors in call->result by the row's shape
/// rule, or by the general rule for quantized inputs. allocate: allocates their data. compute:
/// fills it.
tare_status tare__op_shape(op_call *call);
/// Fails with TARE_LIMIT_EXCEEDED if the result exceeds the rest of call->budget.
tare_status tare__call_allocate(op_call *call);
/// The rest of call->budget, as interpreter.memory_limit for a run within the call.
uint64_t tare__call_memory_left(const op_call *call);
tare_status tare__op_compute(op_call *call);
/// Copies v with quantized and half-precision tensors converted to float32 (to meta tensors, if
/// `meta`). The copy owns a reference to every tensor inside, also after a failure.
tare_status tare__value_to_float(const value *v, bool meta, arena *memory, value *out,
                                 tare_error *err);
/// A call with converted parameters, and its result. begin copies the bound parameters of `call`; a
/// failed call must be ended, too.
typedef struct float_call {
    op_call call;
    value params[OP_MAX_PARAMS];
} float_call;
tare_status tare__float_call_begin(const op_call *call, bool meta, float_call *out);
void tare__float_call_end(float_call *f);
/// True if the row computes such a call only as quantize(op(dequantize(x))).
bool tare__op_goes_through_float(const op_call *call);
/// Runs all three steps (only the first if shapes_only). On success call->result holds references
/// that tare__value_release_tensors releases; on failure it holds none.
tare_status tare__op_run(op_call *call, bool shapes_only);
void tare__value_release_tensors(value *v); // releases every tensor reference inside
/// Limits of results.
enum { VALUE_MOST_ITEMS = 1 << 16, VALUE_MOST_DEPTH = 64 };
/// Copies v to `memory`, with new references to the tensors inside. Fails if v exceeds the limits
/// above.
tare_status tare__value_share(arena *memory, const value *v, value *out, tare_error *err);
/// True for tensors without elements and sequences of them. There is nothing to compute, and loops
/// over their other sizes could take forever.
bool tare__value_is_empty(const value *v);
/// True if all tensors in v have data.
bool tare__value_has_data(const value *v);

#endif
