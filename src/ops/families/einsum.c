// SPDX-License-Identifier: Apache-2.0
// torch.einsum: sums of products along named dimensions.
#include <string.h>

#include "ops/compose.h"
#include "ops/families/families.h"
#include "ops/rules.h"

// A label of a dimension: a letter, or (from FIRST_OPEN on) a dimension represented by "...",
// counted from the last one.
enum { FIRST_OPEN = 52, LABELS = FIRST_OPEN + TARE_MAX_DIMS, MOST_OPERANDS = 8 };

typedef struct term {
    const tare_tensor *t; // NULL: the result
    int ndim;
    int label[TARE_MAX_DIMS];
} term;

typedef struct einsum_plan {
    term operand[MOST_OPERANDS], result;
    size_t count;
    int open_ndim;        // maximum number of dimensions that "..." represents
    int64_t size[LABELS]; // 0: not used
    int uses[LABELS];     // occurrences in the operands
    bool is_used[LABELS], is_kept[LABELS];
} einsum_plan;

static int label_of(char c) {
    if (c >= 'a' && c <= 'z') return c - 'a';
    if (c >= 'A' && c <= 'Z') return c - 'A' + 26;
    return -1;
}

// Reads the labels of one operand up to `end`; "..." becomes `open` labels.
static tare_status read_term(op_call *call, const char *at, const char *end, int open, term *out) {
    for (; at < end; at++) {
        if (*at == ' ') continue;
        const bool is_open = end - at >= 3 && strncmp(at, "...", 3) == 0;
        const int count = is_open ? open : 1;
        if ((!is_open && label_of(*at) < 0) || count < 0 || out->ndim + count > TARE_MAX_DIMS)
            return tare__call_fail(call, "the equation does not fit the operands at '%s'", at);
        for (int i = 0; i < count; i++)
            out->label[out->ndim++] = is_open ? FIRST_OPEN + count - 1 - i : label_of(*at);
        at += is_open ? 2 : 0;
    }
    return TARE_OK;
}

static int letters_in(const char *at, const char *end) {
    int count = 0;
    for (; at < end; at++) count += label_of(*at) >= 0;
    return count;
}

static tare_status bind_sizes(op_call *call, einsum_plan *p, const term *o) {
    if (o->ndim != o->t->ndim)
        return tare__call_fail(call, "%d dimensions are named of shape %s", o->ndim,
                               tare__call_shape_text(call, o->t));
    for (int d = 0; d < o->ndim; d++) {
        const int label = o->label[d];
        const int64_t size = o->t->shape[d];
        if (p->is_used[label] && p->size[label] != size && p->size[label] != 1 && size != 1)
            return tare__call_fail(call, "sizes %lld and %lld of one dimension differ",
                                   (long long)p->size[label], (long long)size);
        if (!p->is_used[label] || p->size[label] == 1) p->size[label] = size;
        p->is_used[label] = true;
        p->uses[label]++;
    }
    return TARE_OK;
}

static tare_status read_operands(op_call *call, const char *begin, const char *end,
                                 einsum_plan *p) {
    const value *list = call->param[1];
    for (const char *at = begin;; at++) {
        const char *comma = memchr(at, ',', (size_t)(end - at));
        const char *stop = comma != NULL ? comma : end;
        if (p->count == MOST_OPERANDS || list == NULL || p->count >= list->count ||
            list->as.items[p->count].kind != VALUE_TENSOR)
            return tare__call_fail(call, "the equation has other operands than the call");
        term *o = &p->operand[p->count];
        o->t = list->as.items[p->count++].as.tensor;
        if (o->t->dtype != p->operand[0].t->dtype || o->t->q != NULL)
            return tare__call_fail(call, "operands must have one dtype, found %s",
                                   tare_dtype_name(o->t->dtype));
        const int open = o->t->ndim - letters_in(at, stop);
        TARE_TRY(read_term(call, at, stop, open, o));
        TARE_TRY(bind_sizes(call, p, o));
        if (memchr(at, '.', (size_t)(stop - at)) != NULL && open > p->open_ndim)
            p->open_ndim = open;
        if (comma == NULL) break;
        at = comma;
    }
    return p->count == list->count
               ? TARE_OK
               : tare__call_fail(call, "the equation has other operands than the call");
}

// Without an arrow, the result has the labels that occur once, in alphabetical order, upper case
// first.
static void implicit_result(einsum_plan *p) {
    for (int i = p->open_ndim; i-- > 0;) p->result.label[p->result.ndim++] = FIRST_OPEN + i;
    for (int i = 0; i < 52 && p->result.ndim < TARE_MAX_DIMS; i++) {
        const int label = i < 26 ? i + 26 : i - 26;
        if (p->uses[label] == 1) p->result.label[p->result.ndim++] = label;
    }
}

