// SPDX-License-Identifier: Apache-2.0
// Elementwise functions that are composed of others.
#include <math.h>

#include "ops/compose.h"
#include "ops/families/families.h"
#include "ops/rules.h"

#define P(i) tare__compose_param(c, i)

static value times(composer *c, value x, double factor) {
    return COMPOSE(c, "mul", x, tare__float(factor));
}

static const double root_of_half = 0.70710678118654752440;

static value erfc_of(composer *c) {
    return COMPOSE(c, "rsub", COMPOSE(c, "erf", P(0)), tare__int(1));
}

// The cumulative normal distribution: (1 + erf(x / sqrt 2)) / 2.
static value ndtr(composer *c) {
    const value e = COMPOSE(c, "erf", times(c, P(0), root_of_half));
    return times(c, COMPOSE(c, "add", e, tare__int(1)), 0.5);
}

// -x log x; 0 at 0, -inf below.
static value entr(composer *c) {
    const value zero = tare__int(0), x = COMPOSE(c, "mul", P(0), tare__float(1));
    const value made = COMPOSE(c, "neg", COMPOSE(c, "xlogy", x, x));
    return COMPOSE(c, "where", COMPOSE(c, "lt", x, zero), tare__float(-INFINITY), made);
}

// x log1p(y); 0 if x is 0 and y is not NaN.
static value xlog1py(composer *c) {
    const value made = COMPOSE(c, "mul", P(0), COMPOSE(c, "log1p", P(1)));
    const value is_zero = COMPOSE(c, "logical_and", COMPOSE(c, "eq", P(0), tare__int(0)),
                                  COMPOSE(c, "logical_not", COMPOSE(c, "isnan", P(1))));
    return COMPOSE(c, "where", is_zero, tare__float(0), made);
}

static value ldexp_of(composer *c) {
    return COMPOSE(c, "mul", P(0), COMPOSE(c, "pow", tare__float(2), P(1)));
}

// log2(2^x + 2^y)
static value logaddexp2(composer *c) {
    const double ln2 = 0.69314718055994530942;
    const value natural = COMPOSE(c, "logaddexp", times(c, P(0), ln2), times(c, P(1), ln2));
    return times(c, natural, 1 / ln2);
}

// Rounds to a number of decimals; if negative, to powers of ten.
static value round_decimals(composer *c) {
    const int64_t digits = tare__compose_int(c, 1, 0);
    double power = 1;
    if (digits < -30 || digits > 30) (void)tare__compose_fail(c, "digits are out of range");
    for (int64_t i = digits < 0 ? digits : -digits; i < 0 && i >= -30; i++) power *= 10;
    const value by = tare__float(power);
    if (digits < 0) return COMPOSE(c, "mul", COMPOSE(c, "round", COMPOSE(c, "div", P(0), by)), by);
    return COMPOSE(c, "div", COMPOSE(c, "round", COMPOSE(c, "mul", P(0), by)), by);
}

static value dist(composer *c) {
    const value order = tare__float(tare__compose_double(c, 2, 2));
    return COMPOSE(c, "vector_norm", COMPOSE(c, "sub", P(0), P(1)), order);
}

// pow of both operands as double.
static value float_power(composer *c) {
    value side[2];
    for (size_t i = 0; i < 2; i++)
        side[i] = P(i).kind == VALUE_TENSOR
                      ? COMPOSE(c, "to", P(i), tare__dtype_value(TARE_FLOAT64))
                      : P(i);
    return COMPOSE(c, "pow", side[0], side[1]);
}

// logspace(start, end, steps, base): base to the power of linspace.
static value logspace(composer *c) {
    const value exponents = COMPOSE(c, "linspace", P(0), P(1), P(2), P(4));
    return COMPOSE(c, "pow", tare__float(tare__compose_double(c, 3, 10)), exponents);
}

// --- losses, which some models return beside their results: reduction 0 none, 1 mean, 2 sum ---

static value reduced(composer *c, value x, size_t reduction) {
    const int64_t how = tare__compose_int(c, reduction, 1);
    if (how < 0 || how > 2) (void)tare__compose_fail(c, "reduction must be 0, 1 or 2");
    return how == 0 ? x : COMPOSE(c, how == 1 ? "mean" : "sum", x);
}

