// SPDX-License-Identifier: Apache-2.0
// Plans give the interpreter's results: over random graphs, shapes that change, and failures.
#include "support/test.h"

#include <math.h>

#include "core/tensor.h"
#include "core/text.h"
#include "ops/float_layers.h"
#include "runtime/plan_build.h"
#include "runtime/session.h"
#include "support/models.h"

#define NN "torch.nn."

// --- comparing ---

static tare_session *session_of(const tare_model *model, bool reference) {
    tare_session *s = NULL;
    const tare_session_options options = {.thread_count = 1, .reference = reference};
    CHECK_OK(tare_session_create(model, &options, &s, NULL));
    return s;
}

static void check_close(const tare_tensor *found, const tare_tensor *expected, const char *what) {
    double greatest = 1e-3;
    assert_int_equal(found->dtype, expected->dtype);
    assert_int_equal(found->ndim, expected->ndim);
    assert_memory_equal(found->shape, expected->shape, (size_t)found->ndim * sizeof(int64_t));
    for (int64_t i = 0; i < expected->count; i++) {
        const double size = fabs(tare__tensor_get(expected, i));
        if (size > greatest) greatest = size;
    }
    for (int64_t i = 0; i < expected->count; i++) {
        const double a = tare__tensor_get(found, i), b = tare__tensor_get(expected, i);
        if (!(fabs(a - b) <= 2e-5 * greatest))
            fail_msg("element %lld: found %.9g, expected %.9g in\n%s", (long long)i, a, b, what);
    }
}

// Every output of both sessions, twice: the second run finds memory that was used before.
static void check_equal_runs(tare_session *planned, tare_session *reference, const tare_tensor *x,
                             const char *what) {
    tare_tensor *found[4], *expected[4];
    size_t count = 0, expected_count = 0;
    tare_error *err = job_error();
    if (tare_session_run(reference, &x, 1, expected, 4, &expected_count, err) != TARE_OK)
        fail_msg("%s in\n%s", tare_error_message(err), what);
    for (int run = 0; run < 2; run++) {
        if (tare_session_run(planned, &x, 1, found, 4, &count, err) != TARE_OK)
            fail_msg("%s in\n%s", tare_error_message(err), what);
        assert_int_equal(count, expected_count);
        for (size_t i = 0; i < count; i++) {
            check_close(found[i], expected[i], what);
            tare_tensor_release(found[i]);
        }
    }
    for (size_t i = 0; i < count; i++) tare_tensor_release(expected[i]);
}

static void check_model(tare_model *model, const tare_tensor *x, const char *what) {
    tare_session *planned = session_of(model, false), *reference = session_of(model, true);
    check_equal_runs(planned, reference, x, what);
    tare_session_destroy(planned);
    tare_session_destroy(reference);
}

// --- random graphs ---

typedef struct generator {
    uint64_t state;
    module *root;
    text code;
    int channels[40], count; // of the values v0, v1, ..; all have the same height and width
    int made;                // modules
} generator;

static unsigned draw(generator *g, unsigned below) {
    g->state = g->state * 6364136223846793005U + 1442695040888963407U;
    return (unsigned)(g->state >> 33) % below;
}

static int any_value(generator *g) { // mostly a late one
    const int back = (int)draw(g, 3);
    return g->count - 1 - (back < g->count ? back : 0);
}

static int like(generator *g, int v) { // of as many channels
    for (int tries = 0; tries < 8; tries++) {
        const int other = (int)draw(g, (unsigned)g->count);
        if (g->channels[other] == g->channels[v]) return other;
    }
    return v;
}

static void begin_line(generator *g, int channels) {
    tare__text_printf(&g->code, "    v%d = ", g->count);
    g->channels[g->count++] = channels;
}

static const char *put(generator *g, const char *class, const char *config) {
    static char name[32];
    (void)snprintf(name, sizeof name, "m%d", g->made++);
    put_module(g->root, NULL, name, class, config);
    return name;
}

static void add_conv(generator *g) {
    static const int sizes[] = {4, 6, 16, 24};
    char config[256];
    const int v = any_value(g), in = g->channels[v], kernel = draw(g, 2) ? 3 : 1;
    const bool depthwise = draw(g, 4) == 0;
    const int out = depthwise ? in : sizes[draw(g, 4)];
    (void)snprintf(config, sizeof config,
                   "in_channels=%d, out_channels=%d, kernel_size=(%d, %d), stride=(1, 1), "
                   "padding=(%d, %d), dilation=(1, 1), groups=%d, bias=%s",
                   in, out, kernel, kernel, kernel / 2, kernel / 2, depthwise ? in : 1,
                   draw(g, 2) ? "True" : "False");
    const char *name = put(g, NN "Conv2d", config);
    begin_line(g, out);
    tare__text_printf(&g->code, "self.%s(v%d)\n", name, v);
    if (draw(g, 2) == 0) return;
    (void)snprintf(config, sizeof config, "num_features=%d", out);
    name = put(g, NN "BatchNorm2d", config);
    begin_line(g, out);
    tare__text_printf(&g->code, "self.%s(v%d)\n", name, g->count - 2);
}

