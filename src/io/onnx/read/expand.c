// SPDX-License-Identifier: Apache-2.0
// QLinearConv and similar operators, whose inputs and results are integer tensors with a scale and
// a zero point each.
#include "io/onnx/read/expand.h"

#include <string.h>

#include "core/text/text.h"
#include "io/onnx/read/inline.h"
#include "io/onnx/schema.h"

typedef Onnx__NodeProto node_proto;
typedef Onnx__AttributeProto attribute;

// Input i of `operands` (0: all remaining ones) is at index first + 3 * i, followed by its scale
// and zero point. The scale and zero point of the result are at `result`.
typedef struct integer_operator {
    const char *domain, *op_type, *becomes;
    size_t operands, first, result;
    size_t bias;  // of int32; 0: none
    int64_t axis; // of scales per channel of the second operand
    int opset;    // the opset that `becomes` belongs to; 0: the node's
} integer_operator;

// clang-format off
// Operators that find_plain does not handle.
static const integer_operator operators[] = {
    {"", "QLinearConv", "Conv", .operands = 2, .result = 6, .bias = 8, .axis = 0},
    {"", "QLinearMatMul", "MatMul", .operands = 2, .result = 6, .axis = -1},
    {ONNX_RUNTIME_DOMAIN, "QGemm", "Gemm", .operands = 2, .result = 7, .bias = 6, .axis = 1},
    {ONNX_RUNTIME_DOMAIN, "QLinearConcat", "Concat", .first = 2, .result = 0},
    {ONNX_RUNTIME_DOMAIN, "QLinearReduceMean", "ReduceMean", .operands = 1, .result = 3, .opset = 13},
};
// clang-format on

typedef struct expander {
    arena *memory;
    node_proto **nodes;
    size_t count, capacity;
    tare_error *err;
} expander;

// The expansion of one operator.
typedef struct expansion {
    expander *e;
    const onnx_step *from;
    const integer_operator *op;
    size_t operand_count;
} expansion;

static char nothing[] = "";

static bool is_text(const char *a, const char *b) {
    return strcmp(a != NULL ? a : "", b) == 0;
}

static char *input(const expansion *x, size_t i) {
    return i < x->from->node.n_input ? x->from->node.input[i] : nothing;
}

static const attribute *find_attribute(const node_proto *n, const char *name) {
    for (size_t i = 0; i < n->n_attribute; i++)
        if (is_text(n->attribute[i]->name, name)) return n->attribute[i];
    return NULL;
}

static int64_t int_attribute(const node_proto *n, const char *name, int64_t otherwise) {
    const attribute *a = find_attribute(n, name);
    return a != NULL && a->has_i ? a->i : otherwise;
}

// --- steps ---

static tare_status push(expander *e, node_proto *n) {
    if (e->count == e->capacity) {
        const size_t wanted = e->capacity > 0 ? 2 * e->capacity : 64;
        node_proto **grown = tare__arena_array(e->memory, wanted, sizeof *grown);
        if (grown == NULL) return tare__out_of_memory(e->err);
        if (e->count > 0) memcpy(grown, e->nodes, e->count * sizeof *grown);
        e->nodes = grown;
        e->capacity = wanted;
    }
    e->nodes[e->count++] = n;
    return TARE_OK;
}

// Adds a node without a name. *out: the name of its result, generated if `output` is NULL.
static tare_status add(const expansion *x, const char *op_type, char *const *inputs, size_t count,
                       char *output, onnx_step **step, char **out) {
    expander *e = x->e;
    onnx_step *made = tare__arena_alloc(e->memory, sizeof *made);
    char **names = tare__arena_array(e->memory, count + 1, sizeof *names);
    char **given = tare__arena_alloc(e->memory, sizeof *given);
    if (output == NULL)
        output = tare__arena_printf(e->memory, "%s@%zu", x->from->node.output[0], e->count);
    if (made == NULL || names == NULL || given == NULL || output == NULL)
        return tare__out_of_memory(e->err);
    const node_proto init = ONNX__NODE_PROTO__INIT;
    *made = (onnx_step){
        .node = init, .opset = x->from->opset, .caller = x->from->caller, .scope = x->from->scope};
    memcpy(names, inputs, count * sizeof *names);
    *given = output;
    made->node.op_type = tare__arena_strdup(e->memory, op_type);
    if (made->node.op_type == NULL) return tare__out_of_memory(e->err);
    made->node.input = names;
    made->node.n_input = count;
    made->node.output = given;
    made->node.n_output = 1;
    *step = made;
    *out = output;
    return push(e, &made->node);
}

