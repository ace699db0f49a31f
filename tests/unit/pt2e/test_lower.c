// SPDX-License-Identifier: Apache-2.0
// Lowered programs give the codes of the converted ones.
#include <inttypes.h>
#include <math.h>

#include "support/exported.h"
#include "support/models.h"
#include "support/test.h"

// --- programs in few words ---

static uint64_t seed = 1;

static uint64_t random_bits(void) {
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    return seed >> 33;
}

static int64_t random_between(int64_t least, int64_t most) {
    return least + (int64_t)(random_bits() % (uint64_t)(most - least + 1));
}

static double random_scale(double least) {
    return (double)(float)(least * (1 + (double)random_between(0, 1000) / 500));
}

typedef struct grid {
    bool is_signed;
    double scale;
    int64_t zero_point, least, most;
} grid;

static grid random_grid(bool is_signed, double least_scale) {
    const int64_t low = is_signed ? -128 : 0;
    return (grid){is_signed, random_scale(least_scale), random_between(low + 64, low + 192), low,
                  low + 255};
}

typedef struct program {
    module *root;
    char code[8192];
    double output_scale;
} program;

static program new_program(const char *parameters) {
    program p = {.root = new_tree()};
    snprintf(p.code, sizeof p.code, "def forward(self, %s):\n", parameters);
    return p;
}

static void line(program *p, const char *format, ...) {
    va_list list;
    const size_t used = strlen(p->code);
    va_start(list, format);
    size_t length = used + (size_t)snprintf(p->code + used, sizeof p->code - used, "    ");
    length += (size_t)vsnprintf(p->code + length, sizeof p->code - length, format, list);
    va_end(list);
    assert_true(length + 2 < sizeof p->code);
    strcpy(p->code + length, "\n");
}

#define DECOMPOSED "torch.ops.quantized_decomposed."

static void dequantized(program *p, const char *name, const char *codes, const grid *g) {
    line(p,
         "%s = " DECOMPOSED "dequantize_per_tensor.default(%s, %.17g, %" PRId64 ", %" PRId64
         ", %" PRId64 ", torch.%s)",
         name, codes, g->scale, g->zero_point, g->least, g->most, g->is_signed ? "int8" : "uint8");
}

// NAME = the value of FROM after quantize and dequantize; the codes are called q_NAME.
static void quantized(program *p, const char *name, const char *from, const grid *g) {
    char codes[64];
    snprintf(codes, sizeof codes, "q_%s", name);
    line(p,
         "%s = " DECOMPOSED "quantize_per_tensor.default(%s, %.17g, %" PRId64 ", %" PRId64
         ", %" PRId64 ", torch.%s)",
         codes, from, g->scale, g->zero_point, g->least, g->most, g->is_signed ? "int8" : "uint8");
    dequantized(p, name, codes, g);
    p->output_scale = g->scale;
}

static void put_tensor(program *p, const char *name, tare_tensor *t) {
    CHECK_OK(tare__module_set_tensor(p->root, name, t, false, NULL));
    tare_tensor_release(t);
}

static void put_floats(program *p, const char *name, int64_t count, double size) {
    tare_tensor *t = NULL;
    CHECK_OK(tare_tensor_create(TARE_FLOAT32, 1, &count, &t, NULL));
    for (int64_t i = 0; i < count; i++)
        tare__f32(t)[i] = (float)((double)random_between(-1000, 1000) / 1000 * size);
    put_tensor(p, name, t);
    line(p, "%s = self.%s", name, name);
}

static void put_codes(program *p, const char *name, tare_dtype dtype, int ndim,
                      const int64_t *shape, int64_t least, int64_t most) {
    tare_tensor *t = NULL;
    CHECK_OK(tare_tensor_create(dtype, ndim, shape, &t, NULL));
    for (int64_t i = 0; i < t->count; i++) tare__tensor_set_int(t, i, random_between(least, most));
    put_tensor(p, name, t);
    line(p, "%s = self.%s", name, name);
}

