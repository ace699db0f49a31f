// SPDX-License-Identifier: Apache-2.0
// What a rule that writes an operator as ONNX may use.
//
// The writer traces the graph (write/trace.c): every call with its parameters bound by name and the
// shapes of its results, whatever spelling it has. A rule belongs to a row of the operator table
// and says which ONNX nodes compute it:
//
//   static void silu(onnx_out *o) {
//       const char *x = tare__out_input(o, 0);
//       tare__out_result(o, OUT(o, "Mul", x, OUT(o, "Sigmoid", x)));
//   }
//   static const onnx_write_rule rows[] = {{"silu", "Sigmoid, Mul", .write = silu}, ..};
//
// Values are names. A failure is remembered, and what follows it does nothing, so that a rule needs
// no checks: "" stands for a value that could not be made.
//
// Quantized tensors are their integers in the file. Where a rule asks for such an input it gets
// what a DequantizeLinear makes of it, and a result that is to be quantized goes through a
// QuantizeLinear: a rule sees floats only, and quantize(op(dequantize(x))) is written by itself.
// Private to io/onnx.
#ifndef IO_ONNX_WRITE_WRITE_H
#define IO_ONNX_WRITE_WRITE_H

#include "core/tensor/tensor.h"
#include "ops/op.h"

/// A call that is being written.
typedef struct onnx_out onnx_out;

/// How one operator is written. op_type: the nodes that it becomes, for the documentation. since:
/// the first opset that allows it; 0: all. write NULL: one node `op_type`, on all tensors of the
/// call.
typedef struct onnx_write_rule {
    const char *id; // id of the operator's row
    const char *op_type;
    int since;
    bool takes_sizes;      // int parameters may depend on the batch
    bool takes_open_sizes; // and on other open dimensions
    void (*write)(onnx_out *o);
} onnx_write_rule;

/// The rows of a family; families/families.h lists all families.
typedef struct onnx_write_table {
    const onnx_write_rule *rows;
    size_t count;
} onnx_write_table;
#define ONNX_WRITE_RULES(rows)                                                                     \
    { (rows), sizeof(rows) / sizeof *(rows) }

/// The id of the single row for all operators that are defined as quantizing a float operator's
/// result (ops/quantized/rule.h).
#define ONNX_RULED "quantized by rule"

/// Row `index` of all rules, for listings; NULL past the end.
const onnx_write_rule *tare__onnx_write_rule_at(size_t index);

// --- failures ---

bool tare__out_failed(const onnx_out *o);
/// Refuses the node, with a reason: "float64 is not a type that Conv takes".
void tare__out_refuse(onnx_out *o, const char *format, ...) TARE_PRINTF(2, 3);
/// Records a failed status, whose message is in the call's error.
void tare__out_try(onnx_out *o, tare_status status);
/// Adds a note to the report.
void tare__out_note(onnx_out *o, const char *format, ...) TARE_PRINTF(2, 3);

// --- the call ---

int tare__out_opset(const onnx_out *o);
op_call *tare__out_call(onnx_out *o);
bool tare__out_given(const onnx_out *o, size_t i); // parameter i is given and not None
/// Shape and dtype of parameter i, which must be a tensor; never NULL.
const tare_tensor *tare__out_meta(onnx_out *o, size_t i);
/// Shape and dtype of the only result; never NULL.
const tare_tensor *tare__out_result_meta(onnx_out *o);
/// The float dtype of the computation: the result's, or float32 if it is quantized.
tare_dtype tare__out_real_dtype(const onnx_out *o);
/// The result for the other batch size; NULL if the batch is fixed.
const tare_tensor *tare__out_result_other(const onnx_out *o);
/// The same for several results; NULL if the batch is fixed.
const value *tare__out_results_other(const onnx_out *o);
/// True if parameter i, a number, differs for the other batch size.
bool tare__out_param_differs(const onnx_out *o, size_t i);
/// Parameter i, `count` ints, for the other batch size; false if there is none.
bool tare__out_other_ints(const onnx_out *o, size_t i, size_t capacity, int64_t *out, size_t count);
/// Parameter i for the other batch size; NULL if there is none.
const value *tare__out_other_param(const onnx_out *o, size_t i);
int64_t tare__out_int(onnx_out *o, size_t i, int64_t otherwise);
double tare__out_double(onnx_out *o, size_t i, double otherwise);
bool tare__out_bool(onnx_out *o, size_t i, bool otherwise);
const char *tare__out_text(onnx_out *o, size_t i, const char *otherwise);
int64_t tare__out_dim(onnx_out *o, size_t i, int64_t otherwise, int ndim);

// --- values ---

