// SPDX-License-Identifier: Apache-2.0
// Elementwise operators read the quantized values that their floats are made of: the bits are the
// references', in either layout, and floats that somebody else wants are there.
#include "support/test.h"

#include "support/models.h"
#include "support/plan_checks.h"

#define THEN "\n    "

// What y becomes of floats x and f, and quantized values q, p and r; of these, f, p and r lie
// channels last.
static const struct {
    size_t converted,
        coded; // steps that only dequantize, and those that go by elements of quantized values
    const char *line;
} lines[] = {
    {0, 1, "a = p.dequantize()" THEN "b = f + a" THEN "y = torch.relu(b)"},
    {0, 1, "a = p.dequantize()" THEN "b = a - f" THEN "y = torch.relu(b)"},
    {0, 1, "a = q.dequantize()" THEN "b = x - a" THEN "y = b * 1.5"},
    {0, 1, "a = r.dequantize()" THEN "b = p.dequantize()" THEN "y = a * b"},
    {0, 1, "a = q.dequantize()" THEN "b = r.dequantize()" THEN "y = a - b"},
    {0, 1, "a = p.dequantize()" THEN "b = f + 1" THEN "c = torch.abs(b)" THEN "y = c - a"},
    {0, 1, "a = r.dequantize()" THEN "b = torch.neg(a)" THEN "y = b * 0.3"},
    {0, 1, "a = p.dequantize()" THEN "y = a * a"},
    {0, 1, "a = p.dequantize()" THEN "y = f - a"},
    {0, 1, "a = q.dequantize()" THEN "m = torch.lt(f, 0.25)" THEN "y = torch.where(m, a, f)"},
    {0, 1,
     "a = q.dequantize()" THEN "b = torch.amax(f, 1, True)" THEN "m = torch.lt(b, 0.25)" THEN
     "y = torch.where(m, a, x)"}, // m is broadcast
    {0, 1,
     "a = r.dequantize()" THEN "b = torch.amax(f, 3, True)" THEN "m = torch.lt(b, 0.25)" THEN
     "y = torch.where(m, f, a)"},
    {1, 1,
     "a = p.dequantize()" THEN "b = a + f" THEN "c = torch.amax(b, 1, True)" THEN
     "d = torch.quantize_per_tensor(c, 0.02, 7, torch.quint8)" THEN "e = d.dequantize()" THEN
     "y = e * f"}, // e is broadcast
    {1, 0, "a = p.dequantize()" THEN "b = a + f" THEN "y = b * a"},
    {1, 0, "a = p.dequantize()" THEN "y = torch.softmax(a, 1)"},
    // Nobody writes over the quantized values before they are read.
    {1, 1,
     "a = p.dequantize()" THEN "s = torch.ops.quantized.add(p, p, 0.02, 100)" THEN
     "t = torch.nn.functional.max_pool2d(s, 3, 1, 1)" THEN "i = t.dequantize()" THEN
     "v = torch.amax(i, 1, True)" THEN "b = f + v" THEN "y = b - a"},
    // Nor if these are transposed or viewed first, and not made yet either.
    {1, 1,
     "t = q.transpose(1, 2)" THEN "a = t.dequantize()" THEN
     "s = torch.ops.quantized.add(q, q, 0.02, 100)" THEN "i = s.dequantize()" THEN
     "v = torch.amax(i, [0, 1, 2, 3], True)" THEN "b = torch.abs(a)" THEN "y = b + v"},
    {1, 1,
     "t = p.view(-1, 2, 5, 1)" THEN "a = t.dequantize()" THEN
     "s = torch.ops.quantized.add(p, p, 0.02, 100)" THEN "i = s.dequantize()" THEN
     "v = torch.amax(i, [0, 1, 2, 3], True)" THEN "y = a + v"},
    {1, 1,
     "t = p.view(-1, 2, 5, 1)" THEN "w = t.transpose(1, 2)" THEN
     "s = torch.ops.quantized.add(p, p, 0.02, 100)" THEN "i = s.dequantize()" THEN
     "v = torch.amax(i, [0, 1, 2, 3], True)" THEN "a = w.dequantize()" THEN "y = a + v"},
    // Quantized values that lie among others.
    {2, 0,
     "a = p.dequantize()" THEN "c = torch.cat([p, p], 1)" THEN "b = f + a" THEN
     "d = c.dequantize()" THEN "e = torch.amax(d, 1, True)" THEN "y = b - e"},
};

static tare_model *model_of(size_t i) {
    char code[1024];
    (void)snprintf(code, sizeof code,
                   "def forward(self, x):\n"
                   "    u = torch.nn.functional.interpolate(x, scale_factor = 2)\n"
                   "    f = torch.nn.functional.max_pool2d(u, 2)\n"
                   "    q = torch.quantize_per_tensor(x, 0.01, 110, torch.quint8)\n"
                   "    p = torch.quantize_per_tensor(f, 0.01, 110, torch.quint8)\n"
                   "    r = torch.quantize_per_tensor(f, 0.02, -5, torch.qint8)\n"
                   "    %s\n"
                   "    return y\n",
                   lines[i].line);
    return new_model(NULL, new_tree(), code);
}

static void check_steps(const tare_session *s, size_t i) {
    const size_t converted = count_steps(s, "quantized elements", "integers to floats");
    const size_t coded = count_steps(s, "elements", "dequantized on the way");
    if (converted != lines[i].converted || coded != lines[i].coded)
        fail_msg("%s: %zu and %zu", lines[i].line, converted, coded);
}

