// SPDX-License-Identifier: Apache-2.0
// The networks of tests/data/networks.zip as programs of torch.export: each computes in float what
// torch computed, is annotated, prepared and converted to what torchao prints, by two quantizers
// and their forms, and runs in integers. Data: tests/data/network_programs.zip, made by
// tests/data/pack_network_programs.py; values that networks.zip has are taken from there.
#include "support/test.h"

#include <zlib.h>

#include "core/memory/alloc.h"
#include "core/text/text.h"
#include "golden/networks.h"
#include "model/model.h"
#include "replay/case.h"
#include "replay/text_compare.h"
#include "support/models.h"
#include "support/temp.h"

// Least signal-to-noise ratios of the integer outputs in dB, by XNNPACKQuantizer and by
// X86InductorQuantizer: some 4 dB below what was measured.
// clang-format off
#define PROGRAMS(X) \
    X("resnet18", 26, 25) X("resnet50", 27, 25) X("mobilenet_v2", 12, 13)                          \
    X("mobilenet_v3_small", 11, 16) X("mobilenet_v3_large", 9, 10) X("efficientnet_b0", 11, 12)    \
    X("vgg11", 10, 26) X("densenet121", 21, 16) X("inception_v3", 14, 8) X("googlenet", 12, 16)    \
    X("shufflenet_v2_x1_0", 9, 10) X("squeezenet1_1", 14, 15) X("mnasnet1_0", 23, 19)              \
    X("regnet_y_400mf", 21, 24) X("convnext_tiny", 25, 32) X("vit_b_16", 26, 34)                   \
    X("swin_t", 14, 34) X("deeplabv3_resnet50", 24, 26) X("fcn_resnet50", 27, 26)                  \
    X("lraspp_mobilenet_v3_large", 17, 22) X("lstm_tagger", 62, 64) X("gru_classifier", 43, 42)    \
    X("bert", 22, 44) X("minilm", 25, 42) X("gpt", 29, 37) X("llama", 28, 35)                      \
    X("seq2seq", 30, 37) X("layers", 30, 32) X("spellings", 53, 99)
// clang-format on

typedef struct form {
    const char *name, *quantizer, *config;
    bool is_qat;
} form;

static const form forms[] = {
    {"xnnpack", "XNNPACKQuantizer", "\"is_per_channel\": true", false},
    {"xnnpack_tensor", "XNNPACKQuantizer", "", false},
    {"xnnpack_dynamic", "XNNPACKQuantizer", "\"is_per_channel\": true, \"is_dynamic\": true",
     false},
    {"xnnpack_qat", "XNNPACKQuantizer", "\"is_per_channel\": true, \"is_qat\": true", true},
    {"x86", "X86InductorQuantizer", "", false},
    {"x86_dynamic", "X86InductorQuantizer", "\"is_dynamic\": true", false},
    {"x86_qat", "X86InductorQuantizer", "\"is_qat\": true", true},
};

typedef struct network {
    const char *name;
    recorded_case recorded; // of networks.zip
    json_t *json;           // case.json of network_programs.zip
    double least_xnnpack, least_x86;
} network;

static bool has_train(const network *n) {
    return json_object_get(json_object_get(n->json, "sums"), "x86_qat convert") != NULL;
}

// --- texts ---

static bool append(void *user, const char *chars, size_t length) {
    text *out = user;
    tare__text_append_n(out, chars, length);
    return !out->failed;
}

static void compare_whole(const network *n, const char *title, const char *numbers,
                          const char *ours) {
    const agreement exact = {.relative = 1e-15};
    findings found = {0};
    char *expected = text_of_lines(json_object_get(n->json, "lines"), numbers);
    compare_texts(title, ours, expected, &exact, &found);
    if (findings_any(&found)) fail_msg("%s: %s", n->name, tare__text_chars(&found.first));
    findings_release(&found);
    tare__free(expected);
}

// With the parameters of observers that saw nothing: torchao shows them no weights, unlike tare.
static char *as_if_unseen(const char *chars) {
    static const char call[] = "quantize_per_tensor.default(";
    text out = {0};
    for (const char *at; (at = strstr(chars, call)) != NULL; chars = at) {
        at = strchr(at, ','); // behind the tensor
        assert_non_null(at);
        tare__text_append_n(&out, chars, (size_t)(at - chars));
        tare__text_append(&out, ", 1.0, 0");
        for (int i = 0; i < 2; i++) {
            at = strchr(at + 1, ',');
            assert_non_null(at);
        }
    }
    tare__text_append(&out, chars);
    char *taken = tare__text_take(&out);
    assert_non_null(taken);
    return taken;
}

// Printed without runs of blank lines, as recorded.
static char *printed_text(const tare_model *model) {
    text all = {0}, out = {0};
    CHECK_DONE(tare_model_print(model, TARE_PRINT_MODEL, append, &all, job_error()));
    const char *chars = tare__text_chars(&all), *hint = strstr(chars, "# To see more debug info");
    size_t length = hint != NULL ? (size_t)(hint - chars) : strlen(chars);
    while (length > 0 && (chars[length - 1] == '\n' || chars[length - 1] == ' ')) length--;
    for (size_t i = 0; i < length; i++) {
        if (strncmp(chars + i, "\n\n\n\n", 4) == 0) i += 2;
        tare__text_char(&out, chars[i]);
    }
    tare__text_char(&out, '\n');
    char *taken = as_if_unseen(tare__text_chars(&out));
    tare__text_release(&out);
    tare__text_release(&all);
    return taken;
}

