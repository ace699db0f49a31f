// SPDX-License-Identifier: Apache-2.0
// The import: inputs and initializers, the nodes in order, the outputs; then the draft becomes a
// model.
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "core/memory/alloc.h"
#include "core/text/text.h"
#include "io/onnx/families/families.h"
#include "io/onnx/onnx.h"
#include "io/onnx/pack.h"
#include "io/onnx/read/expand.h"
#include "io/onnx/read/open.h"
#include "io/onnx/read/options.h"
#include "io/onnx/read/order.h"
#include "io/onnx/read/own.h"
#include "io/onnx/read/state.h"
#include "ir/call_names.h"

enum {
    FOLDED_MACS = 1 << 30,
    // Shapes are also inferred for a second batch size, to find what fits one size only. The factor
    // is a prime number that no model has as a size.
    OTHER_BATCH = 1009
};

// --- initializers ---

static tare_status add_initializer(onnx_import *in, const Onnx__TensorProto *t) {
    tare_tensor *made = NULL;
    TARE_TRY(tare__onnx_read_tensor(in->file, &in->data_files, t, &made, in->err));
    TARE_TRY(tare__onnx_add_constant(in, made, t->name));
    tare__onnx_constant_of(in, made)->is_packed = tare__onnx_is_packed(t->data_type);
    const value v = {.kind = VALUE_TENSOR, .as.tensor = made};
    return tare__onnx_bind(in, t->name, &v);
}

static tare_status add_initializers(onnx_import *in, const Onnx__GraphProto *g) {
    if (g->n_sparse_initializer > 0)
        return tare__fail(in->err, TARE_UNSUPPORTED, "sparse initializers cannot be read");
    for (size_t i = 0; i < g->n_initializer; i++)
        if (!tare__map_set(&in->initializer_names, g->initializer[i]->name, NULL))
            return tare__out_of_memory(in->err);
    for (size_t i = 0; i < g->n_initializer; i++) TARE_TRY(add_initializer(in, g->initializer[i]));
    return TARE_OK;
}

// --- inputs ---

static const Onnx__TypeProto__Tensor *tensor_type(const Onnx__ValueInfoProto *info) {
    return info->type != NULL && info->type->value_case == ONNX__TYPE_PROTO__VALUE_TENSOR_TYPE
               ? info->type->tensor_type
               : NULL;
}

typedef Onnx__TensorShapeProto__Dimension dimension;

// The size of one dimension: the file's, the one in the options, a stand-in, or 1 for the batch.
// *other: the same, or the second stand-in.
static tare_status read_size(onnx_import *in, const char *input, const dimension *d, int index,
                             const tare_model_read_options *options, int64_t *out, int64_t *other) {
    const bool has_value = d->value_case == ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_VALUE;
    const char *name = tare__onnx_dim_name(d);
    if (has_value && d->dim_value > 0) return *other = *out = d->dim_value, TARE_OK;
    if (name != NULL && tare__onnx_option_dim(options, name, out)) return *other = *out, TARE_OK;
    if (in->open != NULL && tare__onnx_open_size(in->open, input, index, name, out, other))
        return TARE_OK;
    if (index == 0) return *other = *out = 1, TARE_OK;
    if (name != NULL) {
        tare__fail(in->err, TARE_INVALID_ARGUMENT, "input '%s': dimension %d ('%s') has no size",
                   input, index, name);
        return tare__hint(in->err, TARE_INVALID_ARGUMENT, "give its size: --dim %s=SIZE", name);
    }
    tare__fail(in->err, TARE_INVALID_ARGUMENT, "input '%s': dimension %d has no size", input,
               index);
    return tare__hint(in->err, TARE_INVALID_ARGUMENT,
                      "give the input a shape: --shape %s=1x3x224x224", input);
}

typedef struct input_shape {
    int ndim;
    int64_t size[TARE_MAX_DIMS];
    int64_t other[TARE_MAX_DIMS]; // for open dimensions the second stand-in; else as size
} input_shape;

