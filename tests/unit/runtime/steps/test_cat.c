// SPDX-License-Identifier: Apache-2.0
// Concatenations: most slices are written in place by the steps that make them, and whoever reads
// the whole or a slice gets the reference's bits. In the plain layout, and of quantized values
// channels last.
#include "support/test.h"

#include "runtime/kernels/isa.h"
#include "support/models.h"
#include "support/plan_checks.h"

// --- the plain layout ---

typedef struct network {
    const char *name, *body;
    size_t steps;    // that join
    size_t in_place; // addends that those need not copy
} network;

static const network networks[] = {
    {"addends of one row",
     "    a = x * 2\n"
     "    b = x - 1\n"
     "    y = torch.cat([a, b], 1)\n"
     "    z = torch.tanh(y)\n"
     "    return z\n",
     0, 0},
    {"an input among them, and one addend twice",
     "    a = torch.exp(x)\n"
     "    y = torch.cat([a, x, a], 1)\n"
     "    z = torch.tanh(y)\n"
     "    return z\n",
     1, 1},
    {"addends that others read, and the result given out",
     "    a = torch.exp(x)\n"
     "    b = a + 1\n"
     "    y = torch.cat([a, b], 1)\n"
     "    c = b * a\n"
     "    return (y, b, c)\n",
     0, 0},
    {"one within another",
     "    a = torch.exp(x)\n"
     "    b = torch.tanh(x)\n"
     "    y = torch.cat([a, b], 1)\n"
     "    c = torch.sigmoid(y)\n"
     "    z = torch.cat([c, y, b], 1)\n"
     "    w = z * 0.5\n"
     "    return w\n",
     1, 1},
    {"views of what is made",
     "    a = torch.exp(x)\n"
     "    f = a.reshape(1, 8, 15)\n"
     "    b = torch.transpose(x, 1, 2)\n"
     "    g = b.reshape(1, 8, 15)\n"
     "    y = torch.cat([f, g], 1)\n"
     "    z = torch.tanh(y)\n"
     "    return (z, a)\n",
     0, 0},
    {"rows of one element that lie apart",
     "    m = x.mean(3, True)\n"
     "    a = torch.exp(m)\n"
     "    b = torch.tanh(a)\n"
     "    y = torch.cat([a, b, a], 3)\n"
     "    z = y * y\n"
     "    return z\n",
     1, 0},
    {"rows that lie apart",
     "    a = torch.exp(x)\n"
     "    b = torch.tanh(x)\n"
     "    y = torch.cat([a, b, a], 3)\n"
     "    z = y * y\n"
     "    return z\n",
     1, 0},
    {"quantized values",
     "    q = torch.quantize_per_tensor(x, 0.01, 110, torch.quint8)\n"
     "    r = torch.nn.functional.relu(q)\n"
     "    y = torch.cat([q, r], 0)\n"
     "    z = y.dequantize()\n"
     "    return z\n",
     0, 0},
    {"quantized values of other parameters",
     "    q = torch.quantize_per_tensor(x, 0.01, 110, torch.quint8)\n"
     "    r = torch.quantize_per_tensor(x, 0.02, 90, torch.quint8)\n"
     "    p = torch.nn.functional.relu(q)\n"
     "    y = torch.ops.quantized.cat([q, r, p], 3, 0.015, 100)\n"
     "    z = y.dequantize()\n"
     "    return z\n",
     1, 0},
    {"a stack of rows",
     "    a = torch.exp(x)\n"
     "    b = torch.tanh(x)\n"
     "    y = torch.stack([a, b], 0)\n"
     "    z = torch.tanh(y)\n"
     "    return z\n",
     0, 0},
    {"a stack of elements",
     "    a = torch.exp(x)\n"
     "    b = torch.tanh(x)\n"
     "    y = torch.stack([a, b, a], -1)\n"
     "    z = torch.tanh(y)\n"
     "    return z\n",
     1, 0},
    {"integers of one pixel",
     "    q = torch.quantize_per_tensor(x, 0.01, 110, torch.quint8)\n"
     "    p = torch.nn.functional.adaptive_avg_pool2d(q, 1)\n"
     "    a = torch.nn.functional.relu(p)\n"
     "    b = torch.nn.functional.max_pool2d(p, 1, 1)\n"
     "    c = torch.clamp(p, 0.1, 0.5)\n"
     "    y = torch.cat([a, b, c], 1)\n"
     "    z = y.dequantize()\n"
     "    return z\n",
     0, 0},
    {"plain integers of one pixel",
     "    q = torch.quantize_per_tensor(x, 0.01, 110, torch.quint8)\n"
     "    p = torch.amax(q, (2, 3), True)\n"
     "    a = torch.nn.functional.relu(p)\n"
     "    b = torch.amin(q, (2, 3), True)\n"
     "    c = torch.clamp(b, 0.1, 0.5)\n"
     "    d = torch.nn.functional.max_pool2d(a, 1, 1)\n"
     "    y = torch.cat([p, a, b, c, d], 1)\n"
     "    z = y.dequantize()\n"
     "    return z\n",
     0, 0},
    {"pixels of channels among them",
     "    b = torch.exp(x)\n"
     "    a = torch.nn.functional.interpolate(x, scale_factor = 1)\n"
     "    y = torch.cat([a, b], 0)\n"
     "    z = torch.tanh(y)\n"
     "    return z\n",
     1, 1},
    {"integers",
     "    a = torch.argmax(x, 1)\n"
     "    b = torch.argmin(x, 1)\n"
     "    y = torch.cat([a, b], 1)\n"
     "    return y\n",
     0, 0},
    {"the result and a addend given out, before steps that look for memory",
     "    a = torch.nn.functional.softmax(x, 3)\n"
     "    b = torch.nn.functional.log_softmax(x, 3)\n"
     "    y = torch.cat([a, b], 1)\n"
     "    c = torch.nn.functional.softmax(y, 3)\n"
     "    d = torch.nn.functional.log_softmax(c, 3)\n"
     "    e = torch.nn.functional.softmax(d, 3)\n"
     "    z = torch.nn.functional.log_softmax(e, 3)\n"
     "    return (z, y, b)\n",
     0, 0},
};

