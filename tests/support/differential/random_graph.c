// SPDX-License-Identifier: Apache-2.0
// Draws values and calls, runs each call, and keeps in the graph those that succeed.
#include "support/differential/random_graph.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "core/memory/alloc.h"
#include "ops/classes/module_call.h"
#include "ops/signatures.h"
#include "ops/text/describe.h"
#include "ops/text/print.h"

// --- tensors ---

static uint32_t next_number(random_graph *g) {
    g->numbers = g->numbers * 6364136223846793005U + 1442695040888963407U;
    return (uint32_t)(g->numbers >> 33);
}

// Half of all tensors hold multiples of 1/8, which meet the middle between two codes; the others
// numbers of all digits.
static double next_float(random_graph *g, bool is_coarse) {
    const uint32_t number = next_number(g);
    if (is_coarse) return ((double)(number % 49) - 24) / 8;
    return ((double)(number % 2000003) / 1000001.5 - 1) * 2.5;
}

tare_tensor *random_tensor(random_graph *g, tare_dtype dtype, int ndim, const int64_t *shape) {
    tare_tensor *t = NULL;
    if (tare_tensor_create(dtype, ndim, shape, &t, g->err) != TARE_OK) return NULL;
    const bool is_coarse = next_number(g) % 2 == 0;
    const dtype_info *info = tare__dtype(dtype);
    for (int64_t i = 0; i < t->count; i++) {
        if (info->is_float)
            tare__tensor_set(t, i, next_float(g, is_coarse));
        else if (dtype == TARE_BOOL)
            tare__tensor_set_int(t, i, next_number(g) % 2);
        else
            tare__tensor_set_int(t, i, (int64_t)(next_number(g) % 16) - (info->min < 0 ? 6 : 0));
    }
    return t;
}

tare_tensor *random_indices(random_graph *g, int ndim, const int64_t *shape, int64_t below) {
    tare_tensor *t = NULL;
    if (below < 1 || tare_tensor_create(TARE_INT64, ndim, shape, &t, g->err) != TARE_OK)
        return NULL;
    for (int64_t i = 0; i < t->count; i++)
        tare__tensor_set_int(t, i, (int64_t)next_number(g) % below);
    return t;
}

// --- values ---

static bool keep_value(random_graph *g, node *n, value v) {
    if (!tare__grow((void **)&g->values, &g->capacity, g->count, sizeof *g->values)) {
        tare__value_release_tensors(&v);
        return false;
    }
    g->values[g->count++] = (drawn_value){n, v};
    return true;
}

const value *random_value_of(const random_graph *g, const value *v) {
    if (v->kind != VALUE_NODE) return v;
    for (size_t i = g->count; i-- > 0;)
        if (g->values[i].node == v->as.node) return &g->values[i].value;
    return v;
}

// Late ones first; constants where there is nothing else.
static size_t list_fitting(const random_graph *g, bool constants,
                           bool (*fits)(const call_draft *d, const tare_tensor *t),
                           const call_draft *d, const drawn_value **out, size_t capacity) {
    size_t count = 0;
    for (size_t i = g->count; i-- > 0 && count < capacity;)
        if (g->values[i].value.kind == VALUE_TENSOR &&
            (g->values[i].node->op == NODE_GET_ATTR) == constants &&
            fits(d, g->values[i].value.as.tensor))
            out[count++] = &g->values[i];
    return count;
}

const drawn_value *random_pick(random_graph *g,
                               bool (*fits)(const call_draft *d, const tare_tensor *t),
                               const call_draft *d) {
    const drawn_value *fitting[64];
    const size_t most = sizeof fitting / sizeof *fitting;
    size_t count = list_fitting(g, choose_rarely(g->choices, 16), fits, d, fitting, most);
    if (count == 0) count = list_fitting(g, true, fits, d, fitting, most);
    if (count == 0) return NULL;
    const bool is_late = choose(g->choices, 4) != 3;
    return fitting[choose(g->choices, (uint32_t)(is_late && count > 3 ? 3 : count))];
}