static tare_status read_einsum(op_call *call, einsum_plan *p) {
    const char *equation;
    *p = (einsum_plan){0};
    TARE_TRY(tare__call_text(call, 0, "", &equation));
    const char *arrow = strstr(equation, "->");
    const char *end = arrow != NULL ? arrow : equation + strlen(equation);
    TARE_TRY(read_operands(call, equation, end, p));
    if (arrow == NULL)
        implicit_result(p);
    else
        TARE_TRY(read_term(call, arrow + 2, arrow + strlen(arrow), p->open_ndim, &p->result));
    for (int d = 0; d < p->result.ndim; d++) {
        const int label = p->result.label[d];
        if (!p->is_used[label] || p->is_kept[label])
            return tare__call_fail(call, "the result names a dimension twice, or one that no "
                                         "operand has");
        p->is_kept[label] = true;
    }
    return TARE_OK;
}

static tare_status einsum_sums_shape(op_call *call) {
    einsum_plan p;
    int64_t shape[TARE_MAX_DIMS];
    TARE_TRY(read_einsum(call, &p));
    for (int d = 0; d < p.result.ndim; d++) shape[d] = p.size[p.result.label[d]];
    return tare__call_result(call, p.operand[0].t->dtype, p.result.ndim, shape, NULL);
}

// Strides of an operand along every label: 0 where it is broadcast, and the sum for a label that it
// repeats (a diagonal).
static void strides_of(const term *o, int64_t stride[LABELS]) {
    int64_t step = 1;
    memset(stride, 0, LABELS * sizeof *stride);
    for (int d = o->ndim - 1; d >= 0; d--) {
        if (o->t->shape[d] != 1) stride[o->label[d]] += step;
        step *= o->t->shape[d];
    }
}

// Nested loops over labels: those of the result, and inside of them those that are summed.
typedef struct loops {
    int label[LABELS], ndim;
    int64_t count;
} loops;

static void add_loop(const einsum_plan *p, loops *l, int label) {
    l->label[l->ndim++] = label;
    l->count = tare__size_product(l->count, p->size[label]);
}

static void offsets_at(const einsum_plan *p, const loops *l, int64_t i,
                       int64_t stride[MOST_OPERANDS][LABELS], int64_t *offset) {
    for (int d = l->ndim - 1; d >= 0; d--) {
        const int64_t at = i % p->size[l->label[d]];
        i /= p->size[l->label[d]];
        for (size_t o = 0; o < p->count; o++) offset[o] += at * stride[o][l->label[d]];
    }
}

static tare_status einsum_sums_reference(op_call *call) {
    einsum_plan p;
    int64_t stride[MOST_OPERANDS][LABELS];
    loops outer = {.count = 1}, inner = {.count = 1};
    TARE_TRY(read_einsum(call, &p));
    for (size_t o = 0; o < p.count; o++) strides_of(&p.operand[o], stride[o]);
    for (int d = 0; d < p.result.ndim; d++) add_loop(&p, &outer, p.result.label[d]);
    for (int label = 0; label < LABELS; label++)
        if (p.is_used[label] && !p.is_kept[label]) add_loop(&p, &inner, label);
    tare_tensor *y = tare__call_out(call);
    for (int64_t i = 0; i < outer.count; i++) {
        int64_t base[MOST_OPERANDS] = {0};
        double sum = 0;
        offsets_at(&p, &outer, i, stride, base);
        for (int64_t k = 0; k < inner.count; k++) {
            int64_t offset[MOST_OPERANDS];
            double product = 1;
            memcpy(offset, base, sizeof offset);
            offsets_at(&p, &inner, k, stride, offset);
            for (size_t o = 0; o < p.count; o++)
                product *= tare__tensor_get(p.operand[o].t, offset[o]);
            sum += product;
        }
        tare__tensor_set(y, i, sum);
    }
    return TARE_OK;
}

// --- two operands as a matrix product, for which plans have kernels ---

// The role of a label in a matrix product: in both operands and the result (batch), in one operand
// and the result (left, right), or in both operands only (sum).
typedef enum role { ROLE_BATCH, ROLE_LEFT, ROLE_RIGHT, ROLE_SUM, ROLE_COUNT } role;

typedef struct label_list {
    int label[TARE_MAX_DIMS];
    size_t count;
    int64_t element_count; // elements along all of them
} label_list;

static int dimension_of(const term *o, int label) {
    for (int d = 0; d < o->ndim; d++)
        if (o->label[d] == label) return d;
    return -1;
}

// True if the operand has the label and is not broadcast along it; broadcast dimensions are dropped
// from its matrix.
static bool goes_along(const einsum_plan *p, size_t o, int label) {
    const int d = dimension_of(&p->operand[o], label);
    return d >= 0 && p->operand[o].t->shape[d] == p->size[label];
}