static tare_status set_axis(const expansion *x, onnx_step *step, int64_t axis) {
    static char name[] = "axis";
    attribute *a = tare__arena_alloc(x->e->memory, sizeof *a);
    attribute **list = tare__arena_alloc(x->e->memory, sizeof *list);
    if (a == NULL || list == NULL) return tare__out_of_memory(x->e->err);
    const attribute init = ONNX__ATTRIBUTE_PROTO__INIT;
    *a = init;
    a->name = name;
    a->has_type = a->has_i = 1;
    a->type = ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__INT;
    a->i = axis;
    *list = a;
    step->node.attribute = list;
    step->node.n_attribute = 1;
    return TARE_OK;
}

static tare_status dequantize(const expansion *x, char *const inputs[3], int64_t axis, char **out) {
    onnx_step *step = NULL;
    TARE_TRY(add(x, "DequantizeLinear", inputs, 3, NULL, &step, out));
    return set_axis(x, step, axis);
}

// --- one operator ---

static int64_t axis_of(const expansion *x, size_t operand) {
    if (operand == 0) return 1;
    const bool is_turned = int_attribute(&x->from->node, "transB", 0) != 0;
    return is_turned ? 0 : x->op->axis;
}

static tare_status add_operand(const expansion *x, size_t i, char **out) {
    const size_t at = x->op->first + 3 * i;
    char *const inputs[] = {input(x, at), input(x, at + 1), input(x, at + 2)};
    return dequantize(x, inputs, axis_of(x, i), out);
}

// The bias is quantized with the product of both operands' scales.
static tare_status add_bias(const expansion *x, char **out) {
    onnx_step *step = NULL;
    char *scale = NULL;
    char *const scales[] = {input(x, 1), input(x, 4)};
    TARE_TRY(add(x, "Mul", scales, 2, NULL, &step, &scale));
    char *const inputs[] = {input(x, x->op->bias), scale, nothing};
    return dequantize(x, inputs, 0, out);
}

// False for attributes that only the integer operator has.
static bool is_kept(const attribute *a) {
    return !is_text(a->name, "channels_last") && !is_text(a->name, "opset");
}

static tare_status keep_attributes(const expansion *x, onnx_step *step) {
    const node_proto *from = &x->from->node;
    step->node.attribute =
        tare__arena_array(x->e->memory, from->n_attribute + 1, sizeof *step->node.attribute);
    if (step->node.attribute == NULL) return tare__out_of_memory(x->e->err);
    for (size_t i = 0; i < from->n_attribute; i++)
        if (is_kept(from->attribute[i]))
            step->node.attribute[step->node.n_attribute++] = from->attribute[i];
    const int64_t own = int_attribute(from, "opset", 0);
    if (x->op->opset != 0) step->opset = x->op->opset;
    if (own > 0 && own < step->opset) step->opset = (int)own;
    return TARE_OK;
}

static tare_status expand(const expansion *x) {
    const node_proto *from = &x->from->node;
    onnx_step *step = NULL;
    size_t count = x->operand_count;
    char **operands = tare__arena_array(x->e->memory, count + 2, sizeof *operands), *y = NULL;
    if (operands == NULL) return tare__out_of_memory(x->e->err);
    for (size_t i = 0; i < x->operand_count; i++) TARE_TRY(add_operand(x, i, &operands[i]));
    if (x->op->bias > 0 && *input(x, x->op->bias) != '\0')
        TARE_TRY(add_bias(x, &operands[count++]));
    const bool is_float = *input(x, x->op->result) == '\0'; // of QGemm
    TARE_TRY(add(x, x->op->becomes, operands, count, is_float ? from->output[0] : NULL, &step, &y));
    step->node.name = from->name;
    step->node.base = from->base; // with its metadata, which states its scope
    TARE_TRY(keep_attributes(x, step));
    if (is_float) return TARE_OK;
    char *const inputs[] = {y, input(x, x->op->result), input(x, x->op->result + 1)};
    return add(x, "QuantizeLinear", inputs, 3, from->output[0], &step, &y);
}

// --- products ---