// The same value with results in place of its nodes.
static bool resolve(random_graph *g, const value *v, value *out) {
    *out = *random_value_of(g, v);
    if (v->kind == VALUE_NODE || !tare__value_has_items(v)) return true;
    *out = tare__value_sequence(&g->memory, v->kind, v->count);
    if (out->as.items == NULL && v->count > 0) return false;
    for (uint32_t i = 0; i < v->count; i++)
        if (!resolve(g, &v->as.items[i], &out->as.items[i])) return false;
    return true;
}

// What exporters say of a node: its value, and the function that users called.
static void describe(random_graph *g, node *n, const value *v) {
    char shape[128], source[160] = "";
    const op_info *op = n->op == NODE_CALL_FUNCTION ? tare__op_function(n->target) : NULL;
    if (g->spelling != SPELL_ATEN || v->kind != VALUE_TENSOR) return;
    if (op != NULL && op->functions != NULL)
        snprintf(source, sizeof source, ", \"source_fn_stack\": [[\"%s\", \"%.*s\"]]", n->name,
                 (int)strcspn(op->functions, "|"), op->functions);
    tare__shape_text(v->as.tensor->ndim, v->as.tensor->shape, shape, sizeof shape);
    n->meta_json =
        tare__arena_printf(&n->owner->memory, "{\"val\": {\"shape\": %s, \"dtype\": \"%s\"}%s}",
                           shape, tare_dtype_name(v->as.tensor->dtype), source);
}

static node *insert(random_graph *g, const node_spec *spec, const value *gives) {
    node *n = NULL;
    if (tare__graph_insert(g->root->graph, spec, NULL, &n, g->err) != TARE_OK) return NULL;
    describe(g, n, gives);
    return n;
}

bool random_constant(call_draft *d, const char *name, tare_tensor *t, value *out) {
    random_graph *g = d->g;
    char path[32];
    if (t == NULL) return false;
    const bool is_parameter = tare__dtype(t->dtype)->is_float;
    if (d->module != NULL) {
        const tare_status status =
            tare__module_set_tensor(d->module, name, t, is_parameter, g->err);
        tare_tensor_release(t);
        *out = tare__none();
        return status == TARE_OK;
    }
    snprintf(path, sizeof path, "c%zu", g->tensor_count++);
    const value given = {.kind = VALUE_TENSOR, .as.tensor = t};
    if (tare__module_set_tensor(g->root, path, t, is_parameter, g->err) != TARE_OK) return false;
    node *n = insert(g, &(node_spec){.op = NODE_GET_ATTR, .target = path}, &given);
    if (n == NULL || !keep_value(g, n, given)) return false;
    *out = tare__node_value(n);
    return true;
}

// --- calls ---

static int64_t count_elements(const value *v) {
    int64_t sum = v->kind == VALUE_TENSOR ? v->as.tensor->count : 0;
    for (uint32_t i = 0; tare__value_has_items(v) && i < v->count; i++)
        sum += count_elements(&v->as.items[i]);
    return sum;
}

// Numbers that every way computes alike; what infinities and NaNs become says little.
static bool is_tame(const value *v, bool is_wild) {
    for (uint32_t i = 0; tare__value_has_items(v) && i < v->count; i++)
        if (!is_tame(&v->as.items[i], is_wild)) return false;
    if (v->kind == VALUE_FLOAT) return isfinite(v->as.real);
    if (v->kind != VALUE_TENSOR) return true;
    const tare_tensor *t = v->as.tensor;
    if (t->count == 0) return false;
    for (int64_t i = 0; !is_wild && tare__dtype(t->dtype)->is_float && i < t->count; i++)
        if (!(fabs(tare__tensor_get(t, i)) < 1e6)) return false;
    return true;
}

static tare_status run_draft(op_call *call, bool shapes_only) {
    call->result = tare__none();
    if (call->module != NULL) {
        call->op = NULL;
        call->is_bound = false;
        memset(call->param, 0, sizeof call->param);
        return tare__module_run(call, shapes_only);
    }
    return tare__op_run(call, shapes_only);
}