static void check(size_t i, const tare_tensor *x) {
    tare_model *model = model_of(i);
    check_plans(model, x, check_steps, i);
    tare_model_destroy(model);
}

static void integers_become_floats_where_they_are_read(void **state) {
    (void)state;
    tare_tensor *x = NEW_INPUT(2, 5, 6, 7), *large = NEW_INPUT(1, 19, 50, 40);
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
        check(i, x);
        check(i, large);
    }
    tare_tensor_release(large);
    tare_tensor_release(x);
}

// A number may stand in front; the other argument is quantized.
static void numbers_stand_on_either_side(void **state) {
    (void)state;
    static const char *const calls[] = {"mul(0.5, p)", "mul(p, 0.5)", "add(-0.25, p)",
                                        "mul_relu(-2, p)", "add(p, 3)"};
    tare_tensor *x = NEW_INPUT(2, 3, 7, 5);
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) {
        char code[512];
        (void)snprintf(code, sizeof code,
                       "def forward(self, x):\n"
                       "    p = torch.quantize_per_tensor(x, 0.01, 100, torch.quint8)\n"
                       "    a = torch.ops.quantized.%s\n    y = a.dequantize()\n    return y\n",
                       calls[i]);
        tare_model *model = new_model(NULL, new_tree(), code);
        tare_session *planned = session_of(model, false), *reference = session_of(model, true);
        const tare_tensor *const in[] = {x};
        run_outputs found = outputs_of(planned, in, 1), wanted = outputs_of(reference, in, 1);
        check_same_tensor(found.at[0], wanted.at[0]);
        if (count_steps(planned, "call", NULL) > 0) fail_msg("%s: by its reference", calls[i]);
        release_outputs(&found);
        release_outputs(&wanted);
        tare_session_destroy(planned);
        tare_session_destroy(reference);
        tare_model_destroy(model);
    }
    tare_tensor_release(x);
}

static void check_table(const tare_session *s, size_t which) {
    assert_int_equal(count_steps(s, "quantized elements", "a table"), 1);
    assert_int_equal(count_steps(s, "quantized elements", "broadcast"), 0);
    assert_int_equal(count_steps(s, "reorder", NULL), which % 2 > 0 ? 2 : 0); // for the pool
}

// What is combined with a tensor of one number is a function of one value, in either layout.
static void tensors_of_a_number_become_tables(void **state) {
    (void)state;
    static const char *const calls[] = {"mul(p, n, 0.02, 90)", "mul(n, p, 0.02, 90)",
                                        "add(n, p, 0.03, 100)", "add_relu(p, n, 0.02, 10)"};
    static const char *const shapes[] = {"[1]", "[1, 1, 1, 1]", "[]"};
    tare_tensor *x = NEW_INPUT(2, 3, 7, 5);
    for (size_t i = 0; i < 2 * 3 * sizeof calls / sizeof *calls; i++) {
        char code[640];
        const char *made = i % 2 > 0 ? "torch.nn.functional.max_pool2d(x, 2)" : "torch.abs(x)";
        (void)snprintf(code, sizeof code,
                       "def forward(self, x):\n"
                       "    f = %s\n"
                       "    p = torch.quantize_per_tensor(f, 0.01, 100, torch.quint8)\n"
                       "    m = torch.full(%s, -0.3)\n"
                       "    n = torch.quantize_per_tensor(m, 0.003, 110, torch.quint8)\n"
                       "    a = torch.ops.quantized.%s\n    y = a.dequantize()\n    return y\n",
                       made, shapes[i / 2 % 3], calls[i / 6]);
        tare_model *model = new_model(NULL, new_tree(), code);
        check_plans(model, x, check_table, i);
        tare_model_destroy(model);
    }
    tare_tensor_release(x);
}

static void check_channels(const tare_session *s, size_t which) {
    (void)which;
    assert_int_equal(count_steps(s, "quantized elements", "one of them per channel"), 2);
}

// As in a frozen batch norm.
static void a_row_of_channels_serves_all_images(void **state) {
    (void)state;
    tare_model *model = new_model(NULL, new_tree(),
                                  "def forward(self, x):\n"
                                  "    a = torch.amax(x, (2, 3), True)\n"
                                  "    b = torch.amax(a, 0, True)\n"
                                  "    q = torch.quantize_per_tensor(x, 0.01, 110, torch.quint8)\n"
                                  "    r = torch.quantize_per_tensor(b, 0.01, 120, torch.quint8)\n"
                                  "    s = torch.ops.quantized.mul(q, r, 0.02, 100)\n"
                                  "    t = torch.ops.quantized.add(s, r, 0.02, 90)\n"
                                  "    y = t.dequantize()\n"
                                  "    return y\n");
    for (int64_t size = 1; size <= 24; size += size < 3 ? 1 : 7) {
        tare_tensor *x = NEW_INPUT(3, size % 2 > 0 ? 19 : 70, size, size);
        check_plans(model, x, check_channels, 0);
        tare_tensor_release(x);
    }
    tare_model_destroy(model);
}

static void every_allocation_may_fail(void **state) {
    (void)state;
    tare_tensor *x = NEW_INPUT(1, 2, 3, 2);
    tare_model *model = model_of(3);
    check_run_without_memory(model, NULL, (const tare_tensor *[]){x}, 1);
    tare_model_destroy(model);
    tare_tensor_release(x);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(integers_become_floats_where_they_are_read),
        cmocka_unit_test(numbers_stand_on_either_side),
        cmocka_unit_test(tensors_of_a_number_become_tables),
        cmocka_unit_test(a_row_of_channels_serves_all_images),
        cmocka_unit_test(every_allocation_may_fail),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
