// SPDX-License-Identifier: Apache-2.0
// Elementary functions: how far they are from the exact ones, and what they give at the ends.
// With a function's name as argument, that one is looked at for every float (some minutes).
#include "support/test.h"

#include <math.h>

#include "core/math/elements.h"
#include "core/math/f32.h"
#include "core/math/f64.h"
#include "core/math/special.h"

static const char *only;

// In ulp of the exact result; that of a denormal one is the smallest float.
static double error_of(float found, long double exact) {
    int exponent;
    if (isnan((double)exact)) return isnan(found) ? 0 : (double)INFINITY;
    if (isinf((float)exact) || isinf(found)) {
        const bool is_near = isinf(found) ? fabsl(exact) >= 0x1.fffffep127L : false;
        return is_near && (found < 0) == (exact < 0) ? 0 : (double)INFINITY;
    }
    frexpl(exact, &exponent);
    const int unit = exponent - 24 < -149 ? -149 : exponent - 24;
    return (double)(fabsl((long double)found - exact) / ldexpl(1, unit));
}

typedef struct bounded_function {
    const char *name;
    float (*f)(float x);
    long double (*exact)(long double x);
    double most;          // ulp
    double low, high;     // of the arguments
    long double absolute; // or so far off
} bounded_function;

static long double exact_sigmoid(long double x) {
    return 1 / (1 + expl(-x));
}
static long double exact_silu(long double x) {
    return x / (1 + expl(-x));
}
static long double exact_gelu(long double x) {
    return isinf(x) && x > 0 ? x : x / 2 * erfcl(-x * 0.707106781186547524400844362104849039L);
}
static long double exact_gelu_tanh(long double x) {
    const long double u = 0.797884560802865355879892119868763737L * (x + 0.044715L * x * x * x);
    return x / (1 + expl(-2 * u));
}
static long double exact_mish(long double x) {
    return x * tanhl(log1pl(expl(x)));
}

#define OF_ELEMENT(name, kind)                                                                     \
    static float name(float x) {                                                                   \
        float y;                                                                                   \
        f32_elements__scalar[kind](&x, &y, 1, NULL);                                               \
        return y;                                                                                  \
    }
OF_ELEMENT(silu, ELEMENT_SILU)
OF_ELEMENT(gelu, ELEMENT_GELU)
OF_ELEMENT(gelu_tanh, ELEMENT_GELU_TANH)
OF_ELEMENT(mish, ELEMENT_MISH)

#define ALL -(double)INFINITY, (double)INFINITY
static const bounded_function functions[] = {
    {"exp", tare__expf, expl, 1.04, ALL, 0},
    {"expm1", tare__expm1f, expm1l, 1.6, ALL, 0},
    {"tanh", tare__tanhf, tanhl, 2.6, ALL, 0},
    {"erf", tare__erff, erfl, 1.4, ALL, 0},
    {"sigmoid", tare__sigmoidf, exact_sigmoid, 2.5, ALL, 0x1p-125L},
    {"silu", silu, exact_silu, 2.5, -1e3, 3.4e38, 0x1p-118L},
    {"gelu", gelu, exact_gelu, 3, -1e30, (double)INFINITY, 0x1p-24L},
    {"gelu_tanh", gelu_tanh, exact_gelu_tanh, 3, -1e30, 3.4e38, 0x1p-24L},
    {"mish", mish, exact_mish, 4, -80, 3.4e38, 0},
    {"log", tare__logf, logl, 0.501, ALL, 0},
    {"log1p", tare__log1pf, log1pl, 0.501, ALL, 0},
    {"log2", tare__log2f, log2l, 0.501, ALL, 0},
    {"exp2", tare__exp2f, exp2l, 0.501, ALL, 0},
    {"sin", tare__sinf, sinl, 0.501, -1e18, 1e18, 0},
    {"cos", tare__cosf, cosl, 0.501, -1e18, 1e18, 0},
    {"tan", tare__tanf, tanl, 0.501, -1e18, 1e18, 0},
    {"asin", tare__asinf, asinl, 0.501, ALL, 0},
    {"acos", tare__acosf, acosl, 0.501, ALL, 0},
    {"atan", tare__atanf, atanl, 0.501, ALL, 0},
    {"sinh", tare__sinhf, sinhl, 0.501, ALL, 0},
    {"cosh", tare__coshf, coshl, 0.501, ALL, 0},
    {"asinh", tare__asinhf, asinhl, 0.501, ALL, 0},
    {"acosh", tare__acoshf, acoshl, 0.501, ALL, 0},
    {"atanh", tare__atanhf, atanhl, 0.501, ALL, 0},
};