static void check_steps(const network *n, tare_session *s) {
    size_t steps = 0, in_place = 0;
    tare_step step = {.struct_size = sizeof step};
    for (size_t i = 0; tare_session_get_step(s, i, &step); i++) {
        size_t copied = 0, there = 0;
        const bool joins = strcmp(step.op, "cat") == 0 || strcmp(step.op, "stack") == 0 ||
                           strcmp(step.op, "quantized.cat") == 0;
        if (!joins || strcmp(step.kind, "quantized cat") == 0) continue;
        assert_string_equal(step.kind, "cat");
        assert_int_equal(sscanf(step.why, "rows: %zu copied, %zu in place", &copied, &there), 2);
        steps++;
        in_place += there;
    }
    if (steps != n->steps || in_place != n->in_place)
        fail_msg("%s: %zu steps, %zu in place", n->name, steps, in_place);
}

static void check_network(const network *n, const tare_tensor *x) {
    char code[1024];
    (void)snprintf(code, sizeof code, "def forward(self, x):\n%s", n->body);
    tare_model *m = new_model(NULL, new_tree(), code);
    tare_session *reference = session_of(m, true);
    run_outputs expected = outputs_of(reference, &x, 1);
    for (int threads = 1; threads <= 2; threads++) {
        tare_session *s = session_on(m, threads);
        check_same_outputs(s, x, &expected);
        check_steps(n, s);
        tare_session_destroy(s);
    }
    release_outputs(&expected);
    tare_session_destroy(reference);
    tare_model_destroy(m);
}

static void pieces_are_written_where_they_are_wanted(void **state) {
    (void)state;
    tare_tensor *x = NEW_INPUT(1, 6, 4, 5);
    for (size_t i = 0; i < sizeof networks / sizeof *networks; i++) check_network(&networks[i], x);
    tare_tensor_release(x);
}

static void threads_share_what_is_copied(void **state) {
    (void)state;
    tare_tensor *x = NEW_INPUT(1, 24, 100, 50);
    check_network(&networks[1], x);
    check_network(&networks[5], x);
    tare_tensor_release(x);
}

static void every_allocation_may_fail(void **state) {
    char code[1024];
    (void)state;
    (void)snprintf(code, sizeof code, "def forward(self, x):\n%s", networks[3].body);
    tare_tensor *x = NEW_INPUT(1, 6, 4, 5);
    tare_model *m = new_model(NULL, new_tree(), code);
    check_run_without_memory(m, NULL, (const tare_tensor *[]){x}, 1);
    tare_model_destroy(m);
    tare_tensor_release(x);
}

// --- channels last ---

enum { SIDE = 7, INS = 6 };