static void add_unary(generator *g) {
    static const char *const calls[] = {
        "torch.nn.functional.relu(%s, inplace = False)",
        "torch.nn.functional.relu6(%s)",
        "torch.nn.functional.hardswish(%s)",
        "torch.nn.functional.silu(%s)",
        "torch.sigmoid(%s)",
        "torch.tanh(%s)",
        "torch._C._nn.gelu(%s)",
        "torch._C._nn.gelu(%s, approximate = 'tanh')",
        "torch.nn.functional.leaky_relu(%s, 0.2)",
        "torch.clamp(%s, -0.5, 0.25)",
        "%s * 0.5",
        "1.5 - %s",
        "%s.abs()",
        "torch.nn.functional.dropout(%s, 0.5, False)",
        "torch.nn.functional.hardsigmoid(%s)",
        "torch.nn.functional.elu(%s)",
        "torch.nn.functional.mish(%s)",
        "%s * %s",
    };
    const char *call = calls[draw(g, sizeof calls / sizeof *calls)];
    const int v = any_value(g);
    char name[16];
    (void)snprintf(name, sizeof name, "v%d", v);
    begin_line(g, g->channels[v]);
    for (const char *at = call; *at != '\0'; at++)
        if (at[0] == '%' && at[1] == 's') {
            tare__text_append(&g->code, name);
            at++;
        } else {
            tare__text_printf(&g->code, "%c", *at);
        }
    tare__text_append(&g->code, "\n");
}

static void add_binary(generator *g) {
    static const char *const calls[] = {"v%d + v%d",           "v%d - v%d",
                                        "v%d * v%d",           "torch.maximum(v%d, v%d)",
                                        "torch.add(v%d, v%d)", "torch.add(v%d, v%d, alpha = 2)"};
    const int a = any_value(g), b = like(g, a);
    begin_line(g, g->channels[a]);
    tare__text_printf(&g->code, calls[draw(g, 6)], a, b);
    tare__text_append(&g->code, "\n");
}

static void add_gate(generator *g) { // squeeze and excite
    const int v = any_value(g);
    tare__text_printf(&g->code,
                      "    gate%d = torch.nn.functional.adaptive_avg_pool2d(v%d, (1, 1))\n",
                      g->count, v);
    begin_line(g, g->channels[v]);
    tare__text_printf(&g->code, "gate%d * v%d\n", g->count - 1, v);
}

static void add_view(generator *g) {
    const int v = any_value(g);
    tare__text_printf(&g->code, "    flat%d = torch.flatten(v%d, 2)\n", g->count, v);
    begin_line(g, g->channels[v]);
    tare__text_printf(&g->code, "flat%d.view(size, -1, 6, 6)\n", g->count - 1);
}

static void add_window(generator *g) {
    static const char *const calls[] = {
        "torch.nn.functional.max_pool2d(v%d, 3, stride = 1, padding = 1)",
        "torch.nn.functional.avg_pool2d(v%d, 3, 1, 1)",
        "torch._C._nn.avg_pool2d(v%d, 3, 1, 1, False, False)",
        "torch.transpose(v%d, 2, 3)",
        "v%d.reshape(size, -1, 6, 6)",
        "v%d.permute(0, 1, 3, 2)",
        "torch.nn.functional.softmax(v%d, dim = 1)",
        "torch.nn.functional.softmax(v%d, dim = -1)",
        "torch.nn.functional.layer_norm(v%d, (6,))",
        "torch.nn.functional.rms_norm(v%d, (6,))",
    };
    const int v = any_value(g);
    begin_line(g, g->channels[v]);
    tare__text_printf(&g->code, calls[draw(g, sizeof calls / sizeof *calls)], v);
    tare__text_append(&g->code, "\n");
}

static void add_join(generator *g) {
    const int a = any_value(g), b = any_value(g);
    begin_line(g, g->channels[a] + g->channels[b]);
    tare__text_printf(&g->code, "torch.cat([v%d, v%d], dim = 1)\n", a, b);
}

static tare_model *random_model(generator *g, uint64_t seed) {
    *g = (generator){.state = seed * 77 + 1, .root = new_tree(), .channels = {6}, .count = 1};
    tare__text_append(&g->code, "def forward(self, v0):\n    size = v0.size(0)\n");
    const int lines = 3 + (int)draw(g, 22);
    while (g->count < lines) switch (draw(g, 10)) {
        case 0:
        case 1:
        case 2:
            add_conv(g);
            break;
        case 3:
        case 4:
            add_unary(g);
            break;
        case 5:
        case 6:
            add_binary(g);
            break;
        case 7:
            add_window(g);
            break;
        case 8:
            if (draw(g, 2))
                add_gate(g);
            else
                add_view(g);

            break;
        default:
            if (g->channels[g->count - 1] < 60) add_join(g);
        }
    const int v = g->count - 1;
    char config[64];
    (void)snprintf(config, sizeof config, "in_features=%d, out_features=5", g->channels[v]);
    const char *name = put(g, NN "Linear", config);
    tare__text_printf(&g->code,
                      "    mean = v%d.mean([2, 3])\n    result = torch.flatten(mean, 1)\n"
                      "    scores = self.%s(result)\n    return (scores, v%d, v%d)\n",
                      v, name, v, like(g, v));
    return new_model(NULL, g->root, tare__text_chars(&g->code));
}