// The labels of each role, in the order of the result. False if the equation is no product of two
// matrices.
static bool read_roles(const einsum_plan *p, label_list roles[ROLE_COUNT]) {
    for (int r = 0; r < ROLE_COUNT; r++) roles[r] = (label_list){.element_count = 1};
    if (p->count != 2 || p->operand[0].t->dtype != TARE_FLOAT32) return false;
    for (int d = 0; d < 2 * TARE_MAX_DIMS; d++) {
        const bool is_kept = d < TARE_MAX_DIMS;
        const term *from = is_kept ? &p->result : &p->operand[0];
        const int at = is_kept ? d : d - TARE_MAX_DIMS;
        if (at >= from->ndim || (!is_kept && p->is_kept[from->label[at]])) continue;
        const int label = from->label[at];
        const bool left = goes_along(p, 0, label), right = goes_along(p, 1, label);
        if (!is_kept && (!left || !right)) return false;
        const role r = !is_kept        ? ROLE_SUM
                       : left && right ? ROLE_BATCH
                       : left          ? ROLE_LEFT
                                       : ROLE_RIGHT;
        roles[r].label[roles[r].count++] = label;
        roles[r].element_count = tare__size_product(roles[r].element_count, p->size[label]);
    }
    // No label is repeated in an operand, and none is summed in the right operand alone.
    for (int o = 0; o < 2; o++) {
        const term *t = &p->operand[o];
        const size_t own = roles[o == 0 ? ROLE_LEFT : ROLE_RIGHT].count;
        size_t along = 0;
        for (int d = 0; d < t->ndim; d++) {
            if (dimension_of(t, t->label[d]) != d) return false;
            along += goes_along(p, (size_t)o, t->label[d]);
        }
        if (along != roles[ROLE_BATCH].count + roles[ROLE_SUM].count + own) return false;
    }
    return roles[ROLE_SUM].element_count > 0;
}

// Views one operand as [batch, rows, columns].
static value matrices_of(composer *c, const term *o, value v, const label_list *batch,
                         const label_list *rows, const label_list *columns) {
    int64_t order[TARE_MAX_DIMS];
    const int64_t shape[] = {batch->element_count, rows->element_count, columns->element_count};
    const label_list *const lists[] = {batch, rows, columns};
    size_t count = 0;
    for (size_t i = 0; i < 3; i++)
        for (size_t k = 0; k < lists[i]->count; k++)
            order[count++] = dimension_of(o, lists[i]->label[k]);
    for (int d = 0; d < o->ndim; d++) { // broadcast dimensions
        bool is_taken = false;
        for (size_t i = 0; i < count; i++) is_taken = is_taken || order[i] == d;
        if (!is_taken) order[count++] = d;
    }
    return COMPOSE(c, "view", COMPOSE(c, "permute", v, tare__compose_ints(c, order, count)),
                   tare__compose_ints(c, shape, 3));
}

static value product_of(composer *c, const einsum_plan *p, const label_list roles[ROLE_COUNT]) {
    const value *given = tare__compose_param(c, 1).as.items;
    const label_list *batch = &roles[ROLE_BATCH], *sum = &roles[ROLE_SUM];
    const value product = COMPOSE(
        c, "matmul", matrices_of(c, &p->operand[0], given[0], batch, &roles[ROLE_LEFT], sum),
        matrices_of(c, &p->operand[1], given[1], batch, sum, &roles[ROLE_RIGHT]));
    int64_t shape[TARE_MAX_DIMS], order[TARE_MAX_DIMS];
    size_t count = 0;
    for (int r = ROLE_BATCH; r < ROLE_SUM; r++)
        for (size_t k = 0; k < roles[r].count; k++) {
            const int label = roles[r].label[k];
            order[dimension_of(&p->result, label)] = (int64_t)count;
            shape[count++] = p->size[label];
        }
    return COMPOSE(c, "permute", COMPOSE(c, "view", product, tare__compose_ints(c, shape, count)),
                   tare__compose_ints(c, order, count));
}

static value einsum(composer *c) {
    einsum_plan p;
    label_list roles[ROLE_COUNT];
    op_call call = *c->call;
    if (c->status == TARE_OK) c->status = read_einsum(&call, &p);
    if (c->status != TARE_OK) return tare__none();
    if (read_roles(&p, roles)) return product_of(c, &p, roles);
    return COMPOSE(c, "einsum_sums", tare__compose_param(c, 0), tare__compose_param(c, 1));
}

static const op_info rows[] = {
    {.id = "einsum",
     .functions = "torch.functional.einsum|torch.ops.aten.einsum.default",
     .params = "equation|*operands",
     .forward = einsum},
    // For equations that are no product of two matrices.
    {.id = "einsum_sums",
     .params = "equation|*operands",
     .shape = einsum_sums_shape,
     .reference = einsum_sums_reference},
};

const op_table tare__einsum_ops = OP_TABLE(rows);