// Shapes first: what is too large is never computed.
static bool compute(const random_graph *g, op_call *call) {
    if (run_draft(call, true) != TARE_OK) return false;
    const bool fits = count_elements(&call->result) <= MOST_RANDOM_ELEMENTS;
    tare__value_release_tensors(&call->result);
    if (!fits || run_draft(call, false) != TARE_OK) return false;
    if (is_tame(&call->result, g->is_wild)) return true;
    tare__value_release_tensors(&call->result);
    return false;
}

// Items of a tuple are read by operator.getitem.
static bool keep_items(random_graph *g, node *n, const value *v) {
    for (uint32_t i = 0; (v->kind == VALUE_TUPLE || v->kind == VALUE_LIST) && i < v->count; i++) {
        value given;
        const value args[] = {tare__node_value(n), tare__int(i)};
        if (tare__value_share(&g->memory, &v->as.items[i], &given, g->err) != TARE_OK) return false;
        node *item = insert(g,
                            &(node_spec){.op = NODE_CALL_FUNCTION,
                                         .target = "operator.getitem",
                                         .args = args,
                                         .arg_count = 2},
                            &given);
        if (item == NULL) {
            tare__value_release_tensors(&given);
            return false;
        }
        if (!keep_value(g, item, given)) return false;
        if (!keep_items(g, item, &given)) return false;
    }
    return true;
}

// Arguments and how they are written.
typedef struct drawn_call {
    node_op op;
    const char *target;
    value args[OP_MAX_PARAMS];
    size_t arg_count;
    keyword kwargs[OP_MAX_PARAMS];
    size_t kwarg_count;
} drawn_call;

// Does the call work? Then it is in the graph.
static bool place_call(call_draft *d, const drawn_call *c) {
    random_graph *g = d->g;
    value args[OP_MAX_PARAMS];
    keyword kwargs[OP_MAX_PARAMS];
    op_call call = {.module = d->module,
                    .function = c->op == NODE_CALL_FUNCTION ? c->target : NULL,
                    .node_name = c->target,
                    .args = args,
                    .arg_count = c->arg_count,
                    .kwargs = kwargs,
                    .kwarg_count = c->kwarg_count,
                    .memory = &g->memory,
                    .linear_rule = REQUANT_F,
                    .conv_rule = REQUANT_O,
                    .thread_count = 1,
                    .err = g->err};
    for (size_t i = 0; i < c->arg_count; i++)
        if (!resolve(g, &c->args[i], &args[i])) return false;
    for (size_t i = 0; i < c->kwarg_count; i++) {
        kwargs[i].name = c->kwargs[i].name;
        if (!resolve(g, &c->kwargs[i].value, &kwargs[i].value)) return false;
    }
    if (d->module == NULL && tare__call_bind(&call, d->op) != TARE_OK) return false;
    if (!compute(g, &call)) return false;
    node *n = insert(g,
                     &(node_spec){.op = c->op,
                                  .target = c->target,
                                  .args = c->args,
                                  .arg_count = c->arg_count,
                                  .kwargs = c->kwargs,
                                  .kwarg_count = c->kwarg_count},
                     &call.result);
    if (n == NULL) {
        tare__value_release_tensors(&call.result);
        return false;
    }
    return keep_value(g, n, call.result) && keep_items(g, n, &call.result);
}

// --- spellings ---

static bool is_aten(const char *name) {
    return tare__starts_with(name, "torch.ops.");
}

static bool suits(const random_graph *g, const char *name) {
    if (g->spelling == SPELL_ATEN) return is_aten(name);
    // What only torch.ops has is there for quantized tensors.
    return g->spelling == SPELL_MIXED || !tare__starts_with(name, "torch.ops.aten.");
}

typedef struct spelling {
    node_op op;
    char name[96];
    const char *remarks; // of an overload (op.h): "-x|mode=linear)", or ""; NULL: no overload
} spelling;

enum { MOST_SPELLINGS = 32 };

typedef struct spellings {
    spelling items[MOST_SPELLINGS];
    size_t count;
} spellings;

static void add_spelling(random_graph *g, spellings *all, node_op op, const char *name,
                         size_t length, const char *remarks) {
    spelling s = {.op = op, .remarks = remarks};
    if (all->count == MOST_SPELLINGS || length >= sizeof s.name) return;
    memcpy(s.name, name, length);
    if (op == NODE_CALL_METHOD ? g->spelling != SPELL_ATEN : suits(g, s.name))
        all->items[all->count++] = s;
}

