// SPDX-License-Identifier: Apache-2.0
// Attention of single queries: heads that share keys and values, and a cache of int8 numbers with a
// scale for each row, which is read as it is, give the bits of floats.
#include "support/test.h"

#include <stdio.h>
#include <string.h>

#include "support/models.h"
#include "support/plan_checks.h"

#define MASK                                                                                       \
    "    r = torch.select(s, 1, 0)\n"                                                              \
    "    z = r.transpose(1, 2)\n"                                                                  \
    "    m = torch.lt(z, 0.5)\n"

// also: the second output. If other steps need the floats, attention reads floats.
static tare_model *model_of(bool has_mask, const char *also) {
    char code[1024];
    (void)snprintf(code, sizeof code,
                   "def forward(self, q, k, v, s, t):\n"
                   "    a = k * 100\n"
                   "    keys = a.to(torch.int8)\n"
                   "    b = keys.to(torch.float32)\n"
                   "    scaled_keys = b * s\n"
                   "    c = v * 100\n"
                   "    numbers = c.to(torch.int8)\n"
                   "    d = numbers.to(torch.float32)\n"
                   "    scaled = d * t\n"
                   "%s"
                   "    y = torch.nn.functional.scaled_dot_product_attention(q, scaled_keys, "
                   "scaled%s, enable_gqa = True)\n"
                   "    return (y, %s)\n",
                   has_mask ? MASK : "", has_mask ? ", attn_mask = m" : "", also);
    return new_model(NULL, new_tree(), code);
}

typedef struct cache_form {
    int64_t heads, kept_heads, keys, width, value_width;
    bool has_mask;
} cache_form;

static const cache_form forms[] = {
    {14, 2, 37, 64, 64, false},
    {6, 6, 20, 24, 32, false},
    {8, 2, 130, 16, 16, true},
    {3, 1, 5, 7, 48, false},
};
enum { FORMS = sizeof forms / sizeof *forms, INPUTS = 5 };

static void check_form(const cache_form *f) {
    tare_model *cached = model_of(f->has_mask, "c"), *floats = model_of(f->has_mask, "scaled_keys");
    tare_tensor *inputs[INPUTS] = {
        NEW_INPUT(1, f->heads, 1, f->width), NEW_INPUT(1, f->kept_heads, f->keys, f->width),
        NEW_INPUT(1, f->kept_heads, f->keys, f->value_width),
        NEW_INPUT(1, f->kept_heads, f->keys, 1), NEW_INPUT(1, f->kept_heads, f->keys, 1)};
    tare_session *one = session_on(floats, 1);
    run_outputs expected = outputs_of(one, (const tare_tensor *const *)inputs, INPUTS);
    assert_int_equal(count_steps(one, "attention", "int8"), 0);
    for (int threads = 1; threads <= 3; threads++) {
        tare_session *s = session_on(cached, threads);
        run_outputs y = outputs_of(s, (const tare_tensor *const *)inputs, INPUTS);
#ifdef TARE_HAVE_DNNL
        assert_int_equal(count_steps(s, "attention", "keys and values of int8"), 1);
        assert_int_equal(count_steps(s, "parts", NULL), f->keys == 130 ? 3 : 2);
#endif
        assert_memory_equal(y.at[0]->data, expected.at[0]->data,
                            (size_t)y.at[0]->count * sizeof(float));
        release_outputs(&y);
        tare_session_destroy(s);
    }
    check_run_without_memory(cached, NULL, (const tare_tensor *const *)inputs, INPUTS);
    release_outputs(&expected);
    tare_session_destroy(one);
    for (size_t i = 0; i < INPUTS; i++) tare_tensor_release(inputs[i]);
    tare_model_destroy(cached);
    tare_model_destroy(floats);
}

static void a_cache_of_int8_gives_the_bits_of_floats(void **state) {
    (void)state;
    for (size_t i = 0; i < FORMS; i++) check_form(&forms[i]);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_cache_of_int8_gives_the_bits_of_floats),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
