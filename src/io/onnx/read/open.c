// SPDX-License-Identifier: Apache-2.0
// Chooses the dimensions that stay open, and their stand-in sizes.
#include "io/onnx/read/open.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "core/text/text.h"
#include "io/native/model_file.h"
#include "io/onnx/read/options.h"

enum { MOST_OPEN = 8 };

// --- names that are expressions ---

// Grammar: sum := product {(+|-) product}; product := factor {(*|/|//|%) factor}; factor := int |
// name | (sum)
typedef struct dim_text {
    const char *at;
    const onnx_open *open;
    bool other, fails, computes; // computes: it is not just a name
    int depth;
    arena *memory; // not NULL: names are appended to `made`
    onnx_open *made;
} dim_text;

static int64_t read_sum(dim_text *t);

static void skip_spaces(dim_text *t) {
    while (*t->at == ' ') t->at++;
}

static const onnx_open_dim *find_name(const onnx_open *open, const char *name, size_t length) {
    for (size_t i = 0; i < open->count; i++)
        if (strlen(open->items[i].name) == length && memcmp(open->items[i].name, name, length) == 0)
            return &open->items[i];
    return NULL;
}

static int64_t read_name(dim_text *t) {
    const char *name = t->at;
    while (tare__is_letter(*t->at) || tare__is_digit(*t->at) || *t->at == '.') t->at++;
    const size_t length = (size_t)(t->at - name);
    const onnx_open_dim *dim = find_name(t->open, name, length);
    if (dim == NULL && t->memory != NULL && t->made->count < MOST_OPEN) {
        onnx_open_dim *added = &t->made->items[t->made->count++];
        *added = (onnx_open_dim){.name = tare__arena_strndup(t->memory, name, length),
                                 .is_named = true,
                                 .now = 1,
                                 .other = 1};
        if (added->name == NULL) t->made->count--;
        dim = added->name != NULL ? added : NULL;
    }
    if (dim == NULL) return t->fails = true, 1;
    return t->other ? dim->other : dim->now;
}

static int64_t read_factor(dim_text *t) {
    enum { MOST_DEPTH = 16, MOST_DIGITS = 9 };
    int64_t number = 0;
    skip_spaces(t);
    if (tare__is_letter(*t->at)) return read_name(t);
    if (*t->at == '(' && t->depth < MOST_DEPTH) {
        t->at++;
        t->depth++;
        number = read_sum(t);
        t->depth--;
        skip_spaces(t);
        t->fails |= *t->at != ')';
        if (*t->at == ')') t->at++;
        return number;
    }
    const char *first = t->at;
    while (tare__is_digit(*t->at) && t->at - first < MOST_DIGITS)
        number = 10 * number + (*t->at++ - '0');
    t->fails |= t->at == first;
    return number;
}

static int64_t limited(dim_text *t, double x) {
    if (x < -INT32_MAX || x > INT32_MAX) return t->fails = true, 1;
    return (int64_t)x;
}

static int64_t read_product(dim_text *t) {
    int64_t left = read_factor(t);
    for (skip_spaces(t); !t->fails && *t->at != '\0' && strchr("*/%", *t->at) != NULL;
         skip_spaces(t)) {
        const char op = *t->at++;
        if (op == '/' && *t->at == '/') t->at++;
        const int64_t right = read_factor(t);
        t->computes = true;
        if (op == '*')
            left = limited(t, (double)left * (double)right);
        else if (left < 0 || right < 1)
            t->fails = true;
        else
            left = op == '/' ? left / right : left % right;
    }
    return left;
}

static int64_t read_sum(dim_text *t) {
    int64_t left = read_product(t);
    for (skip_spaces(t); !t->fails && (*t->at == '+' || *t->at == '-'); skip_spaces(t)) {
        const bool minus = *t->at++ == '-';
        const int64_t right = read_product(t);
        t->computes = true;
        left = limited(t, (double)left + (minus ? -1 : 1) * (double)right);
    }
    return left;
}

// --- finding ---

static const Onnx__TensorShapeProto *shape_of(const Onnx__ValueInfoProto *info) {
    const bool is_tensor =
        info->type != NULL && info->type->value_case == ONNX__TYPE_PROTO__VALUE_TENSOR_TYPE;
    return is_tensor ? info->type->tensor_type->shape : NULL;
}

static bool has_size(const Onnx__TensorShapeProto__Dimension *d) {
    return d->value_case == ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_VALUE &&
           d->dim_value > 0;
}

// A first dimension without a name is the batch. The line break cannot occur in names of the file.
static void own_name(const char *input, int d, char *out, size_t size) {
    if (d == 0)
        snprintf(out, size, "\nbatch");
    else
        snprintf(out, size, "\n%d %.80s", d, input);
}