static void random_graphs_give_the_interpreters_results(void **state) {
    (void)state;
    for (uint64_t seed = 1; seed <= 150; seed++) {
        generator g;
        tare_model *model = random_model(&g, seed);
        tare_tensor *x = NEW_INPUT(2, 6, 6, 6);
        char what[4096];
        (void)snprintf(what, sizeof what, "seed %llu:\n%s", (unsigned long long)seed,
                       tare__text_chars(&g.code));
        check_model(model, x, what);
        tare_tensor_release(x);
        tare_model_destroy(model);
        tare__text_release(&g.code);
    }
}

// --- what becomes of a graph ---

// "layer pool call": the steps of the plan for an input of this shape.
static const char *steps_of(const tare_model *model, const tare_tensor *x) {
    static char names[1024];
    const interpreter it = {.root = model->root, .thread_count = 1};
    fast_context fast = {.lines = tare__lines_choose(ISA_SCALAR)};
    float_layers *layers = NULL;
    plan *p = NULL;
    CHECK_DONE(tare__float_layers_create(NULL, false, &layers, job_error()));
    const plan_setting setting = {.it = &it, .fast = &fast, .layers = layers};
    CHECK_DONE(tare__plan_create(&setting, &x, 1, &p, job_error()));
    names[0] = '\0';
    for (size_t i = 0; tare__plan_step_name(p, i) != NULL; i++) {
        if (i > 0) strcat(names, " ");
        strcat(names, tare__plan_step_name(p, i));
    }
    size_t least = 0;
    assert_true(tare__plan_bytes(p, &least) <= 2 * least);
    tare__plan_destroy(p);
    tare__float_layers_destroy(layers);
    return names;
}

static module *residual_modules(void) {
    module *root = new_tree();
    put_module(root, NULL, "a", NN "Conv2d",
               "in_channels=8, out_channels=8, kernel_size=(3, 3), stride=(1, 1), padding=(1, 1), "
               "dilation=(1, 1), groups=1, bias=False");
    put_module(root, NULL, "b", NN "BatchNorm2d", "num_features=8");
    put_module(root, NULL, "c", NN "Conv2d",
               "in_channels=8, out_channels=8, kernel_size=(1, 1), stride=(1, 1), padding=(0, 0), "
               "dilation=(1, 1), groups=1, bias=True");
    return root;
}

static tare_model *residual_block(const char *end) {
    char code[1024];
    (void)snprintf(code, sizeof code,
                   "def forward(self, x):\n"
                   "    a = self.a(x)\n"
                   "    b = self.b(a)\n"
                   "    relu = torch.nn.functional.relu(b, inplace = False)\n"
                   "    c = self.c(relu)\n"
                   "    add = c + x\n"
                   "    last = torch.nn.functional.relu6(add)\n"
                   "    pool = torch.nn.functional.max_pool2d(last, 2)\n"
                   "    return %s\n",
                   end);
    return new_model(NULL, residual_modules(), code);
}

// The same as torch.export spells it.
static tare_model *exported_block(void) {
    return new_model(
        NULL, residual_modules(),
        "def forward(self, x):\n"
        "    a_w = self.a.weight\n"
        "    b_w = self.b.weight\n"
        "    b_b = self.b.bias\n"
        "    mean = self.b.running_mean\n"
        "    var = self.b.running_var\n"
        "    c_w = self.c.weight\n"
        "    c_b = self.c.bias\n"
        "    a = torch.ops.aten.conv2d.default(x, a_w, None, [1, 1], [1, 1])\n"
        "    b = torch.ops.aten.batch_norm.default(a, b_w, b_b, mean, var, False, 0.1, "
        "0.001, True)\n"
        "    relu_ = torch.ops.aten.relu_.default(b)\n"
        "    c = torch.ops.aten.conv2d.default(relu_, c_w, c_b)\n"
        "    add_ = torch.ops.aten.add_.Tensor(c, x)\n"
        "    last = torch.ops.aten.hardtanh_.default(add_, 0.0, 6.0)\n"
        "    pool = torch.ops.aten.max_pool2d.default(last, [2, 2])\n"
        "    return pool\n");
}

static bool has_layers(void) {
    float_layers *layers = NULL;
    CHECK_OK(tare__float_layers_create(NULL, false, &layers, NULL));
    tare__float_layers_destroy(layers);
    return layers != NULL;
}

static void a_residual_block_is_two_layers(void **state) {
    (void)state;
    tare_tensor *x = NEW_INPUT(1, 8, 6, 6);
    if (!has_layers()) skip();
    tare_model *model = residual_block("pool");
    assert_string_equal(steps_of(model, x), "reorder layer layer pool reorder");
    check_model(model, x, "residual block");
    tare_model_destroy(model);
    // Whoever else looks at a value sees it: nothing is fused over it.
    model = residual_block("(pool, b)");
    assert_string_equal(steps_of(model, x), "reorder layer elements layer pool reorder reorder");
    check_model(model, x, "residual block, and what lies within");
    tare_model_destroy(model);
    tare_tensor_release(x);
}