static value l1_loss(composer *c) {
    return reduced(c, COMPOSE(c, "abs", COMPOSE(c, "sub", P(0), P(1))), 2);
}

static value mse_loss(composer *c) {
    return reduced(c, COMPOSE(c, "square", COMPOSE(c, "sub", P(0), P(1))), 2);
}

// d^2 / 2 up to `limit`, limit (d - limit / 2) beyond.
static value huber(composer *c, double limit) {
    const value d = COMPOSE(c, "abs", COMPOSE(c, "sub", P(0), P(1)));
    const value far = times(c, COMPOSE(c, "sub", d, tare__float(limit / 2)), limit);
    return COMPOSE(c, "where", COMPOSE(c, "lt", d, tare__float(limit)),
                   times(c, COMPOSE(c, "square", d), 0.5), far);
}

static value huber_loss(composer *c) {
    return reduced(c, huber(c, tare__compose_double(c, 3, 1)), 2);
}

static value smooth_l1_loss(composer *c) {
    const double beta = tare__compose_double(c, 3, 1);
    if (beta == 0) return l1_loss(c);
    return reduced(c, times(c, huber(c, beta), 1 / beta), 2);
}

// --- along a dimension ---

// Reads a dimension of x; negative ones count from the end.
static int64_t dim_of(composer *c, size_t i, int64_t otherwise, const tare_tensor *x) {
    const int64_t given = tare__compose_int(c, i, otherwise),
                  dim = given < 0 ? given + x->ndim : given;
    if (dim < 0 || dim >= x->ndim) (void)tare__compose_fail(c, "there is no such dimension");
    return c->status == TARE_OK ? dim : 0;
}

static value slice(composer *c, value x, int64_t dim, int64_t first, int64_t size) {
    return COMPOSE(c, "narrow", x, tare__int(dim), tare__int(first), tare__int(size));
}

// A vector x in a shape that broadcasts along dimension dim of y; other tensors unchanged.
static value along(composer *c, value x, int64_t dim, int ndim) {
    const tare_tensor *t = tare__compose_tensor(c, x);
    if (t == NULL || t->ndim != 1) return x;
    int64_t shape[TARE_MAX_DIMS];
    for (int d = 0; d < ndim; d++) shape[d] = d == dim ? t->count : 1;
    return COMPOSE(c, "view", x, tare__compose_ints(c, shape, (size_t)ndim));
}

// trapezoid(y, x, dx, dim): the integral of y by the trapezoidal rule, at points x or at distances
// dx.
static value trapezoid(composer *c) {
    const tare_tensor *y = tare__compose_need(c, 0);
    if (y == NULL) return P(0);
    const int64_t dim = dim_of(c, 3, -1, y);
    if (c->status != TARE_OK) return P(0);
    const int64_t steps = y->shape[dim] > 0 ? y->shape[dim] - 1 : 0;
    const int64_t second = y->shape[dim] - steps;
    const value left = slice(c, P(0), dim, 0, steps), right = slice(c, P(0), dim, second, steps);
    value sums = COMPOSE(c, "add", left, right);
    if (P(1).kind == VALUE_TENSOR) {
        const value x = along(c, P(1), dim, y->ndim);
        const tare_tensor *points = tare__compose_tensor(c, x);
        if (points == NULL) return P(0);
        const int64_t own = dim - y->ndim + points->ndim;
        if (own < 0 || points->shape[own] != y->shape[dim]) {
            (void)tare__compose_fail(c, "needs a place for each value along the dimension");
            return P(0);
        }
        sums =
            COMPOSE(c, "mul", sums,
                    COMPOSE(c, "sub", slice(c, x, own, second, steps), slice(c, x, own, 0, steps)));
    }
    const double step = P(1).kind == VALUE_TENSOR ? 1 : tare__compose_double(c, 2, 1);
    return times(c, COMPOSE(c, "sum", sums, tare__int(dim)), step / 2);
}

