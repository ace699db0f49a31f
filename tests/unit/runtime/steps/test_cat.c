// SPDX-License-Identifier: Apache-2.0
// Concatenations in the plain layout: pieces that follow each other in memory are written where
// they are wanted, and whoever reads a piece or the whole gets the reference's bits.
#include "support/test.h"

#include "support/models.h"
#include "support/plan_checks.h"

typedef struct network {
    const char *name, *body;
    size_t steps;    // that join
    size_t in_place; // pieces that those need not copy
} network;

static const network networks[] = {
    {"pieces of one row",
     "    a = x * 2\n"
     "    b = x - 1\n"
     "    y = torch.cat([a, b], 1)\n"
     "    z = torch.tanh(y)\n"
     "    return z\n",
     0, 0},
    {"an input among them, and one piece twice",
     "    a = torch.exp(x)\n"
     "    y = torch.cat([a, x, a], 1)\n"
     "    z = torch.tanh(y)\n"
     "    return z\n",
     1, 1},
    {"pieces that others read, and the result given out",
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
    {"codes",
     "    q = torch.quantize_per_tensor(x, 0.01, 110, torch.quint8)\n"
     "    r = torch.nn.functional.relu(q)\n"
     "    y = torch.cat([q, r], 0)\n"
     "    z = y.dequantize()\n"
     "    return z\n",
     0, 0},
    {"codes of one pixel",
     "    q = torch.quantize_per_tensor(x, 0.01, 110, torch.quint8)\n"
     "    p = torch.nn.functional.adaptive_avg_pool2d(q, 1)\n"
     "    a = torch.nn.functional.relu(p)\n"
     "    b = torch.nn.functional.max_pool2d(p, 1, 1)\n"
     "    c = torch.clamp(p, 0.1, 0.5)\n"
     "    y = torch.cat([a, b, c], 1)\n"
     "    z = y.dequantize()\n"
     "    return z\n",
     0, 0},
    {"plain codes of one pixel",
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
    {"the result and a piece given out, before steps that look for memory",
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
        if (strcmp(step.op, "cat") != 0 || strcmp(step.kind, "code cat") == 0) continue;
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

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pieces_are_written_where_they_are_wanted),
        cmocka_unit_test(threads_share_what_is_copied),
        cmocka_unit_test(every_allocation_may_fail),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