static tare_status check_given(onnx_import *in, const char *input, const input_shape *given,
                               const Onnx__TensorShapeProto *shape) {
    if (shape != NULL && shape->n_dim != (size_t)given->ndim)
        return tare__fail(in->err, TARE_INVALID_ARGUMENT,
                          "input '%s': expected a shape of %zu dimensions as in the file, found %d",
                          input, shape->n_dim, given->ndim);
    for (int d = 1; shape != NULL && d < given->ndim; d++) {
        const dimension *said = shape->dim[d];
        const bool has_value =
            said->value_case == ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_VALUE &&
            said->dim_value > 0;
        if (has_value && said->dim_value != given->size[d])
            return tare__fail(
                in->err, TARE_INVALID_ARGUMENT,
                "input '%s': expected %lld for dimension %d as in the file, found %lld", input,
                (long long)said->dim_value, d, (long long)given->size[d]);
    }
    return TARE_OK;
}

static tare_status read_shape(onnx_import *in, const Onnx__ValueInfoProto *info,
                              const tare_model_read_options *options, input_shape *out) {
    const Onnx__TypeProto__Tensor *type = tensor_type(info);
    const Onnx__TensorShapeProto *shape = type->shape;
    if (tare__onnx_option_shape(options, info->name, &out->ndim, out->size)) {
        memcpy(out->other, out->size, sizeof out->other);
        return check_given(in, info->name, out, shape);
    }
    if (shape == NULL) {
        tare__fail(in->err, TARE_INVALID_ARGUMENT, "input '%s' has no shape in the file",
                   info->name);
        return tare__hint(in->err, TARE_INVALID_ARGUMENT, "give its shape: --shape %s=1x3x224x224",
                          info->name);
    }
    if (shape->n_dim > TARE_MAX_DIMS)
        return tare__fail(in->err, TARE_UNSUPPORTED,
                          "input '%s' has %zu dimensions, at most %d fit", info->name, shape->n_dim,
                          TARE_MAX_DIMS);
    out->ndim = (int)shape->n_dim;
    for (int d = 0; d < out->ndim; d++)
        TARE_TRY(
            read_size(in, info->name, shape->dim[d], d, options, &out->size[d], &out->other[d]));
    return TARE_OK;
}

static tare_status meta_tensor(tare_dtype dtype, const input_shape *s, const int64_t *sizes,
                               int64_t batch, value *out, tare_error *err) {
    int64_t size[TARE_MAX_DIMS];
    memcpy(size, sizes, sizeof size);
    if (batch > 0 && s->ndim > 0) size[0] = batch;
    tare_tensor *t = NULL;
    TARE_TRY(tare__tensor_meta(dtype, s->ndim, size, NULL, &t, err));
    *out = (value){.kind = VALUE_TENSOR, .as.tensor = t};
    return TARE_OK;
}

static tare_status add_input(onnx_import *in, const Onnx__ValueInfoProto *info,
                             const tare_model_read_options *options) {
    const Onnx__TypeProto__Tensor *type = tensor_type(info);
    input_shape shape = {0};
    if (tare__map_has(&in->values, info->name))
        return tare__fail(in->err, TARE_MALFORMED_FILE, "duplicate input '%s'", info->name);
    if (type == NULL)
        return tare__fail(in->err, TARE_UNSUPPORTED, "input '%s' is no tensor", info->name);
    const tare_dtype dtype = tare__onnx_type_to_dtype(type->elem_type);
    if (dtype == TARE_DTYPE_UNSET)
        return tare__fail(in->err, TARE_UNSUPPORTED,
                          "input '%s': elements of type %d (%s) are not supported", info->name,
                          type->elem_type, tare__onnx_type_name(type->elem_type));
    TARE_TRY(read_shape(in, info, options, &shape));
    const char *target = NULL;
    TARE_TRY(tare__graph_name(in->draft, info->name, &target, in->err));
    const node_spec spec = {.op = NODE_PLACEHOLDER, .target = target, .candidate = target};
    node *n = NULL;
    TARE_TRY(tare__graph_insert(in->draft, &spec, NULL, &n, in->err));
    n->target = target;
    TARE_TRY(tare__onnx_add_info(in, n, NULL, info->name));
    if (in->batch == 0 && shape.ndim > 0 && shape.size[0] > 0) {
        in->batch = shape.size[0];
        in->other_batch = in->batch <= INT32_MAX ? OTHER_BATCH * in->batch : in->batch;
        if (in->open != NULL) in->other_batch = shape.other[0];
    }
    const bool has_batch = in->open == NULL && shape.ndim > 0 && shape.size[0] == in->batch;
    draft_info *known = tare__onnx_info(in, n);
    TARE_TRY(meta_tensor(dtype, &shape, shape.size, 0, &known->meta, in->err));
    TARE_TRY(meta_tensor(dtype, &shape, shape.other, has_batch ? in->other_batch : 0, &known->other,
                         in->err));
    const value v = tare__node_value(n);
    return tare__onnx_bind(in, info->name, &v);
}