// renorm(input, p, dim, maxnorm): scales slices with a greater norm down to maxnorm.
static value renorm(composer *c) {
    const tare_tensor *x = tare__compose_need(c, 0);
    if (x == NULL) return P(0);
    const int64_t dim = dim_of(c, 2, 0, x);
    if (x->ndim < 2) (void)tare__compose_fail(c, "needs at least 2 dimensions");
    const double most = tare__compose_double(c, 3, 0);
    if (!(most >= 0)) (void)tare__compose_fail(c, "maxnorm must not be negative");
    int64_t others[TARE_MAX_DIMS];
    size_t count = 0;
    for (int d = 0; d < x->ndim; d++)
        if (d != dim) others[count++] = d;
    const value norm = COMPOSE(c, "vector_norm", P(0), tare__float(tare__compose_double(c, 1, 2)),
                               tare__compose_ints(c, others, count), tare__bool(true));
    const value factor =
        COMPOSE(c, "mul", COMPOSE(c, "reciprocal", COMPOSE(c, "add", norm, tare__float(1e-7))),
                tare__float(most));
    return COMPOSE(
        c, "mul", P(0),
        COMPOSE(c, "where", COMPOSE(c, "gt", norm, tare__float(most)), factor, tare__float(1)));
}

// --- rows ---

#define ATEN(name) "|torch.ops.aten." name
#define SPECIAL(name)                                                                              \
    "torch.special." name "|torch._C._special.special_" name ATEN("special_" name ".default")

// clang-format off
static const op_info rows[] = {
    {.id = "erfc", .functions = SPECIAL("erfc") "|torch.erfc" ATEN("erfc.default"), .methods = "erfc", .params = "input/self",
     .forward = erfc_of},
    COMPOSED_ROW(ndtr, SPECIAL("ndtr"), NULL, "input/self"),
    COMPOSED_ROW(entr, SPECIAL("entr"), NULL, "input/self"),
    COMPOSED_ROW(xlog1py, SPECIAL("xlog1py") ATEN("special_xlog1py.other_scalar") ATEN("special_xlog1py.self_scalar"), NULL, "input/self|other"),
    {.id = "ldexp", .functions = "torch.ldexp" ATEN("ldexp.Tensor"), .methods = "ldexp", .params = "input/self|other",
     .forward = ldexp_of},
    COMPOSED_ROW(logaddexp2, "torch.logaddexp2" ATEN("logaddexp2.default"), "logaddexp2", "input/self|other"),
    COMPOSED_ROW(round_decimals, "torch.ops.aten.round.decimals", NULL, "input/self|decimals"),
    COMPOSED_ROW(float_power, "torch.float_power" ATEN("float_power.Tensor_Tensor") ATEN("float_power.Tensor_Scalar") ATEN("float_power.Scalar"), "float_power", "input/self|exponent"),
    COMPOSED_ROW(logspace, "torch.logspace" ATEN("logspace.default"), NULL, "start|end|steps|base|dtype|layout|device|pin_memory"),
    {.id = "trapezoid", .functions = "torch.trapezoid|torch.trapz" ATEN("trapezoid.x"), .overloads = "torch.ops.aten.trapezoid.dx",
     .params = "input/y|x|dx|dim", .forward = trapezoid},
    COMPOSED_ROW(l1_loss, "torch.ops.aten.l1_loss.default", NULL, "input/self|target|reduction"),
    COMPOSED_ROW(mse_loss, "torch.ops.aten.mse_loss.default", NULL, "input/self|target|reduction"),
    COMPOSED_ROW(huber_loss, "torch.ops.aten.huber_loss.default", NULL, "input/self|target|reduction|delta"),
    COMPOSED_ROW(smooth_l1_loss, "torch.ops.aten.smooth_l1_loss.default", NULL, "input/self|target|reduction|beta"),
    COMPOSED_ROW(renorm, "torch.renorm" ATEN("renorm.default"), "renorm", "input/self|p|dim|maxnorm"),
    COMPOSED_ROW(dist, "torch.dist" ATEN("dist.default"), "dist", "input/self|other|p"),
};
// clang-format on

const op_table tare__formulas_ops = OP_TABLE(rows);