static tare_status expand_product(expander *e, const node_proto *n, const onnx_product *p) {
    static const integer_operator plain;
    const expansion x = {.e = e, .from = tare__onnx_step(n), .op = &plain};
    char *operands[2] = {NULL}, *y = NULL;
    onnx_step *step = NULL;
    TARE_TRY(dequantize(&x, p->input, 1, &operands[0]));
    TARE_TRY(dequantize(&x, p->weight, p->weight_axis, &operands[1]));
    TARE_TRY(add(&x, p->becomes, operands, 2, p->output, &step, &y));
    step->node.name = n->name;
    for (size_t i = 0; i < 2; i++) tare__onnx_step(p->absorbed[i])->is_absorbed = true;
    return keep_attributes(&x, step);
}

// --- which ---

// ONNX Runtime's integer operators of one or two tensors: QLinearAdd becomes Add.
static bool find_plain(const node_proto *n, integer_operator *out) {
    static const char beginning[] = "QLinear";
    const bool has_name = n->op_type != NULL && tare__starts_with(n->op_type, beginning);
    // Each tensor takes three inputs, but the result takes two, and its zero point may be absent.
    const size_t operands = (n->n_input + 2) / 3 - 1;
    if (!has_name || n->n_input < 4 || n->n_input % 3 == 0 || operands > 2) return false;
    *out = (integer_operator){
        .becomes = n->op_type + sizeof beginning - 1, .operands = operands, .result = 3 * operands};
    return true;
}

static bool find(const node_proto *n, integer_operator *out) {
    const char *domain = n->domain != NULL && strcmp(n->domain, "ai.onnx") != 0 ? n->domain : "";
    for (size_t i = 0; i < sizeof operators / sizeof *operators; i++)
        if (is_text(n->op_type, operators[i].op_type) && strcmp(operators[i].domain, domain) == 0) {
            *out = operators[i];
            return true;
        }
    return strcmp(domain, ONNX_RUNTIME_DOMAIN) == 0 && find_plain(n, out);
}

// Integer forms with other bias scales or another channel order are not expanded.
static bool has_form(const integer_operator *op, const node_proto *n) {
    const attribute *alpha = find_attribute(n, "alpha");
    const bool is_scaled = op->bias > 0 && alpha != NULL && alpha->f != 1;
    const size_t least = op->operands > 0 ? 3 * op->operands : op->first + 3;
    return !is_scaled && int_attribute(n, "channels_last", 0) == 0 && n->n_output == 1 &&
           n->n_input >= least && (n->n_input - op->first) / 3 > 0;
}

static tare_status visit(expander *e, const onnx_products *products, node_proto *n) {
    integer_operator op;
    onnx_product product;
    if (tare__onnx_find_product(products, n, &product)) return expand_product(e, n, &product);
    if (!find(n, &op) || !has_form(&op, n)) return push(e, n);
    const expansion x = {.e = e,
                         .from = tare__onnx_step(n),
                         .op = &op,
                         .operand_count =
                             op.operands > 0 ? op.operands : (n->n_input - op.first) / 3};
    return expand(&x);
}

static bool is_integer_product(const node_proto *n) {
    return is_text(n->op_type, "MatMulInteger") || is_text(n->op_type, "ConvInteger");
}

static bool has_integers(const Onnx__GraphProto *g) {
    integer_operator op;
    for (size_t i = 0; i < g->n_node; i++)
        if (find(g->node[i], &op) || is_integer_product(g->node[i])) return true;
    return false;
}

static tare_status expand_all(expander *e, const onnx_products *products, Onnx__GraphProto *g) {
    for (size_t i = 0; i < g->n_node; i++) TARE_TRY(visit(e, products, g->node[i]));
    size_t kept = 0;
    for (size_t i = 0; i < e->count; i++)
        if (!tare__onnx_step(e->nodes[i])->is_absorbed) e->nodes[kept++] = e->nodes[i];
    g->node = e->nodes;
    g->n_node = kept;
    return TARE_OK;
}

tare_status tare__onnx_expand(Onnx__GraphProto *g, arena *memory, tare_error *err) {
    expander e = {.memory = memory, .err = err};
    onnx_products products = {NULL};
    if (!has_integers(g)) return TARE_OK;
    tare_status status = tare__onnx_products_begin(g, memory, &products, err);
    if (status == TARE_OK) status = expand_all(&e, &products, g);
    tare__onnx_products_end(&products);
    return status;
}