// Before IR version 4 files list initializers among the inputs.
static tare_status add_inputs(onnx_import *in, const Onnx__GraphProto *g,
                              const tare_model_read_options *options) {
    for (size_t i = 0; i < g->n_input; i++)
        if (!tare__map_has(&in->initializer_names, g->input[i]->name))
            TARE_TRY(add_input(in, g->input[i], options));
    if (in->batch == 0) in->batch = 1, in->other_batch = OTHER_BATCH;
    return tare__onnx_check_options(options, g, in->err);
}

// --- nodes ---

static const onnx_rule *find_rule(const char *op_type, int opset, bool *is_known) {
    const onnx_family *family;
    *is_known = false;
    for (size_t f = 0; (family = tare__onnx_family_at(f)) != NULL; f++)
        for (size_t i = 0; i < family->read.count; i++) {
            const onnx_rule *rule = &family->read.rows[i];
            if (strcmp(rule->op_type, op_type) != 0) continue;
            *is_known = true;
            if (rule->since <= opset && (rule->until == 0 || opset <= rule->until)) return rule;
        }
    return NULL;
}

static tare_status unknown_operator(onnx_import *in, const char *op_type, bool is_known) {
    in->is_hopeless = true;
    tare__fail(in->err, TARE_UNSUPPORTED, "the operator '%s' %s", op_type,
               is_known ? "is not supported at this opset" : "is not known");
    return tare__hint(in->err, TARE_UNSUPPORTED,
                      is_known ? "export the model at another opset_version"
                               : "export the part without it, or simplify the file (onnxsim); "
                                 "docs/onnx.md lists what is known");
}

static tare_status check_attributes(const onnx_call *c) {
    for (size_t i = 0; i < c->node->n_attribute; i++) {
        const char *name = c->node->attribute[i]->name;
        if (c->attribute_read[i]) continue;
        c->in->is_hopeless = true;
        return tare__fail(c->in->err, TARE_UNSUPPORTED, "the attribute '%s' is not supported",
                          name != NULL ? name : "");
    }
    return TARE_OK;
}

static tare_status bind_outputs(const onnx_call *c) {
    for (size_t i = 0; i < c->node->n_output; i++) {
        if (c->node->output[i][0] == '\0' || c->outputs[i].kind == VALUE_NONE) continue;
        TARE_TRY(tare__onnx_bind(c->in, c->node->output[i], &c->outputs[i]));
    }
    return TARE_OK;
}

static tare_status translate(onnx_call *c) {
    const char *op_type = c->node->op_type != NULL ? c->node->op_type : "";
    bool is_known = false;
    const onnx_rule *rule = find_rule(op_type, c->opset, &is_known);
    if (rule == NULL) return unknown_operator(c->in, op_type, is_known);
    c->attribute_read = tare__arena_array(&c->scratch, c->node->n_attribute + 1, sizeof(bool));
    c->outputs = tare__arena_array(&c->scratch, c->node->n_output + 1, sizeof(value));
    if (c->attribute_read == NULL || c->outputs == NULL) return tare__out_of_memory(c->in->err);
    for (size_t i = 0; i < c->node->n_input; i++)
        if (c->node->input[i][0] != '\0' && !tare__map_has(&c->in->values, c->node->input[i]))
            return tare__fail(c->in->err, TARE_UNSUPPORTED,
                              "its input '%s' is an optional output that is not supported",
                              c->node->input[i]);
    TARE_TRY(tare__onnx_read_scope(c->in, tare__onnx_step(c->node), &c->scope));
    TARE_TRY(rule->translate(c));
    TARE_TRY(check_attributes(c));
    return bind_outputs(c);
}