static void errors_stay_below_the_stated_ones(void **state) {
    (void)state;
    for (size_t k = 0; k < sizeof functions / sizeof *functions; k++) {
        const bounded_function *f = &functions[k];
        const uint64_t step = only != NULL ? 1 : 65537;
        double worst = 0;
        float at = 0;
        if (only != NULL && strcmp(only, f->name) != 0) continue;
        for (uint64_t i = 0; i <= UINT32_MAX; i += step) {
            const uint32_t bits = (uint32_t)i;
            float x;
            memcpy(&x, &bits, sizeof x);
            if (isnan(x) || (double)x < f->low || (double)x > f->high) continue;
            const float y = f->f(x);
            const long double exact = f->exact((long double)x);
            const double error = error_of(y, exact);
            if (fabsl((long double)y - exact) <= f->absolute || error <= worst) continue;
            worst = error;
            at = x;
        }
        if (only != NULL || worst > f->most)
            print_message("%s: %.4f ulp at %a\n", f->name, worst, (double)at);
        assert_true(worst <= f->most);
    }
}

static void not_a_number_stays_one(void **state) {
    (void)state;
    for (size_t k = 0; k < sizeof functions / sizeof *functions; k++)
        assert_true(isnan(functions[k].f(NAN)));
    assert_true(isnan(tare__exp((double)NAN)) && isnan(tare__pow((double)NAN, 2)));
}

static void signs_of_zero_are_kept(void **state) {
    (void)state;
    static const bounded_function *const odd[] = {&functions[2], &functions[3], &functions[6]};
    for (size_t k = 0; k < sizeof odd / sizeof *odd; k++) {
        assert_true(odd[k]->f(-0.0F) == 0 && signbit(odd[k]->f(-0.0F)));
        assert_false(signbit(odd[k]->f(0.0F)));
    }
}

static double trigamma(double x) {
    return tare__polygamma(1, x);
}
static double pentagamma(double x) {
    return tare__polygamma(3, x);
}