tare_status tare__onnx_open_add(onnx_open *out, arena *memory, const char *input, int ndim, int d,
                                const char *name, tare_error *err) {
    char own[100];
    if (out->items == NULL) out->items = tare__arena_array(memory, MOST_OPEN, sizeof *out->items);
    if (out->items == NULL) return tare__out_of_memory(err);
    const size_t before = out->count;
    if (name == NULL) own_name(input, d, own, sizeof own);
    dim_text read = {.at = name != NULL ? name : "-", .open = out, .memory = memory, .made = out};
    (void)read_sum(&read);
    const bool computes = !read.fails && read.computes && *read.at == '\0';
    if (!computes) {
        out->count = before;
        if (name == NULL) name = tare__arena_strdup(memory, own);
        if (name == NULL) return tare__out_of_memory(err);
        if (find_name(out, name, strlen(name)) == NULL && out->count < MOST_OPEN)
            out->items[out->count++] = (onnx_open_dim){.name = name, .is_named = *name != '\n'};
    }
    for (size_t i = before; i < out->count; i++) {
        out->items[i].input = input;
        out->items[i].dim = d;
        out->items[i].is_image = ndim >= 4 && d > 0;
    }
    return TARE_OK;
}

typedef struct dim_search {
    const tare_model_read_options *options;
    arena *memory;
    onnx_open *out;
    bool is_more; // there are open dimensions other than first ones
    tare_error *err;
} dim_search;

static tare_status search_input(dim_search *s, const Onnx__ValueInfoProto *info) {
    const Onnx__TensorShapeProto *shape = shape_of(info);
    int ndim;
    int64_t given[TARE_MAX_DIMS], size;
    if (shape == NULL || info->name == NULL || shape->n_dim > TARE_MAX_DIMS ||
        tare__onnx_option_shape(s->options, info->name, &ndim, given))
        return TARE_OK;
    for (int d = 0; d < (int)shape->n_dim; d++) {
        const char *name = tare__onnx_dim_name(shape->dim[d]);
        if (has_size(shape->dim[d]) ||
            (name != NULL && tare__onnx_option_dim(s->options, name, &size)))
            continue;
        TARE_TRY(
            tare__onnx_open_add(s->out, s->memory, info->name, (int)shape->n_dim, d, name, s->err));
        s->is_more |= d > 0;
    }
    return TARE_OK;
}

static bool is_initializer(const Onnx__GraphProto *g, const char *name) {
    for (size_t i = 0; name != NULL && i < g->n_initializer; i++)
        if (g->initializer[i]->name != NULL && strcmp(g->initializer[i]->name, name) == 0)
            return true;
    return false;
}

tare_status tare__onnx_open_find(const Onnx__GraphProto *g, const tare_model_read_options *options,
                                 arena *memory, onnx_open *out, tare_error *err) {
    dim_search s = {.options = options, .memory = memory, .out = out, .err = err};
    *out = (onnx_open){.items = NULL};
    for (size_t i = 0; i < g->n_input; i++)
        if (!is_initializer(g, g->input[i]->name)) TARE_TRY(search_input(&s, g->input[i]));
    if (!s.is_more) out->count = 0;
    return TARE_OK;
}

// --- what stands in ---
//
// The exact sizes have no common factors with each other or with typical sizes of layers, so that
// two sizes are the same number only if the file computes them equally. One of each pair is a
// multiple of common window sizes and the other is not: padding to whole windows and cropping to
// whole windows then give different results. Models that accept no such sizes are tried with
// multiples, longer and shorter ones.

typedef struct stand_ins {
    int64_t size[4]; // both of the first reading, then both of the second
} stand_ins;

static const stand_ins batches[MOST_OPEN] = {
    {{2, 5, 3, 7}},     {{11, 17, 13, 19}}, {{23, 37, 29, 41}},    {{31, 47, 43, 59}},
    {{53, 71, 61, 79}}, {{67, 83, 73, 97}}, {{89, 101, 103, 109}}, {{107, 127, 113, 131}}};
static const stand_ins images[MOST_OPEN] = {{{107, 320, 167, 448}},   {{135, 384, 203, 576}},
                                            {{109, 512, 189, 704}},   {{141, 640, 219, 832}},
                                            {{115, 768, 199, 896}},   {{151, 960, 229, 1088}},
                                            {{119, 1216, 197, 1344}}, {{155, 1472, 237, 1600}}};
static const stand_ins lengths[MOST_OPEN] = {
    {{13, 48, 19, 32}}, {{17, 64, 23, 16}}, {{29, 32, 37, 64}}, {{11, 16, 27, 48}},
    {{21, 24, 33, 40}}, {{25, 56, 35, 8}},  {{15, 40, 39, 24}}, {{14, 8, 22, 56}}};