// Operators of ONNX Runtime's domain that its quantizers write and that expand.c does not handle.
static const struct {
    const char *op_type, *why_not; // NULL: it has a rule
} of_quantizers[] = {
    {"DequantizeLinear", NULL},
    {"QuantizeLinear", NULL},
    {"MatMulNBits", NULL},
    {"DynamicQuantizeLSTM", "recurrent layers with dynamically quantized inputs are not supported"},
    {"GatherBlockQuantized",
     "weights with few bits and block-wise scales are not supported in this operator"},
    {"MatMulBnb4",
     "weights with few bits and block-wise scales are not supported in this operator"},
    {"QAttention", "integer attention as one operator is not supported"},
};

static tare_status foreign_operator(onnx_import *in, const char *op_type, const char *domain) {
    const bool is_runtimes = strcmp(domain, ONNX_RUNTIME_DOMAIN) == 0;
    for (size_t i = 0; is_runtimes && i < sizeof of_quantizers / sizeof *of_quantizers; i++) {
        if (strcmp(op_type, of_quantizers[i].op_type) != 0) continue;
        if (of_quantizers[i].why_not == NULL) return TARE_OK;
        in->is_hopeless = true;
        tare__fail(in->err, TARE_UNSUPPORTED, "%s", of_quantizers[i].why_not);
        return tare__hint(in->err, TARE_UNSUPPORTED,
                          "quantize the float model to 8 bits, here or with QuantizeLinear and "
                          "DequantizeLinear");
    }
    in->is_hopeless = true;
    tare__fail(in->err, TARE_UNSUPPORTED,
               "the operator '%s' is from domain '%s', which is not supported", op_type, domain);
    return tare__hint(
        in->err, TARE_UNSUPPORTED,
        is_runtimes
            ? "ONNX Runtime's optimizer writes it: use the model as it was before optimization"
            : "export with standard operators only");
}

static tare_status add_node(onnx_import *in, const Onnx__NodeProto *n) {
    const char *domain = n->domain != NULL ? n->domain : "";
    onnx_call c = {.in = in, .node = n, .opset = tare__onnx_step(n)->opset};
    char where[300];
    tare_status status = TARE_OK;
    if (*domain != '\0' && strcmp(domain, "ai.onnx") != 0)
        status = foreign_operator(in, n->op_type != NULL ? n->op_type : "", domain);
    if (status == TARE_OK) status = translate(&c);
    tare__arena_release(&c.scratch);
    if (status == TARE_OK) return TARE_OK;
    tare__onnx_describe_node(n, where, sizeof where);
    return tare__at(in->err, status, "%s", where);
}

// --- outputs ---

static tare_status output_value(onnx_import *in, const Onnx__ValueInfoProto *info, value *out) {
    const char *name = info->name != NULL ? info->name : "";
    const onnx_binding *b = tare__map_get(&in->values, name);
    if (b == NULL)
        return tare__fail(in->err, TARE_MALFORMED_FILE,
                          "no node, input or initializer produces the output '%s'", name);
    *out = b->v;
    if (out->kind == VALUE_LIST)
        return tare__fail(in->err, TARE_UNSUPPORTED, "the output '%s' is a sequence", name);
    if (out->kind != VALUE_TENSOR) return TARE_OK;
    node *n = NULL;
    TARE_TRY(tare__onnx_constant_node(in, out->as.tensor, NULL, &n));
    *out = tare__node_value(n);
    return TARE_OK;
}

static tare_status add_outputs(onnx_import *in, const Onnx__GraphProto *g) {
    value result = tare__value_sequence(&in->memory, VALUE_TUPLE, (uint32_t)g->n_output);
    if (g->n_output == 0)
        return tare__fail(in->err, TARE_MALFORMED_FILE, "the graph has no output");
    if (result.as.items == NULL) return tare__out_of_memory(in->err);
    for (size_t i = 0; i < g->n_output; i++)
        TARE_TRY(output_value(in, g->output[i], &result.as.items[i]));
    const node_spec spec = {.op = NODE_OUTPUT,
                            .target = "output",
                            .args = g->n_output == 1 ? result.as.items : &result,
                            .arg_count = 1};
    node *n = NULL;
    TARE_TRY(tare__graph_insert(in->draft, &spec, NULL, &n, in->err));
    return tare__onnx_add_info(in, n, NULL, "");
}