// --- codes ---

static tare_model *codes_through(const char *body) {
    char code[1024];
    (void)snprintf(code, sizeof code,
                   "def forward(self, x):\n"
                   "    q = torch.quantize_per_tensor(x, 0.05, 10, torch.quint8)\n"
                   "    f = q.dequantize()\n%s",
                   body);
    return new_model(NULL, new_tree(), code);
}

static void functions_between_codes_are_one_table(void **state) {
    (void)state;
    tare_tensor *x = NEW_INPUT(1, 8, 6, 6);
    tare_model *model =
        codes_through("    s = torch.nn.functional.silu(f)\n"
                      "    r = torch.quantize_per_tensor(s, 0.03, 5, torch.quint8)\n"
                      "    d = r.dequantize()\n"
                      "    return d\n");
    assert_string_equal(steps_of(model, x), "codes codes codes");
    check_model(model, x, "silu between codes");
    tare_model_destroy(model);
    // Floats that somebody else reads are made.
    model = codes_through("    s = torch.nn.functional.silu(f)\n"
                          "    r = torch.quantize_per_tensor(s, 0.03, 5, torch.quint8)\n"
                          "    d = r.dequantize()\n"
                          "    return (d, s)\n");
    assert_string_equal(steps_of(model, x), "codes codes elements codes codes");
    check_model(model, x, "silu between codes, and its floats");
    tare_model_destroy(model);
    tare_tensor_release(x);
}

// A convolution, a depthwise one with ReLU6, and one whose result is added to what went in.
static void integer_layers_take_in_bounds_and_sums(void **state) {
    (void)state;
    module *root = new_tree();
    put_module(root, NULL, "a", NN "Conv2d",
               "in_channels=8, out_channels=24, kernel_size=(1, 1), stride=(1, 1), padding=(0, 0), "
               "dilation=(1, 1), groups=1, bias=True");
    put_module(root, NULL, "b", NN "Conv2d",
               "in_channels=24, out_channels=24, kernel_size=(3, 3), stride=(1, 1), padding=(1, "
               "1), dilation=(1, 1), groups=24, bias=True");
    put_module(root, NULL, "c", NN "Conv2d",
               "in_channels=24, out_channels=8, kernel_size=(1, 1), stride=(1, 1), padding=(0, 0), "
               "dilation=(1, 1), groups=1, bias=True");
    tare_model *model = new_model(NULL, root,
                                  "def forward(self, x):\n"
                                  "    a = self.a(x)\n"
                                  "    r = torch.nn.functional.relu6(a)\n"
                                  "    b = self.b(r)\n"
                                  "    s = torch.nn.functional.relu6(b)\n"
                                  "    c = self.c(s)\n"
                                  "    add = c + x\n"
                                  "    pool = torch.nn.functional.max_pool2d(add, 2)\n"
                                  "    return pool\n");
    tare_tensor *x = NEW_INPUT(2, 8, 6, 6);
    tare_backend_config *backend = builtin_backend("x86");
    tare_qconfig_mapping *mapping = default_mapping("x86");
    tare_model *p = prepared(model, backend, mapping);
    const tare_tensor *inputs[] = {x};
    CHECK_DONE(tare_calibrate(p, inputs, 1, job_error()));
    tare_model *q = lowered(p, backend);
    assert_string_equal(steps_of(q, x),
                        "codes reorder code layer code layer code layer code pool codes reorder");
    check_model(q, x, "inverted residual in integers");
    tare_model_destroy(q);
    tare_model_destroy(p);
    tare_model_destroy(model);
    tare_qconfig_mapping_destroy(mapping);
    tare_backend_config_destroy(backend);
    tare_tensor_release(x);
}

static void exported_programs_get_the_same_layers(void **state) {
    (void)state;
    tare_tensor *x = NEW_INPUT(1, 8, 6, 6);
    if (!has_layers()) skip();
    tare_model *model = exported_block();
    assert_string_equal(steps_of(model, x), "reorder layer layer pool reorder");
    check_model(model, x, "residual block of aten");
    tare_model_destroy(model);
    tare_tensor_release(x);
}

static void what_depends_on_shapes_only_is_computed_once(void **state) {
    (void)state;
    tare_tensor *x = NEW_INPUT(2, 3, 4);
    tare_model *model = new_model(NULL, new_tree(),
                                  "def forward(self, x):\n"
                                  "    mask = torch.ops.aten.new_zeros.default(x, [3, 4])\n"
                                  "    part = torch.ops.aten.slice.Tensor(mask, 1, 1, 3)\n"
                                  "    fill_ = torch.ops.aten.fill_.Scalar(part, -100.0)\n"
                                  "    twos = torch.ops.aten.full_like.default(x, 2.0)\n"
                                  "    add = torch.ops.aten.add.Tensor(x, mask)\n"
                                  "    mul = torch.ops.aten.mul.Tensor(add, twos)\n"
                                  "    return mul\n");
    assert_string_equal(steps_of(model, x), "elements");
    check_model(model, x, "a mask by shape");
    tare_model_destroy(model);
    tare_tensor_release(x);
}