typedef struct channel_network {
    const char *name;
    const char *code;
    const char *convs[8]; // "name config", all with a name of one letter
    size_t in_place;      // steps that write a slice of something
    size_t copies;        // steps that copy, between quantized values
} channel_network;

static const channel_network channel_networks[] = {
    {"branches",
     "def forward(self, x):\n"
     "    a = self.a(x)\n"
     "    b = self.b(a)\n"
     "    c = self.c(b)\n"
     "    d = self.d(b)\n"
     "    cat = torch.cat([b, c, d], 1)\n"
     "    e = self.e(cat)\n"
     "    return e\n",
     {"a in_channels=6, out_channels=33, kernel_size=1",
      "b in_channels=33, out_channels=33, kernel_size=3, padding=1, groups=33",
      "c in_channels=33, out_channels=70, kernel_size=3, padding=1",
      "d in_channels=33, out_channels=5, kernel_size=1",
      "e in_channels=108, out_channels=12, kernel_size=3, stride=2"},
     3,
     0},
    {"dense block",
     "def forward(self, x):\n"
     "    a = self.a(x)\n"
     "    b = self.b(a)\n"
     "    cat = torch.cat([a, b], 1)\n"
     "    c = self.c(cat)\n"
     "    cat_1 = torch.cat([a, b, c], 1)\n"
     "    d = self.d(cat_1)\n"
     "    cat_2 = torch.cat([a, b, c, d], 1)\n"
     "    e = self.e(cat_2)\n"
     "    return e\n",
     {"a in_channels=6, out_channels=20, kernel_size=1",
      "b in_channels=20, out_channels=9, kernel_size=3, padding=1",
      "c in_channels=29, out_channels=9, kernel_size=3, padding=1",
      "d in_channels=38, out_channels=9, kernel_size=1",
      "e in_channels=47, out_channels=47, kernel_size=3, groups=47"},
     4,
     0},
    {"skip with a pool and a plain neighbour",
     "def forward(self, x):\n"
     "    a = self.a(x)\n"
     "    pool = torch.nn.functional.max_pool2d(a, 3, stride = 1, padding = 1)\n"
     "    b = self.b(pool)\n"
     "    flip = torch.transpose(b, 2, 3)\n"
     "    cat = torch.cat([flip, a], 1)\n"
     "    relu = torch.nn.functional.relu(cat)\n"
     "    c = self.c(relu)\n"
     "    return c\n",
     {"a in_channels=6, out_channels=18, kernel_size=1",
      "b in_channels=18, out_channels=18, kernel_size=1",
      "c in_channels=36, out_channels=4, kernel_size=1"},
     1,
     1},
    {"skip over a smaller image",
     "def forward(self, x):\n"
     "    a = self.a(x)\n"
     "    b = self.b(a)\n"
     "    up = torch.nn.functional.interpolate(b, [7, 7])\n"
     "    cat = torch.cat([up, a], 1)\n"
     "    c = self.c(cat)\n"
     "    wide = torch.nn.functional.interpolate(a, [9, 9])\n"
     "    d = self.d(wide)\n"
     "    return (c, d)\n",
     {"a in_channels=6, out_channels=18, kernel_size=1",
      "b in_channels=18, out_channels=21, kernel_size=3, stride=2, padding=1",
      "c in_channels=39, out_channels=4, kernel_size=1",
      "d in_channels=18, out_channels=4, kernel_size=1"},
     2,
     0},
    {"nested, and a part in two places",
     "def forward(self, x):\n"
     "    a = self.a(x)\n"
     "    b = self.b(x)\n"
     "    inner = torch.cat([a, b], 1)\n"
     "    other = torch.cat([b, a, a], 1)\n"
     "    c = self.c(other)\n"
     "    outer = torch.cat([inner, c], 1)\n"
     "    d = self.d(outer)\n"
     "    e = self.e(inner)\n"
     "    add = d + e\n"
     "    return add\n",
     {"a in_channels=6, out_channels=17, kernel_size=3, padding=1",
      "b in_channels=6, out_channels=3, kernel_size=1",
      "c in_channels=37, out_channels=65, kernel_size=1",
      "d in_channels=85, out_channels=6, kernel_size=1",
      "e in_channels=20, out_channels=6, kernel_size=1"},
     3,
     2},
    {"sums into a part, parts that are results",
     "def forward(self, x):\n"
     "    a = self.a(x)\n"
     "    b = self.b(a)\n"
     "    add = b + a\n"
     "    c = self.c(add)\n"
     "    add_1 = c + add\n"
     "    cat = torch.cat([a, add, add_1], 1)\n"
     "    d = self.d(cat)\n"
     "    return (d, cat, add)\n",
     {"a in_channels=6, out_channels=19, kernel_size=1",
      "b in_channels=19, out_channels=19, kernel_size=3, padding=1",
      "c in_channels=19, out_channels=19, kernel_size=1",
      "d in_channels=57, out_channels=6, kernel_size=1"},
     3,
     0},
    {"shuffled channels",
     "def forward(self, x):\n"
     "    a = self.a(x)\n"
     "    b = self.b(x)\n"
     "    cat = torch.cat([a, b], 1)\n"
     "    view = cat.view(-1, 2, 12, 7, 7)\n"
     "    transpose = torch.transpose(view, 1, 2)\n"
     "    contiguous = transpose.contiguous()\n"
     "    view_1 = contiguous.view(-1, 24, 7, 7)\n"
     "    chunk = view_1.chunk(2, dim = 1)\n"
     "    half = chunk[0]\n"
     "    other = chunk[1]\n"
     "    c = self.c(other)\n"
     "    cat_1 = torch.cat([half, c], 1)\n"
     "    d = self.d(cat_1)\n"
     "    return d\n",
     {"a in_channels=6, out_channels=10, kernel_size=1",
      "b in_channels=6, out_channels=14, kernel_size=1",
      "c in_channels=12, out_channels=20, kernel_size=1",
      "d in_channels=32, out_channels=4, kernel_size=1"},
     4,
     0},
    {"shuffled groups, and views that others read",
     "def forward(self, x):\n"
     "    a = self.a(x)\n"
     "    view = a.view(-1, 3, 8, 7, 7)\n"
     "    transpose = torch.transpose(view, 1, 2)\n"
     "    view_1 = transpose.reshape(-1, 24, 7, 7)\n"
     "    b = self.b(view_1)\n"
     "    view_2 = b.view(-1, 2, 6, 7, 7)\n"
     "    flat = torch.flatten(view_2, 2)\n"
     "    transpose_1 = torch.transpose(view_2, 1, 2)\n"
     "    view_3 = transpose_1.reshape(-1, 12, 7, 7)\n"
     "    c = self.c(view_3)\n"
     "    add = c + b\n"
     "    return (add, flat, transpose_1)\n",
     {"a in_channels=6, out_channels=24, kernel_size=1",
      "b in_channels=24, out_channels=12, kernel_size=1",
      "c in_channels=12, out_channels=12, kernel_size=1"},
     0,
     0},
    {"few channels, and functions of integers",
     "def forward(self, x):\n"
     "    a = self.a(x)\n"
     "    b = self.b(x)\n"
     "    cat = torch.cat([a, b], 1)\n"
     "    sigmoid = torch.sigmoid(cat)\n"
     "    mul = sigmoid * cat\n"
     "    c = self.c(a)\n"
     "    d = self.d(mul)\n"
     "    cat_1 = torch.cat([c, d], 1)\n"
     "    mean = torch.nn.functional.adaptive_avg_pool2d(cat_1, 1)\n"
     "    mean_1 = torch.nn.functional.adaptive_avg_pool2d(cat_1, 1)\n"
     "    cat_2 = torch.cat([mean, mean_1], 1)\n"
     "    flatten = torch.flatten(cat_2, 1)\n"
     "    return flatten\n",
     {"a in_channels=6, out_channels=3, kernel_size=1",
      "b in_channels=6, out_channels=30, kernel_size=1",
      "c in_channels=3, out_channels=16, kernel_size=3",
      "d in_channels=33, out_channels=16, kernel_size=3"},
     6,
     0},
};
enum { CHANNEL_NETWORKS = sizeof channel_networks / sizeof *channel_networks };