// A constant weight "w" with a scale per channel along `axis`; -1: one for all.
static void put_weight(program *p, int ndim, const int64_t *shape, int axis) {
    put_codes(p, "frozen", TARE_INT8, ndim, shape, -127, 127);
    if (axis < 0) {
        const grid g = {true, 0.0131, 0, -127, 127};
        dequantized(p, "w", "frozen", &g);
        return;
    }
    tare_tensor *scales = NULL;
    CHECK_OK(tare_tensor_create(TARE_FLOAT32, 1, &shape[axis], &scales, NULL));
    for (int64_t i = 0; i < shape[axis]; i++) tare__f32(scales)[i] = (float)random_scale(0.005);
    put_tensor(p, "scales", scales);
    line(p, "scales = self.scales");
    put_codes(p, "zeros", TARE_INT64, 1, &shape[axis], 0, 0);
    line(p,
         "w = " DECOMPOSED "dequantize_per_channel.default(frozen, scales, zeros, %d, -127, 127, "
         "torch.int8)",
         axis);
}

static tare_model *converted(program *p, const char *returned) {
    line(p, "return %s", returned);
    tare_model *m = new_exported(p->root, p->code);
    m->stage = TARE_STAGE_REFERENCE;
    return m;
}

// Are the results the same codes, but for single steps where the real one lies in the middle?
static void check_same_codes(const tare_tensor *a, const tare_tensor *b, double step) {
    int64_t off = 0;
    assert_int_equal(a->count, b->count);
    for (int64_t i = 0; i < a->count; i++) {
        const double steps = fabs((double)tare__f32(a)[i] - (double)tare__f32(b)[i]) / step;
        if (steps > 1.01) fail_msg("element %" PRId64 " is off by %g steps", i, steps);
        off += steps > 0.01;
    }
    if (off * 100 > a->count) fail_msg("%" PRId64 " of %" PRId64 " are off", off, a->count);
}

// Lowers the program and compares it on its inputs. The caller destroys the lowered model.
static tare_model *checked(program *p, const char *returned, tare_tensor *const *inputs,
                           size_t count) {
    tare_model *m = converted(p, returned), *lowered_model = NULL;
    CHECK_DONE(tare_lower_pt2e(m, NULL, &lowered_model, job_error()));
    tare_tensor *a = result_of(m, (const tare_tensor *const *)inputs, count);
    tare_tensor *b = result_of(lowered_model, (const tare_tensor *const *)inputs, count);
    check_same_codes(a, b, p->output_scale);
    tare_tensor_release(a);
    tare_tensor_release(b);
    tare_model_destroy(m);
    return lowered_model;
}

// --- layers ---

typedef struct layer_case {
    const char *call; // of x, w and b
    int ndim;
    int64_t weight[5], input[5];
    int axis; // of the weight's scales
    const char *lowered;
} layer_case;

static const layer_case layers[] = {
    {"linear.default(x, w, b)", 2, {6, 7}, {3, 7}, 0, "linear"},
    {"linear.default(x, w)", 2, {6, 7}, {2, 3, 7}, -1, "linear"},
    {"conv1d.default(x, w, b, [2], [1])", 3, {6, 3, 3}, {2, 3, 11}, 0, "conv1d"},
    {"conv2d.default(x, w, b, [1, 1], [1, 1])", 4, {6, 3, 3, 3}, {2, 3, 6, 5}, 0, "conv2d"},
    {"conv2d.default(x, w, b, [1, 1], [1, 1], [1, 1], 4)",
     4,
     {4, 1, 3, 3},
     {1, 4, 6, 5},
     -1,
     "conv2d"},
    {"conv3d.default(x, w)", 5, {2, 3, 2, 2, 2}, {1, 3, 4, 3, 3}, 0, "conv3d"},
    {"conv_transpose2d.input(x, w, b, [2, 2])",
     4,
     {3, 6, 2, 2},
     {1, 3, 3, 4},
     -1,
     "conv_transpose2d"},
    {"conv_transpose1d.default(x, w, b, [2])", 3, {3, 6, 2}, {1, 3, 7}, 1, "conv_transpose1d"},
};
enum { LAYER_COUNT = sizeof layers / sizeof *layers };