// --- what data must look like ---

// True if what is left of the graph can compute batches of one size only.
static bool is_batch_fixed(onnx_import *in) {
    for (const node *n = in->draft->first; n != NULL; n = n->next) {
        const draft_info *known = tare__onnx_info(in, n);
        if (known->meta.kind != VALUE_NONE && known->other.kind == VALUE_NONE) return true;
    }
    return false;
}

// The file's name of the open dimension with these two stand-ins; NULL if it has none.
static const char *name_of_open(const onnx_open *open, int64_t now, int64_t other) {
    for (size_t i = 0; open != NULL && i < open->count; i++)
        if (open->items[i].now == now && open->items[i].other == other)
            return open->items[i].is_named ? open->items[i].name : NULL;
    return NULL;
}

static tare_status describe(onnx_import *in, node *n, const tare_tensor *t,
                            const tare_tensor *other) {
    text meta = {0};
    tare__text_append(&meta, "{\"val\": {\"shape\": [");
    for (int d = 0; d < t->ndim; d++) {
        const bool is_open = other->shape[d] != t->shape[d];
        const char *name = name_of_open(in->open, t->shape[d], other->shape[d]);
        if (d > 0) tare__text_append(&meta, ", ");
        if (is_open && name != NULL)
            tare__text_json_string(&meta, name);
        else if (is_open)
            tare__text_append(&meta, "null");
        else
            tare__text_printf(&meta, "%" PRId64, t->shape[d]);
    }
    tare__text_printf(&meta, "], \"dtype\": \"%s\"}}", tare_dtype_name(t->dtype));
    tare_status status = tare__text_status(&meta, in->err);
    if (status == TARE_OK &&
        !tare__arena_copy_text(&in->draft->memory, tare__text_chars(&meta), &n->meta_json))
        status = tare__out_of_memory(in->err);
    tare__text_release(&meta);
    return status;
}

static tare_status describe_inputs(onnx_import *in) {
    const bool is_fixed = is_batch_fixed(in);
    for (node *n = in->draft->first; n != NULL; n = n->next) {
        if (n->op != NODE_PLACEHOLDER) continue;
        const draft_info *known = tare__onnx_info(in, n);
        const tare_tensor *t = known->meta.as.tensor, *other = known->other.as.tensor;
        tare_tensor open = *t;
        const bool has_batch = t->ndim > 0 && t->shape[0] == in->batch;
        if (in->open == NULL && t->ndim > 0)
            open.shape[0] = is_fixed && has_batch ? t->shape[0] : -1;
        TARE_TRY(describe(in, n, t, in->open != NULL ? other : &open));
    }
    return TARE_OK;
}

// --- names ---

// Names are the file's; those of arguments are made identifiers.
static tare_status name_call(onnx_import *in, const Onnx__GraphProto *g) {
    const char **names = tare__arena_array(&in->memory, g->n_input + g->n_output, sizeof *names);
    call_names inputs = {.items = names};
    if (names == NULL) return tare__out_of_memory(in->err);
    for (size_t i = 0; i < g->n_input; i++)
        if (!tare__map_has(&in->initializer_names, g->input[i]->name))
            names[inputs.count++] = g->input[i]->name;
    const call_names outputs = {.items = names + inputs.count, .count = g->n_output};
    for (size_t i = 0; i < g->n_output; i++) outputs.items[i] = g->output[i]->name;
    return tare__call_names_set(in->draft, &inputs, &outputs, in->err);
}

// --- the whole ---

static void note_origin(const onnx_file *f, const Onnx__GraphProto *g, onnx_origin *out) {
    *out = (onnx_origin){.is_torch = f->model->producer_name != NULL &&
                                     strcmp(f->model->producer_name, "pytorch") == 0};
    for (size_t i = 0; i < g->n_node; i++) {
        const char *op = g->node[i]->op_type != NULL ? g->node[i]->op_type : "";
        out->has_batch_norm |= strcmp(op, "BatchNormalization") == 0;
        out->has_conv |= strcmp(op, "Conv") == 0;
        out->is_quantized |= tare__ends_with(op, "QuantizeLinear") ||
                             strcmp(op, "DequantizeLinear") == 0 || strcmp(op, "MatMulNBits") == 0;
    }
}

