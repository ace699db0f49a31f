// SPDX-License-Identifier: Apache-2.0
// Writes a program line by line, lowers it, and checks that its integers stay within one step.
#include "support/programs.h"

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "support/exported.h"
#include "support/models.h"
#include "support/test.h"

static uint64_t seed = 1;

static uint64_t random_bits(void) {
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    return seed >> 33;
}

int64_t random_between(int64_t least, int64_t most) {
    return least + (int64_t)(random_bits() % (uint64_t)(most - least + 1));
}

double random_scale(double least) {
    return (double)(float)(least * (1 + (double)random_between(0, 1000) / 500));
}

grid random_grid(bool is_signed, double least_scale) {
    const int64_t low = is_signed ? -128 : 0;
    return (grid){is_signed, random_scale(least_scale), random_between(low + 64, low + 192), low,
                  low + 255};
}

program new_program(const char *parameters) {
    program p = {.root = new_tree()};
    snprintf(p.code, sizeof p.code, "def forward(self, %s):\n", parameters);
    return p;
}

void line(program *p, const char *format, ...) {
    va_list list;
    const size_t used = strlen(p->code);
    va_start(list, format);
    size_t length = used + (size_t)snprintf(p->code + used, sizeof p->code - used, "    ");
    length += (size_t)vsnprintf(p->code + length, sizeof p->code - length, format, list);
    va_end(list);
    assert_true(length + 2 < sizeof p->code);
    p->code[length] = '\n';
    p->code[length + 1] = '\0';
}

void dequantized(program *p, const char *name, const char *quantized, const grid *g) {
    line(p,
         "%s = " DECOMPOSED "dequantize_per_tensor.default(%s, %.17g, %" PRId64 ", %" PRId64
         ", %" PRId64 ", torch.%s)",
         name, quantized, g->scale, g->zero_point, g->least, g->most,
         g->is_signed ? "int8" : "uint8");
}

void quantized(program *p, const char *name, const char *from, const grid *g) {
    char quantized[64];
    snprintf(quantized, sizeof quantized, "q_%s", name);
    line(p,
         "%s = " DECOMPOSED "quantize_per_tensor.default(%s, %.17g, %" PRId64 ", %" PRId64
         ", %" PRId64 ", torch.%s)",
         quantized, from, g->scale, g->zero_point, g->least, g->most,
         g->is_signed ? "int8" : "uint8");
    dequantized(p, name, quantized, g);
    p->output_scale = g->scale;
}

void put_tensor(program *p, const char *name, tare_tensor *t) {
    CHECK_OK(tare__module_set_tensor(p->root, name, t, false, NULL));
    tare_tensor_release(t);
}

void put_floats(program *p, const char *name, int64_t count, double size) {
    tare_tensor *t = NULL;
    CHECK_OK(tare_tensor_create(TARE_FLOAT32, 1, &count, &t, NULL));
    for (int64_t i = 0; i < count; i++)
        tare__f32(t)[i] = (float)((double)random_between(-1000, 1000) / 1000 * size);
    put_tensor(p, name, t);
    line(p, "%s = self.%s", name, name);
}

void put_integers(program *p, const char *name, tare_dtype dtype, int ndim, const int64_t *shape,
                  int64_t least, int64_t most) {
    tare_tensor *t = NULL;
    CHECK_OK(tare_tensor_create(dtype, ndim, shape, &t, NULL));
    for (int64_t i = 0; i < t->count; i++) tare__tensor_set_int(t, i, random_between(least, most));
    put_tensor(p, name, t);
    line(p, "%s = self.%s", name, name);
}

void put_weight(program *p, int ndim, const int64_t *shape, int axis) {
    put_integers(p, "frozen", TARE_INT8, ndim, shape, -127, 127);
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
    put_integers(p, "zeros", TARE_INT64, 1, &shape[axis], 0, 0);
    line(p,
         "w = " DECOMPOSED "dequantize_per_channel.default(frozen, scales, zeros, %d, -127, 127, "
         "torch.int8)",
         axis);
}

tare_model *converted(program *p, const char *returned) {
    line(p, "return %s", returned);
    tare_model *m = new_exported(p->root, p->code);
    m->stage = TARE_STAGE_REFERENCE;
    return m;
}

// Are the results the same quantized values, but for single steps where the real one lies in the
// middle?
static void check_same_integers(const tare_tensor *a, const tare_tensor *b, double step,
                                bool has_ties) {
    int64_t off = 0;
    assert_int_equal(a->count, b->count);
    for (int64_t i = 0; i < a->count; i++) {
        const double steps = fabs((double)tare__f32(a)[i] - (double)tare__f32(b)[i]) / step;
        if (steps > 1.01) fail_msg("element %" PRId64 " is off by %g steps", i, steps);
        off += steps > 0.01;
    }
    if (off * 100 > a->count && !has_ties)
        fail_msg("%" PRId64 " of %" PRId64 " are off", off, a->count);
}

void check_session(const tare_model *m, tare_tensor *const *inputs, size_t count,
                   const tare_tensor *wanted) {
    tare_session *session = NULL;
    tare_tensor *found[4] = {NULL};
    size_t found_count = 0;
    CHECK_DONE(tare_session_create(m, NULL, &session, job_error()));
    CHECK_DONE(tare_session_run(session, (const tare_tensor *const *)inputs, count, found, 4,
                                &found_count, job_error()));
    check_same_tensor(found[0], wanted);
    for (size_t i = 0; i < found_count; i++) tare_tensor_release(found[i]);
    tare_session_destroy(session);
}

// new_exported takes every value for float32.
static void state_dtypes(tare_model *m, tare_tensor *const *inputs, size_t count) {
    for (size_t i = 0; i < count; i++)
        if (inputs[i]->dtype != TARE_FLOAT32)
            set_dtype(m, tare_model_input_name(m, i), inputs[i]->dtype);
}

tare_model *checked(program *p, const char *returned, tare_tensor *const *inputs, size_t count) {
    tare_model *m = converted(p, returned), *lowered_model = NULL;
    const tare_lower_pt2e_options options = {.struct_size = sizeof options, .engine = p->engine};
    state_dtypes(m, inputs, count);
    CHECK_DONE(tare_lower_pt2e(m, &options, &lowered_model, job_error()));
    check_explained(lowered_model);
    tare_tensor *a = result_of(m, (const tare_tensor *const *)inputs, count);
    tare_tensor *b = result_of(lowered_model, (const tare_tensor *const *)inputs, count);
    check_same_integers(a, b, p->output_scale, p->has_ties);
    check_session(lowered_model, inputs, count, b);
    tare_tensor_release(a);
    tare_tensor_release(b);
    tare_model_destroy(m);
    return lowered_model;
}
