// SPDX-License-Identifier: Apache-2.0
// Each detector finds the fault that a small network has, with a remedy. Those of the other kinds
// are in tests/cli/test_analyze.sh.
#include <string.h>

#include "support/models.h"
#include "support/temp.h"
#include "support/test.h"
#include "tare/analyze.h"

enum { SAMPLES = 16, WIDTH = 16, TOKENS = 20 };
static const size_t row_3 = (size_t)3 * WIDTH;

typedef struct plant {
    tare_model *floats;
    tare_tensor *calibration, *check; // [SAMPLES, WIDTH]
} plant;

typedef struct fault {
    const char *kind, *layer; // of the finding; layer: how its name begins
    const char *code;         // after "def forward(self, x):\n"
    void (*make)(plant *p);
    const char *wrong; // a kind that is not to be found; NULL: none
    bool is_not_first; // something else comes before it
    bool is_brief;     // the analysis has one sample
} fault;

static const char two_layers[] = "    a = self.a(x)\n"
                                 "    relu = torch.relu(a)\n"
                                 "    b = self.b(relu)\n"
                                 "    return b\n";

static float *weights(const plant *p, const char *path) {
    return tare__f32(tare__module_find_tensor(p->floats->root, path));
}

static void scale(float *values, int64_t count, int64_t stride, float by) {
    for (int64_t i = 0; i < count; i++) values[i * stride] *= by;
}

// --- faults ---

static void make_constant(plant *p) {
    for (int64_t i = 0; i < p->check->count; i++)
        tare__f32(p->check)[i] = tare__f32(p->calibration)[i] = 0.5F;
}

// The layer makes good for the channel, so that the others count as much.
static void make_outlier_channel(plant *p) {
    scale(tare__f32(p->calibration), SAMPLES, WIDTH, 300);
    scale(tare__f32(p->check), SAMPLES, WIDTH, 300);
    scale(weights(p, "a.weight"), WIDTH, WIDTH, 1 / 300.0F);
}

static void make_dead_channel(plant *p) {
    scale(&weights(p, "a.weight")[row_3], WIDTH, 1, 0);
    weights(p, "a.bias")[3] = -1;
}

static void make_saturation(plant *p) {
    scale(tare__f32(p->calibration), p->calibration->count, 1, 0.4F);
}

// Everything behind is too narrow, too, and the last layer's error is the largest in the outputs.
static void make_saturation_in_front(plant *p) {
    make_saturation(p);
    for (size_t i = 0; i < WIDTH; i++) weights(p, "a.bias")[i] = -1;
    scale(weights(p, "b.bias"), WIDTH, 1, 0);
    scale(weights(p, "d.bias"), 4, 1, 0);
}

// Calibrated with bytes, used with numbers about 0.
static void make_raw_calibration(plant *p) {
    for (int64_t i = 0; i < p->calibration->count; i++)
        tare__f32(p->calibration)[i] = tare__f32(p->calibration)[i] * 120 + 128;
}

static void make_raw_data(plant *p) {
    for (int64_t i = 0; i < p->check->count; i++)
        tare__f32(p->check)[i] = tare__f32(p->check)[i] * 120 + 128;
}

// The samples of calibration are quiet and loud; these are in between.
static void make_loud_calibration(plant *p) {
    float *x = tare__f32(p->calibration);
    scale(x, WIDTH, 1, 0.5F);
    scale(&x[WIDTH], (int64_t)(SAMPLES - 1) * WIDTH, 1, 20);
}

static void make_one_value(plant *p) {
    for (int64_t i = 0; i < p->calibration->count; i++) tare__f32(p->calibration)[i] = 0.1F;
}

static void make_one_sample(plant *p) {
    float *x = tare__f32(p->calibration);
    scale(x, WIDTH, 1, 0.3F);
    for (size_t i = WIDTH; i < SAMPLES * WIDTH; i++) x[i] = x[i - WIDTH];
}

static void make_outlier_of_calibration(plant *p) {
    scale(&tare__f32(p->calibration)[row_3], WIDTH, 1, 300);
}

static void make_zero_weight(plant *p) {
    scale(weights(p, "b.weight"), (int64_t)WIDTH * WIDTH, 1, 0);
}

// A channel that never changes is so large that the others have few levels; the layer behind does
// without it.
static void make_constant_channel(plant *p) {
    scale(&weights(p, "a.weight")[row_3], WIDTH, 1, 0);
    weights(p, "a.bias")[3] = 900;
    scale(&weights(p, "b.weight")[3], WIDTH, WIDTH, 0);
}

static void make_large_bias(plant *p) {
    weights(p, "a.bias")[2] = -1e7F;
}

// Calibration saw these values, but no scale is small enough for them.
static void make_tiny_values(plant *p) {
    scale(weights(p, "a.weight"), (int64_t)WIDTH * WIDTH, 1, 1e-6F);
    scale(weights(p, "a.bias"), WIDTH, 1, 1e-6F);
    scale(weights(p, "b.weight"), (int64_t)WIDTH * WIDTH, 1, 1e6F);
}