static void norms_without_statistics_keep_none(void **state) {
    (void)state;
    tare_tensor *x = NEW_INPUT(2, 3, 4, 4);
    tare_model *model = new_model(
        NULL, new_tree(),
        "def forward(self, x):\n"
        "    y = torch.ops.aten.instance_norm.default(x, None, None, None, None, True, 0.1, 1e-05, "
        "True)\n"
        "    z = torch.ops.aten.batch_norm.default(y, None, None, None, None, True, 0.1, 1e-05, "
        "True)\n"
        "    return z\n");
    assert_string_equal(steps_of(model, x), "group_norm call");
    check_model(model, x, "norms by their input's statistics");
    tare_model_destroy(model);
    tare_tensor_release(x);
}

static void batch_norms_over_other_channels_stay(void **state) {
    (void)state;
    tare_tensor *x = NEW_INPUT(2, 3, 4);
    if (!has_layers()) skip();
    module *root = new_tree();
    put_module(root, NULL, "a", NN "Linear", "in_features=4, out_features=3, bias=True");
    put_module(root, NULL, "b", NN "BatchNorm1d", "num_features=3");
    tare_model *model = new_model(NULL, root,
                                  "def forward(self, x):\n"
                                  "    a = self.a(x)\n"
                                  "    b = self.b(a)\n"
                                  "    return b\n");
    assert_string_equal(steps_of(model, x), "layer batch_norm");
    check_model(model, x, "batch norm over the rows");
    tare_model_destroy(model);
    tare_tensor_release(x);
}

static tare_model *attention_block(const char *attend) {
    static const char *const names[] = {"q", "k", "v", "o"};
    module *root = new_tree();
    char code[2048];
    for (size_t i = 0; i < 4; i++)
        put_module(root, NULL, names[i], NN "Linear", "in_features=24, out_features=24");
    put_module(root, NULL, "norm", NN "LayerNorm", "normalized_shape=(24,)");
    (void)snprintf(code, sizeof code,
                   "def forward(self, x):\n"
                   "    size = x.size(0)\n"
                   "    q = self.q(x)\n"
                   "    q_view = q.view(size, 5, 3, 8)\n"
                   "    q_heads = q_view.transpose(1, 2)\n"
                   "    k = self.k(x)\n"
                   "    k_view = k.view(size, 5, 3, 8)\n"
                   "    k_heads = k_view.permute(0, 2, 1, 3)\n"
                   "    v = self.v(x)\n"
                   "    v_view = v.view(size, 5, 3, 8)\n"
                   "    v_heads = v_view.transpose(2, 1)\n"
                   "    %s\n"
                   "    joined = attention.transpose(1, 2)\n"
                   "    flat = joined.reshape(size, 5, 24)\n"
                   "    o = self.o(flat)\n"
                   "    add = x + o\n"
                   "    norm = self.norm(add)\n"
                   "    softmax = torch.softmax(norm, -1)\n"
                   "    return (norm, softmax)\n",
                   attend);
    return new_model(NULL, root, code);
}

#define MIX  "mix = torch._C._nn.scaled_dot_product_attention(q_heads, k_heads, v_heads"
#define SDPA "attention = torch._C._nn.scaled_dot_product_attention(q_heads, k_heads, v_heads"

static void attention_reads_projections_where_they_lie(void **state) {
    (void)state;
    static const char *const rest[] = {")", ", is_causal = True)", ", scale = 0.7)"};
    tare_tensor *x = NEW_INPUT(2, 5, 24);
    if (!has_layers()) skip();
    for (size_t i = 0; i < 3; i++) {
        char attend[256];
        (void)snprintf(attend, sizeof attend, SDPA "%s", rest[i]);
        tare_model *model = attention_block(attend);
        assert_string_equal(steps_of(model, x),
                            "layer layer layer attention layer layer_norm softmax");
        check_model(model, x, attend);
        tare_model_destroy(model);
    }
    // One who wants the transposed keys gets them.
    tare_model *model = attention_block("twice = k_heads * 2\n"
                                        "    " MIX ", attn_mask = None)\n"
                                        "    attention = mix + twice");
    CHECK_HOLDS(steps_of(model, x), "layer layer layer attention copy elements copy layer");
    check_model(model, x, "transposed keys");
    tare_model_destroy(model);
    tare_tensor_release(x);
}

// --- shapes that change ---

static tare_model *small_model(void) {
    module *root = new_tree();
    put_module(root, NULL, "conv", NN "Conv2d",
               "in_channels=3, out_channels=8, kernel_size=(3, 3), stride=(1, 1), padding=(1, 1), "
               "dilation=(1, 1), groups=1, bias=True");
    put_module(root, NULL, "bn", NN "BatchNorm2d", "num_features=8");
    put_module(root, NULL, "fc", NN "Linear", "in_features=8, out_features=3");
    return new_model(NULL, root,
                     "def forward(self, x):\n"
                     "    conv = self.conv(x)\n"
                     "    bn = self.bn(conv)\n"
                     "    relu = torch.nn.functional.relu(bn, inplace = False)\n"
                     "    more = relu.clone()\n"
                     "    add = relu + conv\n"
                     "    pooled = torch.nn.functional.adaptive_avg_pool2d(add, (1, 1))\n"
                     "    flat = torch.flatten(pooled, 1)\n"
                     "    fc = self.fc(flat)\n"
                     "    view = flat.view(-1)\n"
                     "    return (fc, x, view, more)\n");
}