static tare_model *quantized(const channel_network *n) {
    module *root = new_tree();
    for (size_t i = 0; i < 8 && n->convs[i] != NULL; i++) {
        const char path[] = {n->convs[i][0], 0};
        put_module(root, NULL, path, "torch.nn.Conv2d", n->convs[i] + 2);
    }
    tare_model *model = new_model(NULL, root, n->code);
    tare_backend_config *backend = builtin_backend("x86");
    tare_qconfig_mapping *mapping = default_mapping("x86");
    tare_model *p = prepared(model, backend, mapping);
    CALIBRATED(p, 3, INS, SIDE, SIDE);
    tare_model *out = lowered(p, backend);
    tare_model_destroy(p);
    tare_model_destroy(model);
    tare_qconfig_mapping_destroy(mapping);
    tare_backend_config_destroy(backend);
    return out;
}

static void check_channels(const channel_network *n, int64_t batch) {
    tare_tensor *x = NEW_INPUT(batch, INS, SIDE, SIDE);
    const tare_tensor *in = x;
    tare_model *m = quantized(n);
    tare_session *reference = session_of(m, true);
    run_outputs expected = outputs_of(reference, &in, 1);
    for (int isa = 0; isa <= (int)tare__isa_detect(); isa++) {
        assert_int_equal(setenv("TARE_ISA", tare__isa_level_name((isa_level)isa), 1), 0);
        tare_session *s = session_on(m, 1 + isa % 3);
        for (int run = 0; run < 2; run++) check_same_outputs(s, x, &expected);
        tare_session_destroy(s);
    }
    assert_int_equal(unsetenv("TARE_ISA"), 0);
    release_outputs(&expected);
    tare_session_destroy(reference);
    tare_tensor_release(x);
    tare_model_destroy(m);
}