// One weight of each channel is large, and reads next to nothing.
static void make_coarse(plant *p) {
    scale(&weights(p, "a.weight")[5], WIDTH, WIDTH, 200);
    scale(&tare__f32(p->calibration)[5], SAMPLES, WIDTH, 1e-4F);
    scale(&tare__f32(p->check)[5], SAMPLES, WIDTH, 1e-4F);
}

static void make_sharp(plant *p) {
    scale(weights(p, "a.weight"), (int64_t)WIDTH * WIDTH, 1, 100);
}

// Far below the fixed range of tanh.
static void make_small(plant *p) {
    scale(weights(p, "a.weight"), (int64_t)WIDTH * WIDTH, 1, 1e-3F);
    scale(weights(p, "a.bias"), WIDTH, 1, 1e-3F);
}

// cat gives its inputs one observer; another layer reads the small one.
static void make_shared(plant *p) {
    scale(weights(p, "b.weight"), (int64_t)WIDTH * WIDTH, 1, 300);
}

// The layer behind cat makes good for the range of its second half, so that both count as much.
static void make_joined(plant *p) {
    scale(weights(p, "b.weight"), (int64_t)WIDTH * WIDTH, 1, 300);
    for (size_t row = 0; row < 4; row++)
        scale(&weights(p, "c.weight")[row * 2 * WIDTH + WIDTH], WIDTH, 1, 1 / 300.0F);
}

static tare_tensor *new_tokens(int64_t left_out) {
    tare_tensor *t = NULL;
    const int64_t shape[] = {SAMPLES, WIDTH};
    CHECK_DONE(tare_tensor_create(TARE_INT64, 2, shape, &t, job_error()));
    for (int64_t i = 0; i < t->count; i++) {
        const int64_t token = i * 7 % TOKENS;
        ((int64_t *)t->data)[i] = token == left_out ? 0 : token;
    }
    return t;
}

static void make_token(plant *p) {
    tare_tensor_release(p->calibration);
    tare_tensor_release(p->check);
    p->calibration = new_tokens(-1);
    p->check = new_tokens(3);
    tare_tensor *table = NEW_INPUT(TOKENS, WIDTH);
    scale(&tare__f32(table)[row_3], WIDTH, 1, 300);
    CHECK_DONE(tare__module_set_tensor(tare__module_find(p->floats->root, "words"), "weight", table,
                                       true, job_error()));
    tare_tensor_release(table);
}

static const char four_layers[] = "    a = self.a(x)\n"
                                  "    relu = torch.relu(a)\n"
                                  "    b = self.b(relu)\n"
                                  "    relu_1 = torch.relu(b)\n"
                                  "    d = self.d(relu_1)\n"
                                  "    return d\n";

// --- the network ---

static void make(const fault *f, bool is_planted, plant *p) {
    char code[512] = "def forward(self, x):\n";
    module *root = new_tree();
    put_module(root, NULL, "words", "torch.nn.Embedding", "num_embeddings=20, embedding_dim=16");
    put_module(root, NULL, "a", "torch.nn.Linear", "in_features=16, out_features=16");
    put_module(root, NULL, "b", "torch.nn.Linear", "in_features=16, out_features=16");
    put_module(root, NULL, "c", "torch.nn.Linear", "in_features=32, out_features=4");
    put_module(root, NULL, "d", "torch.nn.Linear", "in_features=16, out_features=4");
    strncat(code, f->code, sizeof code - strlen(code) - 1);
    *p = (plant){new_model(NULL, root, code), NEW_INPUT(SAMPLES, WIDTH), NEW_INPUT(SAMPLES, WIDTH)};
    if (is_planted) f->make(p);
}

static tare_model *calibrated_reference(const plant *p) {
    tare_qconfig_mapping *mapping = default_mapping("x86");
    const tare_prepare_options prepare = {.qconfig_mapping = mapping};
    const tare_convert_options lenient = {.struct_size = sizeof lenient, .is_lenient = true};
    tare_model *prepared = NULL, *made = NULL;
    CHECK_DONE(tare_prepare_fx(p->floats, &prepare, &prepared, job_error()));
    tare_data *data = data_in_file(p->floats, "calibration.npz", p->calibration);
    CHECK_DONE(tare_calibrate_data(prepared, data, NULL, NULL, job_error()));
    CHECK_DONE(tare_convert_to_reference_fx(prepared, &lenient, &made, job_error()));
    tare_data_close(data);
    tare_model_destroy(prepared);
    tare_qconfig_mapping_destroy(mapping);
    return made;
}

// The one with the largest first channel.
static void keep_one_sample(plant *p) {
    tare_tensor *all = p->check;
    const float *x = tare__f32(all);
    size_t best = 0;
    for (size_t i = 0; i < SAMPLES; i++)
        if (x[i * WIDTH] > x[best * WIDTH]) best = i;
    p->check = NEW_INPUT(1, WIDTH);
    memcpy(p->check->data, &x[best * WIDTH], WIDTH * sizeof(float));
    tare_tensor_release(all);
}