static const stand_ins multiples[MOST_OPEN] = { // times 32 for images, times 16 for lengths
    {{3, 8, 5, 11}},    {{4, 9, 7, 13}},    {{6, 17, 10, 19}},  {{12, 23, 14, 29}},
    {{15, 31, 16, 37}}, {{18, 41, 20, 43}}, {{21, 47, 22, 53}}, {{24, 59, 25, 61}}};

static const struct {
    const stand_ins *images, *lengths;
    int64_t image_factor, length_factor;
    bool is_exact; // the sizes have no common factors
    int joined; // below this dimension, open dimensions of several inputs with the same index are
                // one
} attempts[] = {
    {images, lengths, 1, 1, true, 0},
    {images, lengths, 1, 1, true, 1},
    {images, lengths, 1, 1, true, TARE_MAX_DIMS},
    {images, images, 1, 17, true, 0}, // sound: several thousand samples
    {multiples, lengths, 32, 1, false, 0},
    {multiples, lengths, 32, 1, false, 1},
    {images, multiples, 1, 2, false, 0}, // short lengths
    {images, multiples, 1, 16, false, 0},
    {multiples, multiples, 64, 320, false, 0},
    {images, lengths, 4, 1, false, 0},
    {lengths, lengths, 1, 1, true, 0},
};

// Exporters give one size several names, one for each input.
static size_t first_alike(const onnx_open *open, size_t i, int joined) {
    const onnx_open_dim *d = &open->items[i];
    for (size_t k = 0; k < i; k++)
        if (d->dim < joined && open->items[k].dim == d->dim &&
            open->items[k].is_image == d->is_image && strcmp(open->items[k].input, d->input) != 0)
            return k;
    return i;
}

bool tare__onnx_open_choose(onnx_open *open, int attempt, bool is_second) {
    if (attempt >= (int)(sizeof attempts / sizeof *attempts)) return false;
    open->is_exact = attempts[attempt].is_exact;
    for (size_t i = 0; i < open->count; i++) {
        onnx_open_dim *d = &open->items[i];
        const size_t k = first_alike(open, i, attempts[attempt].joined);
        const stand_ins *from =
            d->is_image ? &attempts[attempt].images[k] : &attempts[attempt].lengths[k];
        int64_t factor =
            d->is_image ? attempts[attempt].image_factor : attempts[attempt].length_factor;
        if (d->dim == 0) {
            from = &batches[k];
            factor = 1;
        }
        d->now = factor * from->size[is_second ? 2 : 0];
        d->other = factor * from->size[is_second ? 3 : 1];
    }
    return true;
}

static bool value_of(const onnx_open *open, const char *name, bool other, int64_t *out) {
    const onnx_open_dim *dim = find_name(open, name, strlen(name));
    if (dim != NULL) return *out = other ? dim->other : dim->now, true;
    dim_text read = {.at = name, .open = open, .other = other};
    *out = read_sum(&read);
    return !read.fails && *read.at == '\0' && *out >= 1;
}

void tare__onnx_size_key(int64_t now, int64_t other, char key[ONNX_SIZE_KEY]) {
    (void)snprintf(key, ONNX_SIZE_KEY, "%" PRId64 "|%" PRId64, now, other);
}

bool tare__onnx_open_size(const onnx_open *open, const char *input, int d, const char *name,
                          int64_t *now, int64_t *other) {
    char own[100];
    if (name == NULL) own_name(input, d, own, sizeof own);
    if (name == NULL) name = own;
    return value_of(open, name, false, now) && value_of(open, name, true, other);
}

// --- two readings ---

static bool same_tensors(const map *a, const map *b) {
    if (a->count != b->count) return false;
    for (size_t i = 0; i < a->count; i++) {
        const tare_tensor *x = a->entries[i].value, *y = tare__map_get(b, a->entries[i].key);
        if (y == NULL || !tare__same_elements(x, y)) return false;
    }
    return true;
}

tare_status tare__onnx_open_agree(const module *a, const module *b, bool *agree, tare_error *err) {
    text first = {0}, second = {0};
    map tensors = {0}, others = {0};
    *agree = false;
    tare_status status = tare__model_to_json_and_tensors(a, NULL, NULL, &first, &tensors, err);
    if (status == TARE_OK)
        status = tare__model_to_json_and_tensors(b, NULL, NULL, &second, &others, err);
    if (status == TARE_OK)
        *agree = strcmp(tare__text_chars(&first), tare__text_chars(&second)) == 0 &&
                 same_tensors(&tensors, &others);
    tare__text_release(&first);
    tare__text_release(&second);
    tare__tensor_map_release(&tensors);
    tare__tensor_map_release(&others);
    return status;
}