// Exact values to 17 digits, found with 40.
static void special_functions_are_near_the_exact_ones(void **state) {
    (void)state;
    // clang-format off
    static const struct {
        double (*f)(double x);
        double x, exact;
    } rows[] = {
        {tare__lgamma, 1e-30, 69.07755278982137},
        {tare__lgamma, 0.25, 1.2880225246980775},
        {tare__lgamma, 0.75, 0.20328095143129537},
        {tare__lgamma, 1.0000009536743164, -5.5047500661488668e-7},
        {tare__lgamma, 1.25, -0.098271836421813161},
        {tare__lgamma, 1.99, -0.0041955290887916687},
        {tare__lgamma, 2.25, 0.12487171489239659},
        {tare__lgamma, 3.7, 1.4280723266653881},
        {tare__lgamma, 7.9, 8.3242658680088096},
        {tare__lgamma, 8.5, 9.5492672573009977},
        {tare__lgamma, 100.0, 359.1342053695754},
        {tare__lgamma, 10000000000.0, 220258509288.81058},
        {tare__lgamma, 1e+38, 8.6498233533773734e+39},
        {tare__lgamma, -1e-05, 11.512931237209124},
        {tare__lgamma, -0.3, 1.4648400508576025},
        {tare__lgamma, -0.75, 1.5757045971498584},
        {tare__lgamma, -1.5, 0.86004701537648101},
        {tare__lgamma, -5.25, -3.7283005108608565},
        {tare__lgamma, -100.125, -362.21044642584551},
        {tare__digamma, 1e-20, -1.0000000000000001e+20},
        {tare__digamma, 0.25, -4.2274535333762654},
        {tare__digamma, 1.0, -0.57721566490153286},
        {tare__digamma, 2.0, 0.42278433509846714},
        {tare__digamma, 5.5, 1.6110931485817511},
        {tare__digamma, 9.99, 2.2507003728312011},
        {tare__digamma, 10.5, 2.3030010342976864},
        {tare__digamma, 100000.0, 11.512920464961895},
        {tare__digamma, 1e+30, 69.077552789821371},
        {tare__digamma, -1e-08, 99999999.422784317},
        {tare__digamma, -0.25, 2.9141391202135278},
        {tare__digamma, -0.75, -2.8941202000429321},
        {tare__digamma, -3.3125, 3.4402635107530885},
        {tare__digamma, -100.125, 12.195880442483346},
        {tare__erfinv, 1e-30, 8.8622692545275809e-31},
        {tare__erfinv, 1e-05, 8.8622692547595945e-6},
        {tare__erfinv, -0.25, -0.2253120550121781},
        {tare__erfinv, 0.5, 0.47693627620446987},
        {tare__erfinv, 0.84, 0.99353562834730419},
        {tare__erfinv, 0.86, 1.0435418436397588},
        {tare__erfinv, -0.99, -1.8213863677184495},
        {tare__erfinv, 0.999999, 3.4589107372754988},
        {tare__erfinv, 0.9999999403953552, 3.8325068569007109},
        {tare__erfinv, -0.9999999999999716, -5.3777677815412793},
        {tare__i0, 1e-10, 1.0},
        {tare__i0, 0.5, 1.0634833707413235},
        {tare__i0, -1.0, 1.2660658777520083},
        {tare__i0, 3.75, 9.1189458608445667},
        {tare__i0, 10.0, 2815.7166284662545},
        {tare__i0, 50.0, 2.9325537838493363e+20},
        {tare__i0, 91.5, 2.2842371529774558e+38},
        {tare__i0, -700.0, 1.5295933476718737e+302},
        {tare__i1, 1e-10, 5.0000000000000002e-11},
        {tare__i1, 0.5, 0.25789430539089632},
        {tare__i1, -1.0, -0.56515910399248503},
        {tare__i1, 3.75, 7.7800152298244159},
        {tare__i1, 50.0, 2.9030785901035568e+20},
        {tare__i1, -700.0, -1.5285003902339007e+302},
        {tare__i0e, 0.5, 0.64503527044915007},
        {tare__i0e, -29.5, 0.07376861727872859},
        {tare__i0e, 30.5, 0.072538784070779077},
        {tare__i0e, 10000.0, 0.0039894726746047321},
        {tare__i1e, 0.5, 0.1564208031848717},
        {tare__i1e, -29.5, -0.072507326157183725},
        {tare__i1e, 30.5, 0.071339539285262004},
        {tare__i1e, -10000.0, -0.0039892731959836623},
        {tare__ndtri, 1e-05, -4.2648907939228246},
        {tare__ndtri, 0.25, -0.67448975019608174},
        {tare__ndtri, 0.5000001, 2.5066282733116483e-7},
        {tare__ndtri, 0.93, 1.4757910281791711},
        {tare__ndtri, 0.999, 3.0902323061678133},
        {trigamma, 0.25, 17.197329154507111},
        {trigamma, 3.5, 0.33035775610023486},
        {trigamma, 9.75, 0.10800324333663185},
        {trigamma, 100000.0, 1.0000050000166667e-5},
        {trigamma, -0.25, 18.541879647671606},
        {trigamma, -7.3, 14.951383181433921},
        {pentagamma, 0.25, 1538.7821440091884},
        {pentagamma, 3.5, 0.070305848817252051},
        {pentagamma, 30.0, 7.7860036647361291e-5},
        {pentagamma, -2.6, 283.53838059773574},
    };
    // clang-format on
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const double found = rows[i].f(rows[i].x);
        if (!(fabs(found - rows[i].exact) <= 1e-12 * fabs(rows[i].exact)))
            fail_msg("row %zu: expected %.17g, found %.17g", i, rows[i].exact, found);
    }
}

static void special_functions_end_as_torchs(void **state) {
    (void)state;
    const double infinite = (double)INFINITY;
    assert_true(tare__lgamma(0) == infinite && tare__lgamma(-3) == infinite);
    assert_true(tare__lgamma(infinite) == infinite && tare__lgamma(-infinite) == infinite);
    assert_true(tare__digamma(0) == -infinite && tare__digamma(-0.0) == infinite);
    assert_true(isnan(tare__digamma(-2)) && tare__digamma(infinite) == infinite);
    assert_true(tare__erfinv(1) == infinite && tare__erfinv(-1) == -infinite);
    assert_true(isnan(tare__erfinv(1.5)) && tare__erfinv(0) == 0);
    assert_true(tare__i0(-infinite) == infinite && tare__i0(0) == 1);
    assert_true(tare__i1(-infinite) == -infinite && tare__i1e(-infinite) == 0);
    assert_true(tare__ndtri(0) == -infinite && tare__ndtri(1) == infinite);
    assert_true(trigamma(-3) == infinite && tare__polygamma(2, 0) == -infinite);
    assert_true(trigamma(infinite) == 0 && isnan(trigamma(-1e7 - 0.5)));
    double (*const all[])(double) = {tare__lgamma, tare__digamma, tare__erfinv, tare__i0,
                                     tare__i1,     tare__i0e,     tare__i1e,    tare__ndtri,
                                     pentagamma,   trigamma};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) assert_true(isnan(all[i]((double)NAN)));
}