static void each_shape_has_its_plan(void **state) {
    (void)state;
    static const int64_t shapes[][4] = {{1, 3, 8, 8}, {2, 3, 8, 8}, {5, 3, 4, 6},
                                        {1, 3, 5, 5}, {3, 3, 7, 4}, {1, 3, 1, 1}};
    tare_model *model = small_model();
    tare_session *planned = session_of(model, false), *reference = session_of(model, true);
    for (int round = 0; round < 3; round++)
        for (size_t i = 0; i < 6; i++) {
            tare_tensor *x = new_input(4, shapes[round == 1 ? 5 - i : i]);
            check_equal_runs(planned, reference, x, "small model");
            tare_tensor_release(x);
        }
    tare_session_destroy(planned);
    tare_session_destroy(reference);
    tare_model_destroy(model);
}

static void outputs_stay_when_the_session_runs_again(void **state) {
    (void)state;
    tare_model *model = small_model();
    tare_session *s = session_of(model, false);
    tare_tensor *x = NEW_INPUT(1, 3, 8, 8), *y = NULL, *first[4], *second[4];
    size_t count = 0;
    CHECK_OK(tare_tensor_create(TARE_FLOAT32, 4, x->shape, &y, NULL));
    CHECK_OK(tare_session_run(s, (const tare_tensor *[]){x}, 1, first, 4, &count, NULL));
    tare_tensor *kept = NULL;
    CHECK_OK(tare__tensor_copy(first[0], &kept, NULL));
    CHECK_OK(tare_session_run(s, (const tare_tensor *[]){y}, 1, second, 4, &count, NULL));
    tare_session_destroy(s);
    assert_memory_equal(kept->data, first[0]->data, tare__tensor_bytes(kept));
    assert_memory_not_equal(first[0]->data, second[0]->data, tare__tensor_bytes(kept));
    for (size_t i = 0; i < count; i++) {
        tare_tensor_release(first[i]);
        tare_tensor_release(second[i]);
    }
    tare_tensor_release(kept);
    tare_tensor_release(x);
    tare_tensor_release(y);
    tare_model_destroy(model);
}

// --- threads ---

static tare_model *wide_model(const char *conv, int64_t out) {
    char config[64];
    module *root = new_tree();
    put_module(root, NULL, "conv", NN "Conv2d", conv);
    (void)snprintf(config, sizeof config, "in_features=%lld, out_features=100", (long long)out);
    put_module(root, NULL, "fc", NN "Linear", config);
    return new_model(NULL, root,
                     "def forward(self, x):\n"
                     "    conv = self.conv(x)\n"
                     "    relu = torch.nn.functional.relu(conv, inplace = False)\n"
                     "    flat = torch.flatten(relu, 1)\n"
                     "    fc = self.fc(flat)\n"
                     "    flatter = torch.flatten(relu, 0, 2)\n"
                     "    softmax = torch.softmax(flatter, -1)\n"
                     "    return (fc, softmax)\n");
}