static tare_status import_graph(onnx_import *in, const tare_model_read_options *options,
                                module **out, onnx_origin *origin) {
    Onnx__GraphProto flat;
    const Onnx__GraphProto *g = &flat;
    const Onnx__NodeProto **sorted = NULL;
    if (in->file->model->n_training_info > 0)
        return tare__fail(in->err, TARE_UNSUPPORTED, "the model holds training steps");
    TARE_TRY(tare__onnx_inline(in->file, &in->memory, &flat, in->err));
    TARE_TRY(tare__onnx_expand(&flat, &in->memory, in->err));
    TARE_TRY(tare__onnx_order(g, NULL, &in->memory, &sorted, in->err)); // checks all names too
    TARE_TRY(tare__graph_create(&in->draft, in->err));
    TARE_TRY(tare__module_create(&tare__class_graph_module, &in->root, in->err));
    TARE_TRY(add_initializers(in, g));
    TARE_TRY(add_inputs(in, g, options));
    for (size_t i = 0; i < g->n_node; i++) TARE_TRY(add_node(in, sorted[i]));
    TARE_TRY(add_outputs(in, g));
    TARE_TRY(tare__graph_eliminate_dead(in->draft, NULL, NULL, in->err));
    TARE_TRY(tare__onnx_raise(in));
    TARE_TRY(describe_inputs(in));
    note_origin(in->file, g, origin);
    TARE_TRY(name_call(in, g));
    return tare__onnx_lift(in, out);
}

static void release(onnx_import *in) {
    for (size_t i = 0; i < in->info_capacity; i++) {
        tare__value_release_tensors(&in->info[i].meta);
        tare__value_release_tensors(&in->info[i].other);
    }
    tare__free(in->info);
    tare__graph_destroy(in->draft);
    tare__module_release(in->root);
    for (size_t i = 0; i < in->tensor_count; i++) tare_tensor_release(in->tensors[i]);
    tare__free(in->tensors);
    tare__map_release(&in->values);
    tare__map_release(&in->constants);
    tare__map_release(&in->initializer_names);
    tare__map_release(&in->nested_initializers);
    tare__map_release(&in->scopes);
    tare__map_release(&in->sizes);
    tare__map_release(&in->numbers);
    tare__onnx_data_files_release(&in->data_files);
    tare__arena_release(&in->memory);
}

typedef struct import_job {
    const onnx_file *file;
    const registry *classes;
    const tare_model_read_options *options;
    const onnx_open *open; // NULL: at most the batch is open
    onnx_origin *origin;
    bool is_hopeless; // no size would help
    char where[80];   // the input whose open dimension was in the way; "": not known
    int dim;
    tare_error *err;
} import_job;

static tare_status import_file(import_job *job, module **root) {
    onnx_import in = {.add_node = add_node,
                      .file = job->file,
                      .classes = job->classes,
                      .open = job->open,
                      .err = job->err};
    in.data_files.budget.limit = job->file->memory_limit;
    const tare_status status = import_graph(&in, job->options, root, job->origin);
    job->is_hopeless = in.is_hopeless || status == TARE_OUT_OF_MEMORY;
    job->where[0] = '\0';
    if (in.blamed != NULL) {
        (void)snprintf(job->where, sizeof job->where, "%s",
                       tare__onnx_info(&in, in.blamed)->file_name);
        job->dim = in.blamed_dim;
    }
    release(&in);
    return status;
}

// --- open dimensions ---

// Reads the file for the stand-in sizes of this attempt, then for its second pair. *root stays NULL
// if the two models differ.
static tare_status read_twice(import_job *job, onnx_open *open, int attempt, module **root) {
    module *again = NULL;
    bool agree = false;
    TARE_TRY(import_file(job, root));
    (void)tare__onnx_open_choose(open, attempt, true);
    tare_status status = import_file(job, &again);
    if (status == TARE_OK) status = tare__onnx_open_agree(*root, again, &agree, job->err);
    tare__module_release(again);
    if (status == TARE_OK && agree) return TARE_OK;
    tare__module_release(*root);
    *root = NULL;
    return status;
}