// Of every magnitude: the turns of the largest ones have been left out right.
static void large_angles_are_reduced(void **state) {
    (void)state;
    // Found with a thousand bits of pi.
    // clang-format off
    static const struct {
        float x, sine, cosine;
    } rows[] = {
        {0x1.2265b2p-20F, 0x1.2265b2p-20F, 0x1p+0F},
        {0x1.d8f16ap-14F, 0x1.d8f16ap-14F, 0x1p+0F},
        {0x1.c386bcp-8F, 0x1.c385d2p-8F, 0x1.fffce4p-1F},
        {0x1.414c34p-2F, 0x1.3c0d36p-2F, 0x1.e700cp-1F},
        {0x1.7ed4d6p+4F, -0x1.de44acp-1F, 0x1.6d8848p-2F},
        {0x1.7311d8p+10F, 0x1.fc1624p-1F, 0x1.f9775cp-4F},
        {0x1.a6ceccp+16F, -0x1.fee5f2p-1F, -0x1.0c916ep-4F},
        {0x1.c9e9c6p+22F, -0x1.db0c4ap-2F, 0x1.c59218p-1F},
        {0x1.18072ep+28F, 0x1.80e0d6p-2F, -0x1.da7576p-1F},
        {0x1.0741c8p+34F, -0x1.6adedap-1F, -0x1.693476p-1F},
        {0x1.d5f4b4p+40F, -0x1.fd2df4p-1F, -0x1.ad57eep-4F},
        {0x1.6ec9d2p+46F, 0x1.eae2c4p-2F, 0x1.c155b8p-1F},
        {0x1.c324cap+52F, -0x1.4dfc3cp-2F, 0x1.e40062p-1F},
        {0x1.008a06p+58F, -0x1.e61dd8p-1F, -0x1.4176a4p-2F},
        {0x1.7204e6p+64F, 0x1.1de06p-2F, 0x1.eba49p-1F},
        {0x1.b8b6d8p+70F, 0x1.64528ep-2F, -0x1.e000bp-1F},
        {0x1.3a902ap+76F, 0x1.98f49cp-4F, -0x1.fd711p-1F},
        {0x1.f1fd42p+82F, 0x1.22d87ep-1F, -0x1.a55ec2p-1F},
        {0x1.e6c3f4p+88F, -0x1.ffa7a2p-1F, 0x1.2cc488p-5F},
        {0x1.07d4bep+94F, 0x1.b7244p-1F, 0x1.073f14p-1F},
        {0x1.06839ep+100F, 0x1.2d2c84p-1F, -0x1.9e0d12p-1F},
        {0x1.8a9a02p+106F, 0x1.65767ep-1F, -0x1.6e8ebp-1F},
        {0x1.f06c14p+112F, -0x1.b0bc92p-2F, -0x1.d0090ap-1F},
        {0x1.61969ap+118F, 0x1.a227cp-4F, 0x1.fd533p-1F},
        {0x1.37730ep+124F, 0x1.f4151p-1F, 0x1.b74db2p-3F},
        {0x1.6c0fd4p+127F, -0x1.6c6358p-1F, 0x1.67ac88p-1F},
        {0x1.f37c8ap+95F, 0x1p+0F, -0x1.bbdd52p-30F},
        {0x1.fffffep+127F, -0x1.0b3366p-1F, 0x1.b4bf2cp-1F},
        {0x1p+25F, -0x1.f3fa14p-1F, -0x1.b9381ap-3F},
        {0x1.921fb6p+0F, 0x1p+0F, -0x1.777a5cp-25F},
        {0x1.921fb6p+1F, -0x1.777a5cp-24F, -0x1p+0F},
        {0x1.86ap+16F, 0x1.24daaap-5F, -0x1.ffac38p-1F},
    };
    // clang-format on
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        assert_true(tare__sinf(rows[i].x) == rows[i].sine);
        assert_true(tare__cosf(rows[i].x) == rows[i].cosine);
        assert_true(tare__sinf(-rows[i].x) == -rows[i].sine);
        assert_true(tare__cosf(-rows[i].x) == rows[i].cosine);
    }
}