static void check_fault(const fault *f, bool is_planted) {
    plant p;
    tare_analysis *a = NULL;
    tare_finding found;
    bool is_found = false, is_wrong = false;
    make(f, is_planted, &p);
    tare_model *reference = calibrated_reference(&p);
    if (f->is_brief) keep_one_sample(&p);
    tare_data *data = data_in_file(p.floats, "check.npz", p.check);
    CHECK_DONE(tare_analyze(reference, data, NULL, &a, job_error()));
    for (size_t i = 0; tare_analysis_get_finding(a, i, &found); i++) {
        const bool is_it = strcmp(found.kind, f->kind) == 0 && found.remedy[0] != '\0' &&
                           strncmp(found.layer, f->layer, strlen(f->layer)) == 0;
        if (i == 0 && is_planted && !f->is_not_first && !is_it)
            fail_msg("%s at %s: the first is %s at %s", f->kind, f->layer, found.kind, found.layer);
        is_found |= is_it;
        is_wrong |= f->wrong != NULL && strcmp(found.kind, f->wrong) == 0;
    }
    if (is_found != is_planted)
        fail_msg("%s at %s: planted %d, found %d", f->kind, f->layer, is_planted, is_found);
    if (is_wrong) fail_msg("%s: %s found", f->kind, f->wrong);
    tare_analysis_destroy(a);
    tare_data_close(data);
    tare_model_destroy(reference);
    tare_model_destroy(p.floats);
    tare_tensor_release(p.calibration);
    tare_tensor_release(p.check);
}

static void planted_faults_are_found(void **state) {
    static const fault faults[] = {
        {"constant-input", "", two_layers, make_constant},
        {"outlier-channel", "a", two_layers, make_outlier_channel},
        {"dead-channels", "relu", two_layers, make_dead_channel},
        {"saturation", "a", two_layers, make_saturation},
        {"saturation", "a", four_layers, make_saturation_in_front},
        {"data-mismatch", "a", four_layers, make_raw_calibration, "saturation"},
        {"data-mismatch", "a", four_layers, make_raw_data, "outlier-channel"},
        {"outlier-sample", "a", four_layers, make_loud_calibration, "data-mismatch"},
        {"saturation", "a", four_layers, make_raw_data, "data-mismatch", .is_brief = true},
        {"outlier-channel", "a", two_layers, make_outlier_channel, "dead-channels",
         .is_brief = true},
        {"constant-input", "a", four_layers, make_one_value},
        {"constant-input", "a", four_layers, make_one_sample},
        {"outlier-sample", "a", four_layers, make_outlier_of_calibration},
        {"dead-channels", "b", four_layers, make_zero_weight},
        {"dead-channels", "relu", two_layers, make_constant_channel, "outlier-channel"},
        {"bias-overflow", "", two_layers, make_large_bias, .is_not_first = true},
        {"resolution", "", two_layers, make_coarse},
        {"resolution", "b", two_layers, make_tiny_values, "uncalibrated", .is_not_first = true},
        {"outlier-sample", "a",
         "    a = self.a(x)\n"
         "    b = self.b(x)\n"
         "    matmul = torch.matmul(a, b)\n"
         "    return matmul\n",
         make_outlier_of_calibration, "resolution"},
        {"sensitive-input", "softmax",
         "    a = self.a(x)\n"
         "    softmax = torch.softmax(a, dim=1)\n"
         "    b = self.b(softmax)\n"
         "    return b\n",
         make_sharp},
        {"fixed-range", "reshape",
         "    a = self.a(x)\n"
         "    tanh = torch.tanh(a)\n"
         "    reshape = tanh.reshape(-1, 16)\n"
         "    return reshape\n",
         make_small, "outlier-sample"},
        {"shared-observer", "d",
         "    a = self.a(x)\n"
         "    b = self.b(x)\n"
         "    cat = torch.cat([a, b], dim=1)\n"
         "    c = self.c(cat)\n"
         "    d = self.d(a)\n"
         "    add = c + d\n"
         "    return add\n",
         make_shared},
        {"shared-observer", "c",
         "    a = self.a(x)\n"
         "    b = self.b(x)\n"
         "    cat = torch.cat([a, b], dim=1)\n"
         "    c = self.c(cat)\n"
         "    return c\n",
         make_joined, "resolution"},
        {"embedding-token", "a",
         "    words = self.words(x)\n"
         "    a = self.a(words)\n"
         "    return a\n",
         make_token},
    };
    (void)state;
    for (size_t i = 0; i < sizeof faults / sizeof *faults; i++) {
        check_fault(&faults[i], true);
        if (faults[i].make != make_token) check_fault(&faults[i], false); // its input is its own
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(planted_faults_are_found, temp_make, temp_remove),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