// The number of texts compared: 1, or 0 where nothing is recorded.
static size_t check_text(const network *n, const form *f, const char *stage,
                         const tare_model *model) {
    char title[64];
    snprintf(title, sizeof title, "%s %s", f->name, stage);
    const json_t *whole = json_object_get(json_object_get(n->json, "texts"), title);
    const json_t *sum = json_object_get(json_object_get(n->json, "sums"), title);
    char *ours = printed_text(model);
    if (whole != NULL)
        compare_whole(n, title, json_string_value(whole), ours);
    else if (sum != NULL && (json_int_t)crc32(0, (const Bytef *)ours, (uInt)strlen(ours)) !=
                                json_integer_value(sum))
        fail_msg("%s: %s: not the text that torchao prints (tools/compare_pt2e.py shows where it "
                 "differs)",
                 n->name, title);
    tare__free(ours);
    return whole != NULL || sum != NULL ? 1 : 0;
}

// --- the flow ---

static size_t check_form(const network *n, const form *f, const tare_model *model) {
    const tare_convert_pt2e_options lenient = {.struct_size = sizeof lenient, .is_lenient = true};
    tare_model *p = prepare_program(model, f->quantizer, f->config, f->is_qat), *c = NULL;
    CHECK_DONE(tare_convert_pt2e(p, &lenient, &c, job_error()));
    check_explained(c);
    check_preview(p, c);
    const size_t count = check_text(n, f, "prepare", p) + check_text(n, f, "convert", c);
    tare_model_destroy(c);
    tare_model_destroy(p);
    return count;
}

static void check_integers(const network *n, const form *f, const tare_model *model, double least) {
    const tensors inputs = tensors_of(&n->recorded.data, "input");
    const tensors outputs = tensors_of(&n->recorded.data, "float");
    tare_model *p = prepare_program(model, f->quantizer, f->config, f->is_qat), *c = NULL,
               *q = NULL;
    calibrate_network(p, &inputs);
    CHECK_DONE(tare_convert_pt2e(p, NULL, &c, job_error()));
    CHECK_DONE(tare_lower_pt2e(c, NULL, &q, job_error()));
    check_explained(q);
    tensors found = run_tensors(q, &inputs);
    const double db = sqnr_of(&outputs, &found);
    print_message("%s: %.1f dB by %s\n", n->name, db, f->quantizer);
    if (!(db >= least)) fail_msg("%s: %.1f dB by %s, expected %.1f", n->name, db, f->name, least);
    release_tensors(&found);
    tare_model_destroy(q);
    tare_model_destroy(c);
    tare_model_destroy(p);
}

static void check_values(const network *n, const tare_model *model) {
    const tensors inputs = tensors_of(&n->recorded.data, "input");
    const tensors outputs = tensors_of(&n->recorded.data, "float");
    tensors found = run_tensors(model, &inputs);
    check_near(n->name, &outputs, &found);
    release_tensors(&found);
    check_integers(n, &forms[0], model, n->least_xnnpack);
    check_integers(n, &forms[4], model, n->least_x86);
}

static void check_network(void **state) {
    network *n = *state;
    case_bytes bytes = {0};
    size_t compared = 0;
    read_network(n->name, &n->recorded);
    read_program_file(n->name, "case.json", &bytes);
    CHECK_DONE(tare__json_parse((const char *)bytes.data, bytes.size, &n->json, job_error()));
    tare__storage_release(bytes.store);
    tare_model *model = read_program(&n->recorded, "model.pt2");
    tare_model *train = has_train(n) ? read_program(&n->recorded, "train.pt2") : NULL;
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++)
        if (!forms[i].is_qat || train != NULL)
            compared += check_form(n, &forms[i], forms[i].is_qat ? train : model);
    assert_int_equal(compared, json_object_size(json_object_get(n->json, "texts")) +
                                   json_object_size(json_object_get(n->json, "sums")));
    check_values(n, model);
    tare_model_destroy(train);
    tare_model_destroy(model);
    json_decref(n->json);
    case_release(&n->recorded);
}

#define ROW(network_name, xnnpack, x86)                                                            \
    {.name = network_name, .least_xnnpack = xnnpack, .least_x86 = x86},
static network networks[] = {PROGRAMS(ROW)};

int main(void) {
    enum { COUNT = sizeof networks / sizeof *networks };
    struct CMUnitTest tests[COUNT];
    for (size_t i = 0; i < COUNT; i++)
        tests[i] = (struct CMUnitTest){
            .name = networks[i].name, .test_func = check_network, .initial_state = &networks[i]};
    return cmocka_run_group_tests(tests, temp_make, temp_remove);
}