static void check_pow(double x, double y) {
    const double found = tare__pow(x, y), expected = pow(x, y);
    if (isnan(expected)) {
        assert_true(isnan(found));
        return;
    }
    if (isinf(expected) || fabs(expected) < 0x1p-1000) {
        assert_true(found == expected || fabs(found - expected) < 0x1p-999);
        return;
    }
    assert_true(fabs(found - expected) <= 32 * 0x1p-53 * fabs(expected));
    assert_true((signbit(found) != 0) == (signbit(expected) != 0));
}

static void powers_are_right(void **state) {
    (void)state;
    static const double ends[] = {0,
                                  -0.0,
                                  1,
                                  -1,
                                  2,
                                  -2,
                                  0.5,
                                  -0.5,
                                  3,
                                  -3,
                                  1e10,
                                  1e300,
                                  -1e300,
                                  1e-300,
                                  0x1p-1070,
                                  2.5,
                                  (double)INFINITY,
                                  -(double)INFINITY,
                                  (double)NAN,
                                  1 + 0x1p-40,
                                  1 - 0x1p-40,
                                  0x1p60};
    enum { ENDS = sizeof ends / sizeof *ends };
    for (size_t i = 0; i < ENDS; i++)
        for (size_t k = 0; k < ENDS; k++) check_pow(ends[i], ends[k]);
    uint64_t seed = 1;
    for (int i = 0; i < 100000; i++) {
        seed = seed * 6364136223846793005U + 1442695040888963407U;
        const double x = exp(((double)(seed >> 33) / 0x1p30 - 1) * 20);
        const double y = ((double)(seed >> 11 & 0xffff) / 0x1p15 - 1) * 30;
        check_pow(x, y);
        check_pow(x, rint(y));
        check_pow(-x, rint(y));
    }
    assert_true(tare__pow(3, 5) == 243 && tare__pow(10, 9) == 1e9 && tare__pow(2, -3) == 0.125);
}

static void doubles_are_near(void **state) {
    (void)state;
    uint64_t seed = 3;
    for (int i = 0; i < 100000; i++) {
        seed = seed * 6364136223846793005U + 1442695040888963407U;
        const double x = ((double)(seed >> 11) / 0x1p52 - 1) * (i % 2 != 0 ? 700 : 1);
        const double size = fabs(x) + 1e-300;
        assert_true(fabs(tare__exp(x) - exp(x)) <= 4 * 0x1p-53 * exp(x));
        assert_true(fabs(tare__log(size) - log(size)) <= 4 * 0x1p-53 * fabs(log(size)));
        assert_true(fabs(tare__log2(size) - log2(size)) <= 4 * 0x1p-53 * fabs(log2(size)));
        assert_true(fabs(tare__log1p(size) - log1p(size)) <= 4 * 0x1p-53 * log1p(size));
        const double turns = x * 0x1.921fb54442d18p+2; // 2 pi x, rounded
        if (fabs(x) <= 1) assert_true(fabs(tare__cos_of_turns(x) - cos(turns)) <= 0x1p-50);
        assert_true(fabs(tare__atan(x) - atan(x)) <= 8 * 0x1p-53 * fabs(atan(x)));
    }
    assert_true(tare__cos_of_turns(0.25) == 0 && tare__cos_of_turns(-7.5) == -1);
    assert_true(tare__exp(0) == 1 && tare__log(1) == 0 && tare__log2(1024) == 10);
    assert_true(tare__exp(-1000) == 0 && isinf(tare__exp(1000)) && isinf(tare__log(0)));
}

int main(int count, char **arguments) {
    if (count > 1) only = arguments[1];
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(errors_stay_below_the_stated_ones),
        cmocka_unit_test(not_a_number_stays_one),
        cmocka_unit_test(signs_of_zero_are_kept),
        cmocka_unit_test(special_functions_are_near_the_exact_ones),
        cmocka_unit_test(special_functions_end_as_torchs),
        cmocka_unit_test(large_angles_are_reduced),
        cmocka_unit_test(powers_are_right),
        cmocka_unit_test(doubles_are_near),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
