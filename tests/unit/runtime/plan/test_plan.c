// SPDX-License-Identifier: Apache-2.0
// Plans give the interpreter's results over random graphs, and steps are what they should be.
#include "support/test.h"

#include "core/text/text.h"
#include "dnnl/float_layers.h"
#include "runtime/plan/build.h"
#include "runtime/session/session.h"
#include "support/models.h"
#include "support/plan_checks.h"

#define NN "torch.nn."

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
        "-%s",
        "torch.sign(%s)",
        "torch.pow(%s, 2)",
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
    tare__text_printf(&g->code, calls[draw(g, sizeof calls / sizeof *calls)], a, b);
    tare__text_append(&g->code, "\n");
}

// The mask follows from the input, which is exact.
static void add_choice(generator *g) {
    static const char *const calls[] = {
        "torch.masked_fill(v%d, mask, -0.75)\n",
        "torch.where(mask, v%d, 0.125)\n",
        "torch.where(mask, v%d, v%d)\n",
    };
    const int a = any_value(g), b = like(g, a);
    begin_line(g, g->channels[a]);
    tare__text_printf(&g->code, calls[draw(g, sizeof calls / sizeof *calls)], a, b);
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

static void add_shuffle(generator *g) {
    const int v = any_value(g), groups = g->channels[v] % 2 == 0 ? 2 : 1,
              each = g->channels[v] / groups;
    tare__text_printf(&g->code,
                      "    apart%d = v%d.view(size, %d, %d, 6, 6)\n"
                      "    turned%d = torch.transpose(apart%d, 1, 2)\n",
                      g->count, v, groups, each, g->count, g->count);
    if (draw(g, 4) == 0) { // somebody else reads the view, or what is moved
        begin_line(g, g->channels[v]);
        tare__text_printf(&g->code, "%s%d.reshape(size, -1, 6, 6)\n",
                          draw(g, 2) ? "apart" : "turned", g->count - 1);
        tare__text_printf(&g->code, "    turned%d = turned%d * 0.5\n", g->count, g->count - 1);
    }
    begin_line(g, g->channels[v]);
    tare__text_printf(&g->code, "turned%d.reshape(size, -1, 6, 6)\n", g->count - 1);
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
    tare__text_append(&g->code, "def forward(self, v0):\n    size = v0.size(0)\n"
                                "    top = torch.amax(v0, 1, True)\n"
                                "    mask = torch.lt(top, 0.5)\n");
    const int lines = 3 + (int)draw(g, 22);
    while (g->count < lines) switch (draw(g, 12)) {
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
        case 9:
            add_choice(g);
            break;
        case 10:
            add_shuffle(g);
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
    kernel_context kernels = {.rows = tare__row_kernels_choose(ISA_SCALAR)};
    float_layers *layers = NULL;
    plan *p = NULL;
    CHECK_DONE(tare__float_layers_create(NULL, false, &layers, job_error()));
    const plan_setting setting = {.it = &it, .kernels = &kernels, .layers = layers};
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

static void views_of_constants_leave_them_as_they_are(void **state) {
    static const char *const views[] = {"self.flat(e)", "torch.chunk(e, 2)", "self.same(e)"};
    (void)state;
    tare_tensor *x = NEW_INPUT(1, 3);
    for (size_t i = 0; i < sizeof views / sizeof *views; i++) {
        char code[256];
        module *root = new_tree();
        put_module(root, NULL, "fc", NN "Linear", "in_features=3, out_features=4");
        put_module(root, NULL, "flat", NN "Flatten", "start_dim=0, end_dim=-1");
        put_module(root, NULL, "same", NN "Identity", "");
        snprintf(code, sizeof code,
                 "def forward(self, x):\n    w = self.fc.weight\n    e = torch.exp(w)\n"
                 "    v = %s\n    y = e + x\n    return (y, v)\n",
                 views[i]);
        tare_model *model = new_model(NULL, root, code);
        check_model(model, x, code);
        tare_model_destroy(model);
    }
    tare_tensor_release(x);
}

// A call of a module on a constant is computed with the plan, as one of a function is. A dropout
// returns its input, also a quantized one.
static void modules_on_constants_are_constants(void **state) {
    static const struct {
        const char *code, *steps;
    } rows[] = {
        {"    a = self.drop(w)\n    b = self.fc(a)\n    c = torch.relu(b)\n    y = c + x\n"
         "    return y\n",
         "elements"},
        {"    q = torch.quantize_per_tensor(w, 0.1, 3, torch.quint8)\n"
         "    a = self.quantized_drop(q)\n    b = a.dequantize()\n    y = b + x\n    return y\n",
         "elements"},
        {"    q = torch.quantize_per_tensor(x, 0.1, 3, torch.quint8)\n"
         "    a = self.quantized_drop(q)\n    y = a.dequantize()\n    return y\n",
         "quantized elements quantized elements"},
    };
    (void)state;
    tare_tensor *x = NEW_INPUT(2, 3), *w = NEW_INPUT(2, 3);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char code[512];
        module *root = new_tree();
        put_module(root, NULL, "fc", NN "Linear", "in_features=3, out_features=3");
        put_module(root, NULL, "drop", NN "Dropout", "p=0.1");
        put_module(root, NULL, "quantized_drop", "torch.ao.nn.quantized.Dropout", "p=0.1");
        CHECK_DONE(tare__module_set_tensor(root, "w", w, false, job_error()));
        (void)snprintf(code, sizeof code, "def forward(self, x):\n    w = self.w\n%s",
                       rows[i].code);
        tare_model *model = new_model(NULL, root, code);
        assert_string_equal(steps_of(model, x), rows[i].steps);
        check_model(model, x, code);
        tare_model_destroy(model);
    }
    tare_tensor_release(w);
    tare_tensor_release(x);
}

// What stays with the session is turned again by the next run.
static void tensors_of_the_model_that_turn_in_place_turn_in_every_run(void **state) {
    static const char *const turns[] = {"w.transpose_(0, 1)", "w.t_()", "w.unsqueeze_(0)"};
    (void)state;
    tare_tensor *x = NEW_INPUT(1, 1);
    for (size_t i = 0; i < sizeof turns / sizeof *turns; i++) {
        char code[256];
        module *root = new_tree();
        put_module(root, NULL, "fc", NN "Linear", "in_features=3, out_features=3");
        snprintf(code, sizeof code,
                 "def forward(self, x):\n    w = self.fc.weight\n    v = %s\n    y = v + x\n"
                 "    return y\n",
                 turns[i]);
        tare_model *model = new_model(NULL, root, code);
        tare_session *planned = session_of(model, false), *reference = session_of(model, true);
        for (int run = 0; run < 3; run++) {
            tare_tensor *found = output_of(planned, x), *expected = output_of(reference, x);
            check_same_tensor(found, expected);
            tare_tensor_release(expected);
            tare_tensor_release(found);
        }
        tare_session_destroy(planned);
        tare_session_destroy(reference);
        tare_model_destroy(model);
    }
    tare_tensor_release(x);
}

// Programs call the overloads; a view that is turned leaves its base as it was.
static void overloads_that_turn_in_place_leave_the_base_as_it_is(void **state) {
    static const char *const turns[] = {"unsqueeze_.default(v, 0)", "transpose_.int(v, 0, 1)",
                                        "squeeze_.dim(v, 0)", "t_.default(v)"};
    (void)state;
    tare_tensor *x = NEW_INPUT(3, 2);
    for (size_t i = 0; i < sizeof turns / sizeof *turns; i++) {
        char code[256];
        snprintf(code, sizeof code,
                 "def forward(self, x):\n    v = torch.ops.aten.slice.Tensor(x, 0, 0, 1)\n"
                 "    w = torch.ops.aten.%s\n    y = w + 1\n    z = x * 2\n"
                 "    return (y, z)\n",
                 turns[i]);
        tare_model *model = new_model(NULL, new_tree(), code);
        check_model(model, x, code);
        tare_model_destroy(model);
    }
    tare_tensor_release(x);
}

static long count_references(const tare_session *s) {
    const plan *p = tare__session_plan(s);
    long sum = 0;
    for (size_t i = 0; i < p->tensor_count; i++) sum += p->tensors[i]->refcount;
    return sum;
}

// References make the parts anew.
static void runs_keep_no_references_on_results_of_several_parts(void **state) {
    static const char *const calls[] = {
        "torch.ops.aten.max_pool2d_with_indices.default(x, [2, 2])",
        "torch.ops.aten._native_batch_norm_legit.no_stats(x, None, None, False, 0.1, 0.001)",
        "torch.ops.aten.native_layer_norm.default(x, [4], None, None, 0.001)", "torch.sort(x, -1)"};
    (void)state;
    tare_tensor *x = NEW_INPUT(1, 2, 4, 4);
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) {
        char code[256];
        snprintf(code, sizeof code,
                 "def forward(self, x):\n    p = %s\n    first = p[0]\n    return first\n",
                 calls[i]);
        tare_model *model = new_model(NULL, new_tree(), code);
        tare_session *s = session_of(model, false);
        tare_tensor_release(output_of(s, x));
        if (tare__session_plan(s) == NULL) fail_msg("no plan: %s", calls[i]);
        const long before = count_references(s);
        for (int run = 0; run < 3; run++) tare_tensor_release(output_of(s, x));
        assert_int_equal(count_references(s), before);
        tare_session_destroy(s);
        tare_model_destroy(model);
    }
    tare_tensor_release(x);
}

// --- quantized values ---

static tare_model *integers_through(const char *body) {
    char code[1024];
    (void)snprintf(code, sizeof code,
                   "def forward(self, x):\n"
                   "    q = torch.quantize_per_tensor(x, 0.05, 10, torch.quint8)\n"
                   "    f = q.dequantize()\n%s",
                   body);
    return new_model(NULL, new_tree(), code);
}

static void functions_between_integers_are_one_table(void **state) {
    (void)state;
    tare_tensor *x = NEW_INPUT(1, 8, 6, 6);
    tare_model *model =
        integers_through("    s = torch.nn.functional.silu(f)\n"
                         "    r = torch.quantize_per_tensor(s, 0.03, 5, torch.quint8)\n"
                         "    d = r.dequantize()\n"
                         "    return d\n");
    assert_string_equal(steps_of(model, x),
                        "quantized elements quantized elements quantized elements");
    check_model(model, x, "silu between integers");
    tare_model_destroy(model);
    // Floats that somebody else reads are made.
    model = integers_through("    s = torch.nn.functional.silu(f)\n"
                             "    r = torch.quantize_per_tensor(s, 0.03, 5, torch.quint8)\n"
                             "    d = r.dequantize()\n"
                             "    return (d, s)\n");
    assert_string_equal(steps_of(model, x),
                        "quantized elements elements quantized elements quantized elements");
    check_model(model, x, "silu between integers, and its floats");
    tare_model_destroy(model);
    tare_tensor_release(x);
}

static tare_model *quantized_model(const tare_model *model, const tare_tensor *x) {
    tare_backend_config *backend = builtin_backend("x86");
    tare_qconfig_mapping *mapping = default_mapping("x86");
    tare_model *p = prepared(model, backend, mapping);
    CHECK_DONE(tare_calibrate(p, &x, 1, job_error()));
    tare_model *q = lowered(p, backend);
    tare_model_destroy(p);
    tare_qconfig_mapping_destroy(mapping);
    tare_backend_config_destroy(backend);
    return q;
}

static void check_levels(tare_model *model, const tare_tensor *x, const char *what) {
    for (int isa = 0; isa <= (int)tare__isa_detect(); isa++) {
        assert_int_equal(setenv("TARE_ISA", tare__isa_level_name((isa_level)isa), 1), 0);
        check_model(model, x, what);
    }
    assert_int_equal(unsetenv("TARE_ISA"), 0);
}

// Images of two to four planes, in strips with a rest; others are moved by a step of their own.
static void pictures_are_quantized_into_pixels(void **state) {
    (void)state;
    for (int planes = 1; planes <= 5; planes++) {
        char arguments[160];
        (void)snprintf(arguments, sizeof arguments,
                       "in_channels=%d, out_channels=6, kernel_size=(3, 3), stride=(2, 2), "
                       "padding=(1, 1), dilation=(1, 1), groups=1, bias=True",
                       planes);
        module *root = new_tree();
        put_module(root, NULL, "a", NN "Conv2d", arguments);
        tare_model *model = new_model(NULL, root,
                                      "def forward(self, x):\n"
                                      "    a = self.a(x)\n"
                                      "    return a\n");
        tare_tensor *x = NEW_INPUT(2, planes, 53, 47);
        tare_model *q = quantized_model(model, x);
        assert_string_equal(
            steps_of(q, x),
            planes < 5 ? "quantized elements quantized layer quantized elements reorder"
                       : "quantized elements reorder quantized layer quantized elements reorder");
        check_levels(q, x, "a picture");
        tare_model_destroy(q);
        tare_model_destroy(model);
        tare_tensor_release(x);
    }
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
    tare_model *q = quantized_model(model, x);
    assert_string_equal(steps_of(q, x),
                        "quantized elements reorder quantized layer quantized layer quantized "
                        "layer quantized pool quantized elements reorder");
    check_model(q, x, "inverted residual in integers");
    tare_model_destroy(q);
    tare_model_destroy(model);
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
        assert_string_equal(steps_of(model, x), "layer layer layer attention layer rows rows");
        check_model(model, x, attend);
        tare_model_destroy(model);
    }
    // A mask of booleans, where some queries see nothing.
    tare_model *masked = attention_block("turned = k_heads.transpose(-1, -2)\n"
                                         "    near = torch.matmul(q_heads, turned)\n"
                                         "    see = near > 1.0\n"
                                         "    " SDPA ", attn_mask = see)");
    assert_non_null(strstr(steps_of(masked, x), " attention "));
    check_model(masked, x, "a mask of booleans");
    tare_model_destroy(masked);
    // One who wants the transposed keys gets them.
    tare_model *model = attention_block("twice = k_heads * 2\n"
                                        "    " MIX ", attn_mask = None)\n"
                                        "    attention = mix + twice");
    CHECK_HOLDS(steps_of(model, x), "layer layer layer attention copy elements copy layer");
    check_model(model, x, "transposed keys");
    tare_model_destroy(model);
    tare_tensor_release(x);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_graphs_give_the_interpreters_results),
        cmocka_unit_test(a_residual_block_is_two_layers),
        cmocka_unit_test(views_of_constants_leave_them_as_they_are),
        cmocka_unit_test(modules_on_constants_are_constants),
        cmocka_unit_test(tensors_of_the_model_that_turn_in_place_turn_in_every_run),
        cmocka_unit_test(overloads_that_turn_in_place_leave_the_base_as_it_is),
        cmocka_unit_test(runs_keep_no_references_on_results_of_several_parts),
        cmocka_unit_test(functions_between_integers_are_one_table),
        cmocka_unit_test(pictures_are_quantized_into_pixels),
        cmocka_unit_test(integer_layers_take_in_bounds_and_sums),
        cmocka_unit_test(exported_programs_get_the_same_layers),
        cmocka_unit_test(what_depends_on_shapes_only_is_computed_once),
        cmocka_unit_test(norms_without_statistics_keep_none),
        cmocka_unit_test(batch_norms_over_other_channels_stay),
        cmocka_unit_test(attention_reads_projections_where_they_lie),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