/// Parameter i: a tensor, dequantized if it is quantized. "" if it is absent.
const char *tare__out_input(onnx_out *o, size_t i);
/// Parameter i converted to `dtype`; a number becomes a constant.
const char *tare__out_operand(onnx_out *o, size_t i, tare_dtype dtype);
/// A tensor of the call or of the model, dequantized if it is quantized; the second for a value
/// that is a tensor.
const char *tare__out_tensor(onnx_out *o, const tare_tensor *t);
/// A tensor's integers if it is quantized, else the tensor.
const char *tare__out_quantized(onnx_out *o, const tare_tensor *t);
/// Constants: a 0-dimensional number, and a vector of ints.
const char *tare__out_number(onnx_out *o, tare_dtype dtype, double number);
const char *tare__out_ints(onnx_out *o, const int64_t *ints, size_t count);
/// A vector of ints as a tensor of the call.
const tare_tensor *tare__out_int_tensor(onnx_out *o, const int64_t *ints, size_t count);
/// A tensor as a constant with a name.
const char *tare__out_constant(onnx_out *o, const tare_tensor *t, const char *name);
/// Scales (float32) and zero points (storage dtype `dtype`) as constants: 0-dimensional for one
/// channel, in rows of `groups` for group-wise parameters.
void tare__out_qparams(onnx_out *o, const qparams *q, int64_t groups, tare_dtype dtype,
                       const char **scale, const char **zero_point);
/// Sizes as an int64 vector; those that depend on the batch are computed from an input. other: the
/// sizes for the other batch size; NULL: none depends on it.
const char *tare__out_sizes(onnx_out *o, const int64_t *sizes, const int64_t *other, size_t count);
/// The same for Reshape: one open size that cannot be computed is -1.
const char *tare__out_sizes_but_one(onnx_out *o, const int64_t *sizes, const int64_t *other,
                                    size_t count);

// --- nodes ---

/// Adds a node of the default domain. Returns its first output.
const char *tare__out_node(onnx_out *o, const char *op_type, const char *const *inputs,
                           size_t input_count);
#define OUT(o, op_type, ...)                                                                       \
    tare__out_node(o, op_type, (const char *const[]){__VA_ARGS__},                                 \
                   sizeof((const char *const[]){__VA_ARGS__}) / sizeof(char *))
/// Gives the last node `count` outputs; names[0] is its present one.
void tare__out_outputs(onnx_out *o, size_t count, const char **names);
/// The last output is dropped if nothing reads it.
void tare__out_optional(onnx_out *o);
/// Moves the last node to ONNX Runtime's domain.
void tare__out_of_runtime(onnx_out *o);
/// Attributes of the last node.
void tare__out_attr_int(onnx_out *o, const char *name, int64_t i);
/// Marks a node with results of at most 1 whose integer form in ONNX Runtime wraps around instead
/// of saturating.
void tare__out_mark_wrapping(onnx_out *o);
void tare__out_attr_float(onnx_out *o, const char *name, double f);
void tare__out_attr_text(onnx_out *o, const char *name, const char *text);
/// An attribute of `count` equal strings.
void tare__out_attr_texts(onnx_out *o, const char *name, const char *text, size_t count);
void tare__out_attr_ints(onnx_out *o, const char *name, const int64_t *ints, size_t count);

/// Nodes that many rules need.
const char *tare__out_cast(onnx_out *o, const char *x, tare_dtype from, tare_dtype to);
const char *tare__out_reshape(onnx_out *o, const char *x, const int64_t *shape, size_t count);
const char *tare__out_transpose(onnx_out *o, const char *x, const int64_t *order, size_t count);
/// Swaps two dimensions of x.
const char *tare__out_swap(onnx_out *o, const char *x, int ndim, int a, int b);
const char *tare__out_unsqueeze(onnx_out *o, const char *x, const int64_t *axes, size_t count);
const char *tare__out_squeeze(onnx_out *o, const char *x, const int64_t *axes, size_t count);
/// A reduction ("ReduceMean"). Older opsets take the axes as an attribute.
const char *tare__out_reduce(onnx_out *o, const char *op_type, const char *x, const int64_t *axes,
                             size_t count, bool keeps);
/// x[.., start:end:step, ..]
const char *tare__out_slice(onnx_out *o, const char *x, int64_t axis, int64_t start, int64_t end,
                            int64_t step);
/// x[.., i, ..]: dimension `axis` is removed.
const char *tare__out_take(onnx_out *o, const char *x, int64_t i, int64_t axis);
const char *tare__out_clip(onnx_out *o, const char *x, tare_dtype dtype, double low, double high);
/// DequantizeLinear and QuantizeLinear with constant parameters.
const char *tare__out_dequantize(onnx_out *o, const char *quantized, const qparams *q);
const char *tare__out_quantize(onnx_out *o, const char *x, const qparams *q);

/// The quantized values of a module's weight `name`, as a tensor of the call; NULL if the module
/// has none.
const tare_tensor *tare__out_quantized_weight(onnx_out *o, const module *m, const char *name);
/// Sets computed scale and zero point of a quantized tensor.
void tare__out_set_dynamic(onnx_out *o, const tare_tensor *t, const char *scale,
                           const char *zero_point);

// --- results ---

/// Sets the result, given in floats; it is quantized if the call's result is.
void tare__out_result(onnx_out *o, const char *x);
/// Sets the result as it is: integers if the call's result is quantized.
void tare__out_result_raw(onnx_out *o, const char *x);
/// Item i of a result that is a tuple or list.
void tare__out_result_item(onnx_out *o, uint32_t i, const char *x);
/// Sets v, a tensor at any depth in the result.
void tare__out_result_at(onnx_out *o, const value *v, const char *x);
/// Appends a ReLU to what the call computes, before quantization.
void tare__out_then_relu(onnx_out *o);
/// Writes the call as the operator with that id, with parameters `params`.
void tare__out_as(onnx_out *o, const char *id, const value *const *params, size_t count);

#endif
