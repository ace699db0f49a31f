// SPDX-License-Identifier: Apache-2.0
// Functions of elements that are formulas of others.
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

// The normal distribution's: (1 + erf(x / sqrt 2)) / 2.
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

// x log1p(y), 0 where x is 0 and y no NaN.
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

// To so many digits behind the point, or before it.
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
    COMPOSED_ROW(dist, "torch.dist" ATEN("dist.default"), "dist", "input/self|other|p"),
};
// clang-format on

const op_table tare__formulas_ops = OP_TABLE(rows);