static void add_names(random_graph *g, spellings *all, node_op op, const char *names) {
    for (const char *at = names; at != NULL && *at != '\0';) {
        const size_t length = strcspn(at, "|");
        add_spelling(g, all, op, at, length, NULL);
        at += length + (at[length] == '|' ? 1 : 0);
    }
}

static void add_overloads(random_graph *g, spellings *all, const op_info *op) {
    for (const char *at = op->overloads; at != NULL && *at != '\0';) {
        const size_t length = strcspn(at, "( ");
        const bool has_remarks = at[length] == '(';
        add_spelling(g, all, NODE_CALL_FUNCTION, at, length, has_remarks ? at + length + 1 : "");
        at += length;
        if (has_remarks) at += strcspn(at, ")") + 1;
        at += strspn(at, " ");
    }
}

// The name of the i-th parameter, and is it taken by name only? Overloads have the parameters of
// their signature, or, without one, those of their remarks; all else those of the row, by their
// first names.
static bool name_of(const op_info *op, const spelling *s, size_t i, char *out, size_t size,
                    bool *by_name) {
    signature found;
    signature_param p;
    if (s->remarks == NULL) return tare__op_param_name(op, i, out, size) > 0;
    if (tare__signature_of(s->name, &found)) {
        if (!tare__signature_param(&found, i, &p)) return false;
        *by_name = *by_name || p.is_keyword_only;
        return (size_t)snprintf(out, size, "%.*s", (int)p.length, p.name) < size;
    }
    const char *at = s->remarks;
    for (; i > 0 && *at != '\0' && *at != ')'; i--) {
        at += strcspn(at, "|)");
        at += *at == '|' ? 1 : 0;
    }
    const int length = (int)strcspn(at, "|)");
    return length > 0 && (size_t)snprintf(out, size, "%.*s", length, at) < size;
}

// Does the parameter take all positional arguments that are left?
static bool is_variadic(const op_info *op, const char *name) {
    char marked[72];
    snprintf(marked, sizeof marked, "*%s", name);
    return strstr(op->params, marked) != NULL;
}

// Parameters that stay out end the positional ones: the others are given by keyword.
static bool draw_arguments(call_draft *d, const spelling *s, drawn_call *c) {
    char name[64];
    bool skipped = false;
    for (size_t i = 0; i < OP_MAX_PARAMS && name_of(d->op, s, i, name, sizeof name, &skipped);
         i++) {
        bool is_needed = false;
        value v;
        const bool is_known = random_argument_is_known(name, &is_needed);
        const bool is_wanted = i == 0 || is_needed || choose_rarely(d->g->choices, 2);
        if (!is_known || !is_wanted || !random_argument(d, name, &v)) {
            if (i == 0 || is_needed) return false;
            skipped = true;
            continue;
        }
        if (!skipped) {
            c->args[c->arg_count++] = v;
            skipped = is_variadic(d->op, name);
            continue;
        }
        const char *kept = tare__arena_strdup(&d->g->memory, name);
        if (kept == NULL) return false;
        c->kwargs[c->kwarg_count++] = (keyword){kept, v};
    }
    return true;
}

static int dims_of(const char *id) {
    const size_t length = strlen(id);
    for (size_t i = 0; i + 1 < length; i++)
        if (id[i] >= '1' && id[i] <= '3' && id[i + 1] == 'd') return id[i] - '0';
    return 0;
}

static call_draft begin_draft(random_graph *g, const op_info *op, int dims) {
    return (call_draft){.g = g,
                        .op = op,
                        .id = op != NULL ? op->id : "",
                        .dims = dims,
                        .groups = 1,
                        .normalized = 1,
                        .is_signed = choose_rarely(g->choices, 2)};
}

bool random_graph_call(random_graph *g, const op_info *op) {
    spellings all = {.count = 0};
    add_names(g, &all, NODE_CALL_FUNCTION, op->functions);
    add_names(g, &all, NODE_CALL_METHOD, op->methods);
    add_overloads(g, &all, op);
    if (all.count == 0) return false;
    const spelling *s = &all.items[choose(g->choices, (uint32_t)all.count)];
    call_draft d = begin_draft(g, op, dims_of(op->id));
    drawn_call c = {.op = s->op, .target = s->name};
    return draw_arguments(&d, s, &c) && place_call(&d, &c);
}