static program layer_program(const layer_case *c, bool is_signed, const char *activation) {
    program p = new_program("v");
    const grid x = random_grid(is_signed, 0.01), y = random_grid(is_signed, 0.05);
    const bool is_transposed = strstr(c->call, "transpose") != NULL;
    quantized(&p, "x", "v", &x);
    put_weight(&p, c->ndim, c->weight, c->axis);
    put_floats(&p, "b", c->weight[is_transposed ? 1 : 0], 0.5);
    line(&p, "y = torch.ops.aten.%s", c->call);
    if (activation != NULL) line(&p, "z = torch.ops.aten.%s", activation);
    quantized(&p, "result", activation != NULL ? "z" : "y", &y);
    return p;
}

static void layers_give_the_codes_of_the_converted_program(void **state) {
    (void)state;
    for (size_t i = 0; i < 4 * LAYER_COUNT; i++) {
        const layer_case *c = &layers[i / 4];
        program p = layer_program(c, i % 2 == 0, i % 4 >= 2 ? "relu.default(y)" : NULL);
        tare_tensor *x = new_input(c->ndim == 2 && c->input[2] > 0 ? 3 : c->ndim, c->input);
        tare_model *m = checked(&p, "result", &x, 1);
        char wanted[64];
        snprintf(wanted, sizeof wanted, "torch.ops.quantized.%s", c->lowered);
        CHECK_HOLDS(printed(m), wanted);
        CHECK_LACKS(printed(m), "torch.ops.quantized_decomposed");
        CHECK_HOLDS(decided(m, "y"),
                    "lower: lowered: computed in integers by torch.ops.quantized.");
        tare_model_destroy(m);
        tare_tensor_release(x);
    }
}

static void bounds_follow_on_the_codes(void **state) {
    (void)state;
    program p = layer_program(&layers[3], true, "hardtanh_.default(y, 0.0, 6.0)");
    tare_tensor *x = NEW_INPUT(2, 3, 6, 5);
    tare_model *m = checked(&p, "result", &x, 1);
    CHECK_HOLDS(printed(m), "z = torch.ops.aten.hardtanh_.default(y, 0.0, 6.0);");
    tare_model_destroy(m);
    tare_tensor_release(x);
}

static void narrow_ranges_stay_narrow(void **state) {
    (void)state;
    program p = new_program("v");
    const grid x = {false, 0.02, 40, 0, 127};
    quantized(&p, "result", "v", &x);
    tare_tensor *input = NEW_INPUT(4, 300);
    for (int64_t i = 0; i < input->count; i++) tare__f32(input)[i] *= 4;
    tare_model *m = checked(&p, "result", &input, 1);
    CHECK_HOLDS(printed(m), "torch.clamp(q_result, -0.79");
    tare_model_destroy(m);
    tare_tensor_release(input);
}

static void models_that_are_not_converted_are_refused(void **state) {
    (void)state;
    tare_model *m = new_model(NULL, new_tree(), "def forward(self, x):\n    return x\n"), *l = NULL;
    CHECK_REFUSED(tare_lower_pt2e(m, NULL, &l, job_error()), TARE_INVALID_ARGUMENT,
                  "expected a model that tare_convert_pt2e made");
    tare_model_destroy(m);
}

static void memory_may_end_at_any_place(void **state) {
    (void)state;
    program p = layer_program(&layers[0], true, "relu.default(y)");
    tare_model *m = converted(&p, "result"), *l = NULL;
    tare_status status = TARE_OK;
    EVERY_ALLOCATION_FAILS(status, status = tare_lower_pt2e(m, NULL, &l, NULL),
                           (tare_model_destroy(l), l = NULL));
    tare_model_destroy(m);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(layers_give_the_codes_of_the_converted_program),
        cmocka_unit_test(bounds_follow_on_the_codes),
        cmocka_unit_test(narrow_ranges_stay_narrow),
        cmocka_unit_test(models_that_are_not_converted_are_refused),
        cmocka_unit_test(memory_may_end_at_any_place),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