static void every_level_gives_the_references_bits(void **state) {
    (void)state;
    for (size_t i = 0; i < CHANNEL_NETWORKS; i++)
        for (int64_t batch = 1; batch <= 3; batch += 2) check_channels(&channel_networks[i], batch);
}

static void check_channel_steps(const channel_network *n) {
    tare_tensor *x = NEW_INPUT(2, INS, SIDE, SIDE);
    const tare_tensor *in = x;
    tare_model *m = quantized(n);
    tare_session *s = session_of(m, false);
    run_outputs y = outputs_of(s, &in, 1);
    const size_t in_place = count_steps(s, NULL, "; in place for ");
    const size_t copies = count_steps(s, "quantized cat", NULL) + count_steps(s, "gather", NULL);
    if (in_place != n->in_place || copies != n->copies)
        fail_msg("%s: %zu parts in place, %zu copies", n->name, in_place, copies);
    release_outputs(&y);
    tare_session_destroy(s);
    tare_tensor_release(x);
    tare_model_destroy(m);
}

static void parts_are_written_where_they_are_wanted(void **state) {
    (void)state;
    for (size_t i = 0; i < CHANNEL_NETWORKS; i++) check_channel_steps(&channel_networks[i]);
}

static void parts_are_no_pieces_of_memory(void **state) {
    (void)state;
    tare_tensor *x = NEW_INPUT(1, INS, SIDE, SIDE);
    const tare_tensor *in = x;
    tare_model *m = quantized(&channel_networks[1]);
    tare_session *s = session_of(m, false);
    run_outputs y = outputs_of(s, &in, 1);
    tare_plan_memory memory = {.struct_size = sizeof memory};
    assert_true(tare_session_get_memory(s, &memory));
    assert_true(memory.block_bytes >= memory.least_bytes);
    tare_plan_place buffer = {.struct_size = sizeof buffer};
    for (size_t i = 0; tare_session_get_place(s, i, &buffer); i++)
        assert_true(buffer.offset + buffer.bytes <= memory.block_bytes && buffer.bytes > 0);
    release_outputs(&y);
    tare_session_destroy(s);
    tare_tensor_release(x);
    tare_model_destroy(m);
}

static void check_failures(const channel_network *n) {
    tare_model *m = quantized(n);
    tare_tensor *x = NEW_INPUT(1, INS, SIDE, SIDE);
    check_run_without_memory(m, NULL, (const tare_tensor *[]){x}, 1);
    tare_tensor_release(x);
    tare_model_destroy(m);
}

static void every_allocation_of_channels_may_fail(void **state) {
    (void)state;
    for (size_t i = 0; i < CHANNEL_NETWORKS; i++)
        if (strstr(channel_networks[i].name, "skip over") != NULL ||
            strstr(channel_networks[i].name, "shuffled") != NULL)
            check_failures(&channel_networks[i]);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pieces_are_written_where_they_are_wanted),
        cmocka_unit_test(threads_share_what_is_copied),
        cmocka_unit_test(every_allocation_may_fail),
        cmocka_unit_test(every_level_gives_the_references_bits),
        cmocka_unit_test(parts_are_written_where_they_are_wanted),
        cmocka_unit_test(parts_are_no_pieces_of_memory),
        cmocka_unit_test(every_allocation_of_channels_may_fail),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