// --- modules ---

static bool set_config(call_draft *d, module *m, const char *key, bool is_positional) {
    value v;
    bool is_needed = false;
    if (tare__module_config(m, key) != NULL || !random_argument_is_known(key, &is_needed))
        return true;
    if (!is_needed && !is_positional && choose_rarely(d->g->choices, 2)) return true;
    return random_argument(d, key, &v) && tare__module_set_config(m, key, &v, d->g->err) == TARE_OK;
}

// The class says what its constructor takes, and the row which tensors it has.
static bool fill_module(call_draft *d, module *m) {
    const field *fields = m->class->describe == tare__describe_fields ? m->class->kind : NULL;
    char name[64];
    value unused;
    for (; fields != NULL && fields->form != FIELD_END; fields++)
        if (fields->form != FIELD_HAS_TENSOR && fields->form != FIELD_NO_TENSOR &&
            !set_config(d, m, fields->key, fields->form == FIELD_PLAIN))
            return false;
    for (size_t i = 0; tare__op_param_name(d->op, i, name, sizeof name) > 0; i++) {
        const bool is_statistic = tare__starts_with(name, "running_");
        bool is_needed = strcmp(name, "weight") == 0 || is_statistic;
        if (!is_needed && strcmp(name, "bias") != 0) continue;
        if (!is_needed && choose_rarely(d->g->choices, 3)) continue;
        d->module = m;
        const bool made = random_argument(d, name, &unused);
        if (!made) return false;
    }
    return true;
}

static bool any_float(const call_draft *d, const tare_tensor *t) {
    if (strstr(d->id, "_cell") != NULL) return t->dtype == TARE_FLOAT32 && t->ndim == 2;
    return t->dtype == TARE_FLOAT32 && (d->dims == 0 || t->ndim == d->dims + 2);
}

static bool takes_indices(const module_class *class) {
    return class->op != NULL && tare__starts_with(class->op, "embedding");
}

// The value that the module is called with; the first input of an embedding is made for it.
static bool draw_module_input(call_draft *d, const module_class *class, value *out) {
    const int64_t shape[] = {d->g->inputs[0]->shape[0], 3};
    if (takes_indices(class))
        return random_constant(d, NULL, random_indices(d->g, 2, shape, 5), out);
    const drawn_value *x = random_pick(d->g, any_float, d);
    if (x == NULL) return false;
    d->x = x->value.as.tensor;
    *out = tare__node_value(x->node);
    return true;
}

static bool call_made(call_draft *d, module *m, value input) {
    random_graph *g = d->g;
    char path[32];
    snprintf(path, sizeof path, "m%zu", g->module_count++);
    drawn_call c = {.op = NODE_CALL_MODULE, .target = path, .args = {input}, .arg_count = 1};
    d->module = m;
    if (tare__module_set_child(g->root, path, m, g->err) != TARE_OK) return false;
    if (m->class->check != NULL && m->class->check(m, g->err) != TARE_OK) return false;
    if (!place_call(d, &c)) return false;
    for (node *n = g->root->graph->last; n != NULL; n = n->prev) {
        if (n->op != NODE_CALL_MODULE) continue;
        n->scope_path = n->target; // the scope of a leaf's call is the leaf
        n->scope_type = m->class->name;
        break;
    }
    return true;
}

bool random_graph_call_module(random_graph *g, const module_class *class) {
    const op_info *op = class->op != NULL ? tare__op_by_id(class->op, class->dims) : NULL;
    if (g->spelling == SPELL_ATEN || class->role != ROLE_FLOAT || op == NULL) return false;
    call_draft d = begin_draft(g, op, class->dims);
    module *m = NULL;
    value input;
    if (!draw_module_input(&d, class, &input)) return false;
    if (tare__module_create(class, &m, g->err) != TARE_OK) return false;
    m->training = false;
    const bool is_filled = tare__op_param_count(op) == 2 && tare__op_param_is(op, 1, "hx")
                               ? random_recurrent(&d, m)
                               : fill_module(&d, m);
    const bool done = is_filled && call_made(&d, m, input);
    tare__module_release(m);
    return done;
}