static const onnx_open_dim *find_blamed(const import_job *job, const onnx_open *open) {
    for (size_t i = 0; i < open->count; i++)
        if (strcmp(open->items[i].input, job->where) == 0 && open->items[i].dim == job->dim)
            return &open->items[i];
    for (size_t i = 0; i < open->count; i++)
        if (open->items[i].dim > 0) return &open->items[i];
    return &open->items[0];
}

// `why`: the error of the first readings.
static tare_status needs_size(const onnx_open_dim *dim, tare_error *why, tare_error *err) {
    const char *where = tare_error_where(why), *message = tare_error_message(why);
    const tare_status status = TARE_INVALID_ARGUMENT;
    if (dim->is_named)
        tare__fail(err, status,
                   "input '%s': dimension %d ('%s') has no size, and cannot stay open: %s%s%s",
                   dim->input, dim->dim, dim->name, where, *where ? ": " : "", message);
    else
        tare__fail(err, status,
                   "input '%s': dimension %d has no size, and cannot stay open: "
                   "%s%s%s",
                   dim->input, dim->dim, where, *where ? ": " : "", message);
    return dim->is_named ? tare__hint(err, status, "give its size: --dim %s=SIZE", dim->name)
                         : tare__hint(err, status, "give the input a shape: --shape %s=1x3x224x224",
                                      dim->input);
}

static tare_status import_open(import_job *job, onnx_open *open, module **root) {
    tare_error *err = job->err, *first = tare_error_create(), *other = tare_error_create();
    tare_status status = first != NULL && other != NULL ? TARE_OK : TARE_OUT_OF_MEMORY;
    const onnx_open_dim *blamed = &open->items[0];
    job->open = open;
    for (int i = 0; status == TARE_OK && *root == NULL && tare__onnx_open_choose(open, i, false);
         i++) {
        job->err = i == 0 ? first : other;
        const tare_status read = read_twice(job, open, i, root);
        if (i == 0 && read == TARE_OK && *root == NULL)
            tare__fail(first, TARE_UNSUPPORTED, "the model depends on its size");
        if (i == 0) blamed = find_blamed(job, open);
        if (*root == NULL && job->is_hopeless) status = read;
    }
    job->err = err;
    if (status == TARE_OUT_OF_MEMORY)
        (void)tare__out_of_memory(err);
    else if (status != TARE_OK)
        tare__error_copy(err, first);
    else if (*root == NULL)
        status = needs_size(blamed, first, err);
    tare_error_destroy(first);
    tare_error_destroy(other);
    return status;
}

static tare_status import(import_job *job, module **root) {
    arena memory = {0};
    onnx_open open;
    const Onnx__GraphProto *g = job->file->model->graph;
    tare_status status = tare__onnx_open_find(g, job->options, &memory, &open, job->err);
    if (status == TARE_OK)
        status = open.count > 0 ? import_open(job, &open, root) : import_file(job, root);
    job->open = NULL;
    tare__arena_release(&memory);
    return status;
}

// The record in a file that tare wrote holds for its own input sizes: with others from the options,
// the file is read node by node.
static bool has_sizes(const tare_model_read_options *options) {
    return options != NULL && options->dim_count + options->shape_count > 0;
}

tare_status tare__onnx_read(const unsigned char *bytes, size_t size, const char *path,
                            const registry *classes, const model_state_io *state,
                            const tare_model_read_options *options, module **root,
                            onnx_origin *origin, tare_error *err) {
    onnx_file file;
    *origin = (onnx_origin){0};
    TARE_TRY(tare__onnx_file_open(bytes, size, path, &file, err));
    const tare_read_limits *limits = options != NULL ? options->limits : NULL;
    file.memory_limit = tare__file_budget(limits != NULL ? limits->memory_bytes : 0, size).limit;
    file.copies_data = options != NULL && options->copies_file;
    *root = NULL;
    tare_status status = TARE_OK;
    if (!has_sizes(options))
        status = tare__onnx_read_own(&file, classes, state, root, &origin->extra, err);
    if (status == TARE_OK && *root == NULL) {
        tare_error_clear(err);
        import_job job = {
            .file = &file, .classes = classes, .options = options, .origin = origin, .err = err};
        status = import(&job, root);
    }
    tare__onnx_file_release(&file);
    return status;
}