// Layers that are long enough to be cut into bands of rows, images of a batch, or columns.
static void threads_share_layers(void **state) {
    (void)state;
    static const struct {
        const char *conv;
        int64_t channels, out; // out: elements of one image's result
    } cases[] = {
        {"in_channels=16, out_channels=16, kernel_size=(3, 3), stride=(1, 1), padding=(1, 1), "
         "dilation=(1, 1), groups=1, bias=True",
         16, 16 * 29 * 29},
        {"in_channels=16, out_channels=32, kernel_size=(5, 3), stride=(2, 2), padding=(2, 0), "
         "dilation=(1, 1), groups=1, bias=False",
         16, 32 * 15 * 14},
        {"in_channels=24, out_channels=24, kernel_size=(3, 3), stride=(3, 1), padding=(4, 4), "
         "dilation=(4, 2), groups=2, bias=True",
         24, 24 * 10 * 33},
        {"in_channels=32, out_channels=64, kernel_size=(1, 1), stride=(2, 2), padding=(0, 0), "
         "dilation=(1, 1), groups=1, bias=True",
         32, 64 * 15 * 15},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        for (int64_t batch = 1; batch <= 4; batch += 3) {
            tare_model *model = wide_model(cases[i].conv, cases[i].out);
            tare_session *reference = session_of(model, true);
            tare_tensor *x = NEW_INPUT(batch, cases[i].channels, 29, 29);
            for (int threads = 1; threads <= 3; threads++) {
                tare_session *s = NULL;
                const tare_session_options options = {.thread_count = threads};
                CHECK_OK(tare_session_create(model, &options, &s, NULL));
                check_equal_runs(s, reference, x, cases[i].conv);
                tare_session_destroy(s);
            }
            tare_tensor_release(x);
            tare_session_destroy(reference);
            tare_model_destroy(model);
        }
}

// --- samples in turn ---

static tare_model *picture_model(const char *end) {
    char code[512];
    module *root = new_tree();
    put_module(root, NULL, "conv", NN "Conv2d",
               "in_channels=4, out_channels=32, kernel_size=(3, 3), stride=(1, 1), padding=(1, 1), "
               "dilation=(1, 1), groups=1, bias=True");
    (void)snprintf(code, sizeof code,
                   "def forward(self, x):\n"
                   "    conv = self.conv(x)\n"
                   "    relu = torch.nn.functional.relu(conv, inplace = False)\n%s",
                   end);
    return new_model(NULL, root, code);
}

// Does the plan of the latest run take samples in turn? Steps tell of all of them.
static bool takes_turns(const tare_session *s, int64_t samples) {
    tare_step step = {.struct_size = sizeof step};
    assert_true(tare_session_get_step(s, 0, &step));
    assert_int_equal(step.input_shape[0], samples);
    return tare__session_plan(s)->samples > 1;
}

// One sample's outputs are a part of the batch's, to the bit.
static void check_sample(tare_session *s, const tare_tensor *x, int64_t sample,
                         tare_tensor *const *whole, size_t count) {
    tare_tensor *row = NULL, *found[4];
    size_t found_count = 0;
    CHECK_OK(tare__tensor_rows(x, sample, 1, &row, NULL));
    const tare_tensor *in = row;
    CHECK_OK(tare_session_run(s, &in, 1, found, 4, &found_count, NULL));
    assert_int_equal(found_count, count);
    for (size_t i = 0; i < count; i++) {
        const size_t bytes = tare__tensor_bytes(found[i]);
        assert_int_equal(bytes * (size_t)x->shape[0], tare__tensor_bytes(whole[i]));
        assert_memory_equal((char *)whole[i]->data + (size_t)sample * bytes, found[i]->data, bytes);
        tare_tensor_release(found[i]);
    }
    tare_tensor_release(row);
}

static void check_turns(const tare_model *model, const tare_tensor *x, int threads) {
    tare_tensor *made[4] = {NULL};
    tare_session *s = NULL;
    size_t count = 0;
    const tare_session_options options = {.thread_count = threads};
    CHECK_OK(tare_session_create(model, &options, &s, NULL));
    CHECK_OK(tare_session_run(s, &x, 1, made, 4, &count, NULL));
    assert_true(takes_turns(s, x->shape[0]));
    for (int64_t n = 0; n < x->shape[0]; n++) check_sample(s, x, n, made, count);
    for (size_t i = 0; i < count; i++) memset(made[i]->data, 0xff, tare__tensor_bytes(made[i]));
    CHECK_OK(tare_session_run_into(s, &x, 1, made, count, NULL));
    for (int64_t n = 0; n < x->shape[0]; n++) check_sample(s, x, n, made, count);
    for (size_t i = 0; i < count; i++) tare_tensor_release(made[i]);
    tare_session_destroy(s);
}

// What lies between the layers of all of them would not stay in the cache.
static void large_batches_run_sample_by_sample(void **state) {
    (void)state;
    tare_tensor *x = NEW_INPUT(6, 4, 64, 64);
    tare_model *model = picture_model("    pool = torch.nn.functional.max_pool2d(relu, 2)\n"
                                      "    flat = torch.flatten(pool, 1)\n"
                                      "    return (flat, relu, x)\n");
    for (int threads = 1; threads <= 2; threads++) check_turns(model, x, threads);
    check_model(model, x, "a batch of pictures");
    tare_model_destroy(model);
    tare_tensor_release(x);
}

static void check_together(const char *end, int64_t batch, int64_t size) {
    tare_tensor *x = NEW_INPUT(batch, 4, size, size);
    tare_model *model = picture_model(end);
    tare_session *planned = session_of(model, false), *reference = session_of(model, true);
    check_equal_runs(planned, reference, x, end);
    assert_false(takes_turns(planned, batch));
    tare_session_destroy(reference);
    tare_session_destroy(planned);
    tare_model_destroy(model);
    tare_tensor_release(x);
}

// Samples that have to do with each other, and those whose results fit into the cache.
static void other_batches_run_as_a_whole(void **state) {
    (void)state;
    check_together("    soft = torch.softmax(relu, 0)\n"
                   "    return soft\n",
                   6, 64);
    check_together("    mean = torch.mean(relu, [0, 2, 3], keepdim = True)\n"
                   "    sub = torch.sub(relu, mean)\n"
                   "    return sub\n",
                   6, 64);
    check_together("    return relu\n", 2, 8);
}

// Observers see the batches that they are given: averages over batches depend on them.
static void observers_see_whole_batches(void **state) {
    (void)state;
    tare_tensor *x = NEW_INPUT(6, 4, 64, 64), *y = NULL;
    tare_model *model = picture_model("    return relu\n");
    tare_backend_config *backend = builtin_backend("x86");
    tare_qconfig_mapping *mapping = default_mapping("x86");
    tare_model *watched = prepared(model, backend, mapping);
    tare_session *s = session_of(watched, false);
    size_t count = 0;
    const tare_tensor *in = x;
    CHECK_OK(tare_session_run(s, &in, 1, &y, 1, &count, NULL));
    assert_false(takes_turns(s, 6));
    tare_tensor_release(y);
    tare_session_destroy(s);
    tare_model_destroy(watched);
    tare_qconfig_mapping_destroy(mapping);
    tare_backend_config_destroy(backend);
    tare_model_destroy(model);
    tare_tensor_release(x);
}

// Times and work are those of all samples.
static void profiles_tell_of_all_samples(void **state) {
    (void)state;
    enum { RUNS = 3 };
    tare_tensor *x = NEW_INPUT(6, 4, 64, 64), *y = NULL;
    tare_model *model = picture_model("    return relu\n");
    tare_session *s = session_of(model, false);
    tare_step step = {.struct_size = sizeof step};
    const tare_tensor *in = x;
    size_t count = 0;
    CHECK_OK(tare_session_profile(s, true, NULL));
    for (int i = 0; i < RUNS; i++) {
        CHECK_OK(tare_session_run(s, &in, 1, &y, 1, &count, NULL));
        tare_tensor_release(y);
    }
    assert_true(takes_turns(s, 6));
    int64_t macs = 0;
    for (size_t i = 0; tare_session_get_step(s, i, &step); i++) {
        assert_int_equal(step.run_count, RUNS);
        macs += step.macs;
    }
    assert_int_equal(macs, (int64_t)6 * 64 * 64 * 32 * 4 * 9);
    tare_session_destroy(s);
    tare_model_destroy(model);
    tare_tensor_release(x);
}

// --- refusals and failures ---

static void inputs_that_do_not_fit_are_named_as_without_a_plan(void **state) {
    (void)state;
    tare_model *model = small_model();
    tare_session *s = session_of(model, false);
    tare_tensor *wrong = NEW_INPUT(1, 4, 8, 8), *right = NEW_INPUT(1, 3, 8, 8), *out[4];
    size_t count = 0;
    for (int i = 0; i < 6; i++)
        CHECK_REFUSED(
            tare_session_run(s, (const tare_tensor *[]){wrong}, 1, out, 4, &count, job_error()),
            TARE_INVALID_ARGUMENT, "node 'conv': conv2d: input of shape [1, 4, 8, 8]");
    CHECK_REFUSED(
        tare_session_run(s, (const tare_tensor *[]){right}, 1, out, 3, &count, job_error()),
        TARE_INVALID_ARGUMENT, "the model has 4 outputs, there is room for 3");
    CHECK_OK(tare_session_run(s, (const tare_tensor *[]){right}, 1, out, 4, &count, NULL));
    for (size_t i = 0; i < count; i++) tare_tensor_release(out[i]);
    tare_tensor_release(wrong);
    tare_tensor_release(right);
    tare_session_destroy(s);
    tare_model_destroy(model);
}

static tare_status run_whole(const tare_model *model, const tare_tensor *x) {
    tare_session *s = NULL;
    tare_tensor *out[4] = {NULL};
    size_t count = 0;
    tare_status status = tare_session_create(model, NULL, &s, NULL);
    for (int run = 0; run < 2 && status == TARE_OK; run++) {
        status = tare_session_run(s, &x, 1, out, 4, &count, NULL);
        for (size_t i = 0; i < count && status == TARE_OK; i++) tare_tensor_release(out[i]);
    }
    tare_session_destroy(s);
    return status;
}

static void a_plan_survives_every_failing_allocation(void **state) {
    (void)state;
    tare_model *model = small_model();
    tare_tensor *x = NEW_INPUT(2, 3, 4, 4);
    tare_status status = TARE_OK;
    EVERY_ALLOCATION_FAILS(status, status = run_whole(model, x), (void)0);
    tare_tensor_release(x);
    tare_model_destroy(model);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_graphs_give_the_interpreters_results),
        cmocka_unit_test(a_residual_block_is_two_layers),
        cmocka_unit_test(functions_between_codes_are_one_table),
        cmocka_unit_test(integer_layers_take_in_bounds_and_sums),
        cmocka_unit_test(exported_programs_get_the_same_layers),
        cmocka_unit_test(what_depends_on_shapes_only_is_computed_once),
        cmocka_unit_test(norms_without_statistics_keep_none),
        cmocka_unit_test(batch_norms_over_other_channels_stay),
        cmocka_unit_test(attention_reads_projections_where_they_lie),
        cmocka_unit_test(each_shape_has_its_plan),
        cmocka_unit_test(threads_share_layers),
        cmocka_unit_test(large_batches_run_sample_by_sample),
        cmocka_unit_test(other_batches_run_as_a_whole),
        cmocka_unit_test(observers_see_whole_batches),
        cmocka_unit_test(profiles_tell_of_all_samples),
        cmocka_unit_test(outputs_stay_when_the_session_runs_again),
        cmocka_unit_test(inputs_that_do_not_fit_are_named_as_without_a_plan),
        cmocka_unit_test(a_plan_survives_every_failing_allocation),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