// --- graphs ---

static bool add_input(random_graph *g, const char *name, tare_tensor *t) {
    const value given = {.kind = VALUE_TENSOR, .as.tensor = t};
    if (t == NULL) return false;
    g->inputs[g->input_count++] = t;
    node *n = insert(g, &(node_spec){.op = NODE_PLACEHOLDER, .target = name}, &given);
    return n != NULL &&
           keep_value(g, n, (value){VALUE_TENSOR, 0, {.tensor = tare_tensor_retain(t)}});
}

static bool add_inputs(random_graph *g) {
    static const char *const names[] = {"x", "y", "z"};
    static const int dims[] = {4, 4, 4, 3, 2, 5, 4, 3};
    const size_t count = 1 + choose(g->choices, MOST_RANDOM_INPUTS);
    const int64_t batch = 1 + choose(g->choices, 4);
    for (size_t i = 0; i < count; i++) {
        int64_t shape[TARE_MAX_DIMS] = {batch};
        const int ndim = dims[choose(g->choices, 8)];
        for (int d = 1; d < ndim; d++) shape[d] = 1 + choose(g->choices, d == 1 ? 20 : 9);
        if (ndim > 2 && choose(g->choices, 4) == 0) shape[ndim - 2] = shape[ndim - 1];
        if (i > 0 && choose(g->choices, 2) == 0) { // like the first one
            if (!add_input(g, names[i],
                           random_tensor(g, TARE_FLOAT32, g->inputs[0]->ndim, g->inputs[0]->shape)))
                return false;
            continue;
        }
        if (!add_input(g, names[i], random_tensor(g, TARE_FLOAT32, ndim, shape))) return false;
    }
    return true;
}

// What networks are made of, and patterns of quantizers look for.
static const char *const usual_rows[] = {"add",
                                         "relu",
                                         "conv2d",
                                         "linear",
                                         "cat",
                                         "mul",
                                         "matmul",
                                         "max_pool2d",
                                         "conv1d",
                                         "hardtanh",
                                         "conv3d",
                                         "conv_transpose2d",
                                         "conv_transpose1d",
                                         "conv_transpose3d",
                                         "sigmoid",
                                         "mean",
                                         "softmax",
                                         "relu6",
                                         "hardswish"};
static const char *const usual_classes[] = {
    "torch.nn.Conv2d",    "torch.nn.Linear",          "torch.nn.ReLU",      "torch.nn.BatchNorm2d",
    "torch.nn.Conv1d",    "torch.nn.ConvTranspose2d", "torch.nn.LayerNorm", "torch.nn.MaxPool2d",
    "torch.nn.LeakyReLU", "torch.nn.Hardswish",       "torch.nn.ReLU6",     "torch.nn.LSTM"};

static const op_info *draw_row(random_graph *g) {
    uint32_t count = 0;
    while (tare__op_at(count) != NULL) count++;
    return tare__op_at(choose(g->choices, count));
}

static const module_class *draw_class(random_graph *g) {
    static const class_table *const tables[] = {&tare__weighted_classes, &tare__plain_classes};
    const class_table *table = tables[choose(g->choices, 2)];
    for (uint32_t i = choose(g->choices, (uint32_t)table->count), tries = 0; tries < table->count;
         i++, tries++)
        if (table->rows[i % table->count].role == ROLE_FLOAT) return &table->rows[i % table->count];
    return NULL;
}

static const module_class *class_named(const char *name) {
    static const class_table *const tables[] = {OPS_CLASS_TABLES};
    static const registry classes = {.tables = tables,
                                     .table_count = sizeof tables / sizeof *tables};
    return tare__class_find(&classes, name);
}

// A layer is often followed by a ReLU or a sum.
static bool draw_usual_row(random_graph *g) {
    const uint32_t rows = sizeof usual_rows / sizeof *usual_rows;
    const op_info *row = tare__op_by_id(usual_rows[choose(g->choices, rows)], 0);
    if (!random_graph_call(g, row)) return false;
    if ((row->traits & OP_WEIGHTED) != 0 && choose(g->choices, 2) == 0)
        (void)random_graph_call(g, tare__op_by_id(choose(g->choices, 3) == 0 ? "add" : "relu", 0));
    return true;
}

