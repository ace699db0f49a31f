// SPDX-License-Identifier: Apache-2.0
// Concatenations of codes: most are written in place by the steps that make their parts, and
// whoever reads the whole or a part gets the reference's bits.
#include "support/test.h"

#include "runtime/kernels/isa.h"
#include "support/models.h"
#include "support/plan_checks.h"

enum { SIDE = 7, INS = 6 };

typedef struct network {
    const char *name;
    const char *code;
    const char *convs[8]; // "name config", all with a name of one letter
    size_t in_place;      // steps that write a part of something
    size_t copies;        // steps that copy, between codes
} network;

static const network networks[] = {
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
    {"few channels, and functions of codes",
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
enum { NETWORKS = sizeof networks / sizeof *networks };

static tare_model *quantized(const network *n) {
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

static void check_network(const network *n, int64_t batch) {
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
    for (size_t i = 0; i < NETWORKS; i++)
        for (int64_t batch = 1; batch <= 3; batch += 2) check_network(&networks[i], batch);
}

static void check_steps(const network *n) {
    tare_tensor *x = NEW_INPUT(2, INS, SIDE, SIDE);
    const tare_tensor *in = x;
    tare_model *m = quantized(n);
    tare_session *s = session_of(m, false);
    run_outputs y = outputs_of(s, &in, 1);
    const size_t in_place = count_steps(s, NULL, "; in place for ");
    const size_t copies = count_steps(s, "code cat", NULL) + count_steps(s, "gather", NULL);
    if (in_place != n->in_place || copies != n->copies)
        fail_msg("%s: %zu parts in place, %zu copies", n->name, in_place, copies);
    release_outputs(&y);
    tare_session_destroy(s);
    tare_tensor_release(x);
    tare_model_destroy(m);
}

static void parts_are_written_where_they_are_wanted(void **state) {
    (void)state;
    for (size_t i = 0; i < NETWORKS; i++) check_steps(&networks[i]);
}

static void parts_are_no_pieces_of_memory(void **state) {
    (void)state;
    tare_tensor *x = NEW_INPUT(1, INS, SIDE, SIDE);
    const tare_tensor *in = x;
    tare_model *m = quantized(&networks[1]);
    tare_session *s = session_of(m, false);
    run_outputs y = outputs_of(s, &in, 1);
    tare_plan_memory memory = {.struct_size = sizeof memory};
    assert_true(tare_session_get_memory(s, &memory));
    assert_true(memory.block_bytes >= memory.least_bytes);
    tare_plan_place place = {.struct_size = sizeof place};
    for (size_t i = 0; tare_session_get_place(s, i, &place); i++)
        assert_true(place.offset + place.bytes <= memory.block_bytes && place.bytes > 0);
    release_outputs(&y);
    tare_session_destroy(s);
    tare_tensor_release(x);
    tare_model_destroy(m);
}

static void check_failures(const network *n) {
    tare_model *m = quantized(n);
    tare_tensor *x = NEW_INPUT(1, INS, SIDE, SIDE);
    check_run_without_memory(m, NULL, (const tare_tensor *[]){x}, 1);
    tare_tensor_release(x);
    tare_model_destroy(m);
}

static void every_allocation_may_fail(void **state) {
    (void)state;
    for (size_t i = 0; i < NETWORKS; i++)
        if (strstr(networks[i].name, "skip over") != NULL ||
            strstr(networks[i].name, "shuffled") != NULL)
            check_failures(&networks[i]);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_level_gives_the_references_bits),
        cmocka_unit_test(parts_are_written_where_they_are_wanted),
        cmocka_unit_test(parts_are_no_pieces_of_memory),
        cmocka_unit_test(every_allocation_may_fail),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