static bool draw_usual(random_graph *g) {
    const uint32_t classes = sizeof usual_classes / sizeof *usual_classes;
    if (g->spelling == SPELL_ATEN || choose(g->choices, 2) == 0) return draw_usual_row(g);
    return random_graph_call_module(g, class_named(usual_classes[choose(g->choices, classes)]));
}

static bool draw_call(random_graph *g) {
    // Half of the calls are what passes look for, however many rows there are.
    const uint32_t way = choose(g->choices, 6);
    if (way == 0 || way > 3) return draw_usual(g);
    if (way == 1 && g->spelling != SPELL_ATEN) return random_graph_call_module(g, draw_class(g));
    return random_graph_call(g, draw_row(g));
}

// The last tensor, and up to two others.
static bool add_output(random_graph *g) {
    value items[3], result;
    uint32_t count = 0;
    const uint32_t wanted = 1 + choose(g->choices, 3);
    for (size_t i = g->count; i-- > g->input_count && count < wanted;) {
        if (g->values[i].value.kind != VALUE_TENSOR || g->values[i].node->op == NODE_GET_ATTR ||
            (count > 0 && choose(g->choices, 2) == 0))
            continue;
        items[count++] = tare__node_value(g->values[i].node);
    }
    if (count == 0) return false;
    result = count == 1 && g->spelling != SPELL_ATEN
                 ? items[0]
                 : (value){.kind = VALUE_TUPLE, .count = count, .as.items = items};
    const node_spec spec = {.op = NODE_OUTPUT, .target = "output", .args = &result, .arg_count = 1};
    return tare__graph_insert(g->root->graph, &spec, NULL, NULL, g->err) == TARE_OK;
}

static bool is_impure(const void *user, const node *n) {
    (void)user;
    const op_info *op = n->op == NODE_CALL_FUNCTION ? tare__op_function(n->target) : NULL;
    return (op != NULL && (op->traits & OP_IMPURE) != 0);
}

bool random_graph_begin(random_graph *g, choices *c) {
    *g = (random_graph){.choices = c, .err = tare_error_create()};
    if (tare__module_create(&tare__class_graph_module, &g->root, g->err) != TARE_OK ||
        tare__graph_create(&g->root->graph, g->err) != TARE_OK)
        return false;
    g->spelling = (graph_spelling)choose(c, 3);
    g->numbers = choose(c, 65536) + 1;
    g->is_wild = choose_rarely(c, 4);
    return add_inputs(g);
}

bool random_graph_draw(random_graph *g, choices *c) {
    if (!random_graph_begin(g, c)) return false;
    for (int calls = 0; calls < MOST_RANDOM_CALLS && choices_are_left(c);) calls += draw_call(g);
    return add_output(g) &&
           tare__graph_eliminate_dead(g->root->graph, is_impure, NULL, g->err) == TARE_OK;
}

tare_model *random_graph_model(random_graph *g) {
    tare_model *model = NULL;
    module *rebuilt = NULL;
    graph *own = g->root->graph;
    g->root->graph = NULL;
    if (tare__module_from_graph(g->root, own, &tare__class_container, &tare__class_graph_module,
                                &rebuilt, g->err) != TARE_OK) {
        tare__graph_destroy(own);
        return NULL;
    }
    if (tare__model_create(NULL, rebuilt, TARE_STAGE_FLOAT, NULL, &model, g->err) != TARE_OK) {
        tare__module_release(rebuilt);
        return NULL;
    }
    return model;
}

void random_graph_release(random_graph *g) {
    for (size_t i = 0; i < g->count; i++) tare__value_release_tensors(&g->values[i].value);
    for (size_t i = 0; i < g->input_count; i++) tare_tensor_release(g->inputs[i]);
    tare__free(g->values);
    tare__arena_release(&g->memory);
    tare__module_release(g->root);
    tare_error_destroy(g->err);
    *g = (random_graph){0};
}
