// SPDX-License-Identifier: Apache-2.0
// Programs of torch.export: what they become, and archives that lie.
#include "support/models.h"
#include "support/test.h"

#include <minizip/zip.h>
#include <string.h>

#include "io/pt2/pt2.h"
#include "io/zip_memory.h"
#include "ops/print.h"

// --- a small program: scaled = relu(x * w + b), split in two, with a batch that is open ---

#define META(sizes, strides)                                                                       \
    "{\"dtype\": 7, \"sizes\": [" sizes "], \"strides\": [" strides                                \
    "], \"requires_grad\": false, "                                                                \
    "\"device\": {\"type\": \"cpu\", \"index\": null}, \"layout\": 7, \"storage_offset\": "        \
    "{\"as_int\": 0}}"
#define PAYLOAD(name, sizes, strides)                                                              \
    "{\"path_name\": \"" name                                                                      \
    "\", \"is_param\": true, \"use_pickle\": false, \"tensor_meta\": " META(sizes, strides) "}"
#define T(name)        "{\"as_tensor\": {\"name\": \"" name "\"}}"
#define ARG(name, arg) "{\"name\": \"" name "\", \"arg\": " arg ", \"kind\": 1}"
#define OPEN           "{\"as_expr\": {\"expr_str\": \"Symbol('s77')\", \"hint\": {\"as_int\": 2}}}"
#define FOUR           "{\"as_int\": 4}"
#define ONE            "{\"as_int\": 1}"

static const char weights_json[] = "{\"config\": {\"a.w\": " PAYLOAD(
    "weight_0", "{\"as_int\": 2}, {\"as_int\": 2}",
    "{\"as_int\": 1}, {\"as_int\": 2}") ", \"a.tied\": " PAYLOAD("weight_1", FOUR,
                                                                 ONE) ", \"b\": " PAYLOAD("weight_"
                                                                                          "1",
                                                                                          FOUR,
                                                                                          ONE) "}}";

static const char
    program_json[] =
        "{\"schema_version\": {\"major\": 8, \"minor\": 20}, \"opset_version\": {\"aten\": "
        "10}, "
        "\"graph_module\": {\"graph\": {\"inputs\": [" T("p_a_w") ", " T("p_a_tied") ", " T(
            "b_"
            "b") ", " T("x") "], "
                             "\"outputs\": [" T(
                                 "first") "], \"nodes\": ["
                                          "{\"name\": \"mul\", \"target\": "
                                          "\"torch.ops.aten.mul.Tensor\", "
                                          "\"inputs\": [" ARG(
                                              "self",
                                              T("x")) ", " ARG("other",
                                                               T(
                                                                   "p_a_"
                                                                   "tied")) "], \"outputs\": [" T("mul") "], "
                                                                                                         "\"metadata\": {\"nn_module_stack\": "
                                                                                                         "\"L__self__,,my.Net;L__self__a,a,torch.nn.modules."
                                                                                                         "linear.Linear\", "
                                                                                                         "\"torch_fn\": \"mul_1;method_descriptor.mul\", "
                                                                                                         "\"stack_trace\": \"line\"}}, "
                                                                                                         "{\"name\": \"sym_size\", \"target\": "
                                                                                                         "\"torch.ops.aten.sym_size.int\", \"inputs\": [" ARG(
                                                                                                             "self", T(
                                                                                                                         "x")) ", " ARG("dim", "{\"as_int\": 0}") "], \"outputs\": "
                                                                                                                                                                  "[{\"as_sym_int\": "
                                                                                                                                                                  "{\"as_name\": "
                                                                                                                                                                  "\"sym_size\"}}], "
                                                                                                                                                                  "\"metadata\": {}}, "
                                                                                                                                                                  "{\"name\": \"view\", "
                                                                                                                                                                  "\"target\": "
                                                                                                                                                                  "\"torch.ops.aten.view."
                                                                                                                                                                  "default\", \"inputs\": [" ARG("self",
                                                                                                                                                                                                 T("mul")) ", " ARG("size", "{\"as_sym_ints\": [{\"as_name\": \"sym_size\"}, {\"as_int\": 4}]}") "], \"outputs\": [" T("view") "], \"metadata\": "
                                                                                                                                                                                                                                                                                                                               "{}}, "
                                                                                                                                                                                                                                                                                                                               "{\"name\": "
                                                                                                                                                                                                                                                                                                                               "\"split\", "
                                                                                                                                                                                                                                                                                                                               "\"target\": "
                                                                                                                                                                                                                                                                                                                               "\"torch.ops.aten."
                                                                                                                                                                                                                                                                                                                               "split.Tensor\", "
                                                                                                                                                                                                                                                                                                                               "\"inputs\": [" ARG("self", T("view")) ", " ARG("split_size",
                                                                                                                                                                                                                                                                                                                                                                               "{\"as_int\": 2}") ", " ARG("dim",
                                                                                                                                                                                                                                                                                                                                                                                                           "{\"as_int\": "
                                                                                                                                                                                                                                                                                                                                                                                                           "1}") "], "
                                                                                                                                                                                                                                                                                                                                                                                                                 "\"output"
                                                                                                                                                                                                                                                                                                                                                                                                                 "s\": "
                                                                                                                                                                                                                                                                                                                                                                                                                 "[{\"as_"
                                                                                                                                                                                                                                                                                                                                                                                                                 "tensors"
                                                                                                                                                                                                                                                                                                                                                                                                                 "\": "
                                                                                                                                                                                                                                                                                                                                                                                                                 "[{"
                                                                                                                                                                                                                                                                                                                                                                                                                 "\"name\""
                                                                                                                                                                                                                                                                                                                                                                                                                 ": "
                                                                                                                                                                                                                                                                                                                                                                                                                 "\"first"
                                                                                                                                                                                                                                                                                                                                                                                                                 "\"}, "
                                                                                                                                                                                                                                                                                                                                                                                                                 "{\"name"
                                                                                                                                                                                                                                                                                                                                                                                                                 "\": "
                                                                                                                                                                                                                                                                                                                                                                                                                 "\"split_"
                                                                                                                                                                                                                                                                                                                                                                                                                 "unused_"
                                                                                                                                                                                                                                                                                                                                                                                                                 "1\"}]}],"
                                                                                                                                                                                                                                                                                                                                                                                                                 " \"metad"
                                                                                                                                                                                                                                                                                                                                                                                                                 "ata\": "
                                                                                                                                                                                                                                                                                                                                                                                                                 "{}}], "
                                                                                                                                                                                                                                                                                                                                                                                                                 "\"tensor"
                                                                                                                                                                                                                                                                                                                                                                                                                 "_values"
                                                                                                                                                                                                                                                                                                                                                                                                                 "\": "
                                                                                                                                                                                                                                                                                                                                                                                                                 "{\"x\":"
                                                                                                                                                                                                                                                                                                                                                                                                                 " " META(
                                                                                                                                                                                                                                                                                                                                                                                                                     OPEN
                                                                                                                                                                                                                                                                                                                                                                                                                     ", " FOUR,
                                                                                                                                                                                                                                                                                                                                                                                                                     FOUR
                                                                                                                                                                                                                                                                                                                                                                                                                     ", " ONE) ", \"mul\": " META(OPEN
                                                                                                                                                                                                                                                                                                                                                                                                                                                  ","
                                                                                                                                                                                                                                                                                                                                                                                                                                                  " " FOUR,
                                                                                                                                                                                                                                                                                                                                                                                                                                                  FOUR
                                                                                                                                                                                                                                                                                                                                                                                                                                                  ","
                                                                                                                                                                                                                                                                                                                                                                                                                                                  " " ONE) "}}, "
                                                                                                                                                                                                                                                                                                                                                                                                                                                           "\"signature\": {\"input_specs\": ["
                                                                                                                                                                                                                                                                                                                                                                                                                                                           "{\"parameter\": {\"arg\": {\"name\": \"p_a_w\"}, \"parameter_name\": \"a.w\"}}, "
                                                                                                                                                                                                                                                                                                                                                                                                                                                           "{\"parameter\": {\"arg\": {\"name\": \"p_a_tied\"}, \"parameter_name\": \"a.tied\"}}, "
                                                                                                                                                                                                                                                                                                                                                                                                                                                           "{\"buffer\": {\"arg\": {\"name\": \"b_b\"}, \"buffer_name\": \"b\", \"persistent\": true}}, "
                                                                                                                                                                                                                                                                                                                                                                                                                                                           "{\"user_input\": {\"arg\": " T(
                                                                                                                                                                                                                                                                                                                                                                                                                                                               "x") "}}], "
                                                                                                                                                                                                                                                                                                                                                                                                                                                                    "\"output_specs\": [{\"buffer_mutation\": {\"arg\": {\"name\": \"mul\"}, \"buffer_name\": \"b\"}}, "
                                                                                                                                                                                                                                                                                                                                                                                                                                                                    "{\"user_output\": {\"arg\": " T(
                                                                                                                                                                                                                                                                                                                                                                                                                                                                        "first") "}}]}, "
                                                                                                                                                                                                                                                                                                                                                                                                                                                                                 "\"module_call_graph\": [{\"fqn\": \"\", \"signature\": {\"inputs\": [], \"outputs\": [], \"in_spec\": "
                                                                                                                                                                                                                                                                                                                                                                                                                                                                                 "\"[1, {\\\"type\\\": \\\"builtins.tuple\\\", \\\"context\\\": \\\"null\\\", \\\"children_spec\\\": ["
                                                                                                                                                                                                                                                                                                                                                                                                                                                                                 "{\\\"type\\\": \\\"builtins.tuple\\\", \\\"context\\\": \\\"null\\\", \\\"children_spec\\\": []}, "
                                                                                                                                                                                                                                                                                                                                                                                                                                                                                 "{\\\"type\\\": \\\"builtins.dict\\\", \\\"context\\\": \\\"[\\\\\\\"x\\\\\\\"]\\\", \\\"children_spec\\\": [{}]}]}]\", "
                                                                                                                                                                                                                                                                                                                                                                                                                                                                                 "\"out_spec\": \"\", \"forward_arg_names\": [\"x\"]}}]}}";

typedef struct part {
    const char *name;
    const void *bytes;
    size_t size;
    int method;
} part;

static const float weight[] = {1, 2, 3, 4}, tied[] = {1, -1, 2, -2};
#define TEXT_PART(name, chars)                                                                     \
    { name, chars, sizeof(chars) - 1, 0 }
enum { FORMAT, PROGRAM, WEIGHTS, WEIGHT_0, WEIGHT_1, PART_COUNT };
static const part plain[PART_COUNT] = {
    TEXT_PART("net/archive_format", "pt2"),
    TEXT_PART("net/models/model.json", program_json),
    TEXT_PART("net/data/weights/model_weights_config.json", weights_json),
    {"net/data/weights/weight_0", weight, sizeof weight, 0},
    {"net/data/weights/weight_1", tied, sizeof tied, Z_DEFLATED}};

static zip_memory pack(const part *parts, size_t count) {
    zip_memory memory = {0};
    zipFile zip = tare__zip_open(&memory);
    const zip_fileinfo info = {0};
    for (size_t i = 0; i < count; i++) {
        assert_int_equal(zipOpenNewFileInZip(zip, parts[i].name, &info, NULL, 0, NULL, 0, NULL,
                                             parts[i].method, 6),
                         ZIP_OK);
        assert_int_equal(zipWriteInFileInZip(zip, parts[i].bytes, (unsigned)parts[i].size), ZIP_OK);
        zipCloseFileInZip(zip);
    }
    zipClose(zip, NULL);
    return memory;
}

static tare_status read_bytes(const zip_memory *bytes, module **out, tare_error *err) {
    storage *store = tare__storage_adopt(bytes->data, bytes->size, NULL, NULL);
    if (store == NULL) return tare__out_of_memory(err);
    const tare_status status = tare__pt2_read(store, bytes->data, bytes->size,
                                              &tare__context_or_builtin(NULL)->classes, out, err);
    tare__storage_release(store);
    return status;
}

static void programs_become_graph_modules(void **state) {
    (void)state;
    zip_memory bytes = pack(plain, PART_COUNT);
    module *root = NULL;
    text printed = {0};
    assert_true(tare__pt2_is_archive(bytes.data, bytes.size));
    CHECK_DONE(read_bytes(&bytes, &root, job_error()));
    CHECK_OK(tare__print_model(root, &printed, NULL));
    assert_string_equal(
        tare__text_chars(&printed),
        "GraphModule(\n  (a): Module()\n  (_guards_fn): GuardsFn()\n)\n\n"
        "def forward(self, x):\n"
        "    x, = fx_pytree.tree_flatten_spec(([], {'x':x}), self._in_spec)\n"
        "    a_w = self.a.w;  a_w = None\n"
        "    a_tied = self.a.tied\n"
        "    b = self.b\n"
        "    _guards_fn = self._guards_fn(x);  _guards_fn = None\n"
        "    mul = torch.ops.aten.mul.Tensor(x, a_tied);  a_tied = None\n"
        "    sym_size = torch.ops.aten.sym_size.int(x, 0);  x = None\n"
        "    view = torch.ops.aten.view.default(mul, [sym_size, 4]);  sym_size = None\n"
        "    split = torch.ops.aten.split.Tensor(view, 2, 1);  view = None\n"
        "    first = split[0];  split = None\n"
        "    copy__default = torch.ops.aten.copy_.default(b, mul);  b = mul = "
        "copy__default = None\n"
        "    return pytree.tree_unflatten((first,), self._out_spec)\n");
    tare__text_release(&printed);
    tare__module_release(root);
    tare__free(bytes.data);
}

static void tensors_are_placed_as_the_table_says(void **state) {
    (void)state;
    zip_memory bytes = pack(plain, PART_COUNT);
    module *root = NULL;
    CHECK_DONE(read_bytes(&bytes, &root, job_error()));
    const tare_tensor *w = tare__module_find_tensor(root, "a.w");
    const double expected[] = {1, 3, 2, 4}; // the record is transposed
    for (int64_t i = 0; i < 4; i++) assert_true(tare__tensor_get(w, i) == expected[i]);
    assert_ptr_equal(tare__module_find_tensor(root, "a.tied"), tare__module_find_tensor(root, "b"));
    tare__module_release(root);
    tare__free(bytes.data);
}

static void sources_and_open_sizes_are_kept(void **state) {
    (void)state;
    zip_memory bytes = pack(plain, PART_COUNT);
    module *root = NULL;
    CHECK_DONE(read_bytes(&bytes, &root, job_error()));
    const node *mul = tare__graph_find(root->graph, "mul");
    assert_string_equal(mul->scope_path, "a");
    assert_string_equal(mul->scope_type, "torch.nn.Linear");
    assert_string_equal(
        mul->meta_json,
        "{\"val\": {\"shape\": [null, 4], \"dtype\": \"torch.float32\", \"tensor\": " META(
            OPEN ", " FOUR,
            FOUR ", " ONE) "}, \"nn_module_stack\": "
                           "[[\"L__self__\", \"\", \"my.Net\"], [\"L__self__a\", \"a\", "
                           "\"torch.nn.modules.linear.Linear\"]], \"torch_fn\": [\"mul_1\", "
                           "\"method_descriptor.mul\"], \"stack_trace\": \"line\"}");
    tare__module_release(root);
    tare__free(bytes.data);
}

// --- what is refused ---

static void check_refused_parts(const part *parts, size_t count, const char *words) {
    zip_memory bytes = pack(parts, count);
    module *root = NULL;
    tare_error *err = tare_error_create();
    if (read_bytes(&bytes, &root, err) == TARE_OK) fail_msg("'%s': the archive was read", words);
    if (strstr(tare_error_message(err), words) == NULL &&
        strstr(tare_error_where(err), words) == NULL)
        fail_msg("'%s: %s' lacks '%s'", tare_error_where(err), tare_error_message(err), words);
    tare_error_destroy(err);
    tare__free(bytes.data);
}

// The plain archive with `old` replaced by `new` in one member.
static void check_changed(int which, const char *old, const char *new, const char *words) {
    part parts[PART_COUNT];
    text changed = {0};
    memcpy(parts, plain, sizeof parts);
    const char *chars = plain[which].bytes, *at = strstr(chars, old);
    if (at == NULL) fail_msg("nothing to change: '%s'", old);
    tare__text_append_n(&changed, chars, (size_t)(at - chars));
    tare__text_append(&changed, new);
    tare__text_append(&changed, at + strlen(old));
    parts[which].bytes = tare__text_chars(&changed);
    parts[which].size = changed.length;
    check_refused_parts(parts, PART_COUNT, words);
    tare__text_release(&changed);
}

static void programs_that_contradict_themselves_are_refused(void **state) {
    (void)state;
    static const char *const changes[][3] = {
        {"\"major\": 8", "\"major\": 9", "schema version 9"},
        {"\"schema_version\"", "\"no_version\"", "$.schema_version"},
        {"\"graph_module\"", "\"graph\"", "$.graph_module"},
        {"{\"as_tensor\": {\"name\": \"mul\"}}, \"kind\"",
         "{\"as_tensor\": {\"name\": \"none\"}}, \"kind\"", "given by nothing"},
        {"\"parameter_name\": \"a.w\"", "\"parameter_name\": \"a.v\"", "no data of 'a.v'"},
        {"\"parameter_name\": \"a.w\"", "\"parameter_name\": \"a.tied\"", "there twice"},
        {"{\"user_input\"", "{\"token\"", "'token' are not supported"},
        {"{\"user_output\"", "{\"loss_output\"", "'loss_output' are not supported"},
        {"\"buffer_name\": \"b\"}}, {\"user_output\"", "\"buffer_name\": \"c\"}}, {\"user_output\"",
         "no input of the program"},
        {"torch.ops.aten.split.Tensor", "torch.ops.higher_order.cond",
         "'torch.ops.higher_order.cond' are not supported"},
        {"{\"as_int\": 2}, \"kind\"", "{\"as_graph\": 2}, \"kind\"",
         "'as_graph' are not supported"},
        {"{\"as_int\": 2}, \"kind\"", "{\"as_int\": 2, \"as_none\": 1}, \"kind\"", "one key"},
        {"{\"as_int\": 2}, \"kind\"", "{\"as_scalar_type\": 99}, \"kind\"", "code 99"},
        {"\"name\": \"view\", \"target\"", "\"name\": \"mul\", \"target\"",
         "cannot be named 'mul'"},
        {"L__self__a,a,torch", "L__self__a;torch", "too few fields"},
        {"[\\\\\\\"x\\\\\\\"]", "[]", "do not make 1 names"},
        {"\"forward_arg_names\": [\"x\"]", "\"forward_arg_names\": [\"x y\"]", "is no name"},
        {"\"nodes\": [", "\"nodes\": [[", "models/model.json"},
    };
    for (size_t i = 0; i < sizeof changes / sizeof *changes; i++)
        check_changed(PROGRAM, changes[i][0], changes[i][1], changes[i][2]);
}

static void tables_that_do_not_fit_their_records_are_refused(void **state) {
    (void)state;
    static const char *const changes[][3] = {
        {"\"weight_0\"", "\"weight_9\"", "no member 'data/weights/weight_9'"},
        {"\"weight_0\"", "\"../../weight_0\"", "no member"},
        {"\"weight_0\"", "\"/etc/passwd\"", "no member"},
        {"\"use_pickle\": false", "\"use_pickle\": true", "Python pickle"},
        {"\"dtype\": 7", "\"dtype\": 31", "code 31"},
        {"\"dtype\": 7", "\"dtype\": -1", "code -1"},
        {"{\"as_int\": 2}, {\"as_int\": 2}], \"strides\"",
         "{\"as_int\": 3}, {\"as_int\": 2}], \"strides\"", "reaches beyond"},
        {"{\"as_int\": 2}, {\"as_int\": 2}], \"strides\"",
         "{\"as_int\": 4611686018427387904}, {\"as_int\": 4611686018427387904}], \"strides\"",
         "more than can be counted"},
        {"{\"as_int\": 2}, {\"as_int\": 2}], \"strides\"",
         "{\"as_int\": -2}, {\"as_int\": 2}], \"strides\"", "negative"},
        {"{\"as_int\": 2}, {\"as_int\": 2}], \"strides\"",
         "{\"as_expr\": {}}, {\"as_int\": 2}], \"strides\"", "numbers"},
        {"{\"as_int\": 1}, {\"as_int\": 2}]", "{\"as_int\": 9223372036854775807}, {\"as_int\": 2}]",
         "reaches beyond"},
        {"{\"as_int\": 1}, {\"as_int\": 2}]", "{\"as_int\": 1}]", "1 strides for 2"},
        {"\"storage_offset\": {\"as_int\": 0}", "\"storage_offset\": {\"as_int\": 2}",
         "reaches beyond"},
        {"\"storage_offset\": {\"as_int\": 0}",
         "\"storage_offset\": {\"as_int\": 9223372036854775807}", "reaches beyond"},
    };
    for (size_t i = 0; i < sizeof changes / sizeof *changes; i++)
        check_changed(WEIGHTS, changes[i][0], changes[i][1], changes[i][2]);
    part parts[PART_COUNT];
    memcpy(parts, plain, sizeof parts);
    parts[WEIGHT_0].size = 15;
    check_refused_parts(parts, PART_COUNT,
                        "size 15 is not a multiple of element size 4 for dtype torch.float32");
    // A dimension of stride 0 makes much out of little.
    check_changed(
        WEIGHTS,
        "{\"as_int\": 2}, {\"as_int\": 2}], \"strides\": [{\"as_int\": 1}, {\"as_int\": 2}]",
        "{\"as_int\": 1000000000000}, {\"as_int\": 2}], \"strides\": [{\"as_int\": 0}, "
        "{\"as_int\": 2}]",
        "too many");
}

static void archives_that_lie_are_refused(void **state) {
    (void)state;
    static const struct {
        int which;
        const char *name, *words;
    } renamed[] = {
        {WEIGHT_1, "net/../weight_1", "leads out of the archive"},
        {WEIGHT_1, "/net/weight_1", "leads out of the archive"},
        {WEIGHT_1, "net/a\\b", "leads out of the archive"},
        {WEIGHT_1, "net/C:x", "leads out of the archive"},
        {WEIGHT_1, "net//x", "leads out of the archive"},
        {WEIGHT_1, "other/data/weights/weight_1", "outside of the archive's folder 'net'"},
        {WEIGHT_1, "net/data/weights/weight_0", "there twice"},
        {WEIGHT_1, "net/data/weights/weight_2", "no member 'data/weights/weight_1'"},
        {PROGRAM, "net/models/model.txt", "no member 'models/*.json'"},
        {WEIGHTS, "net/data/weights/model.pt", "Python pickle"},
    };
    part parts[PART_COUNT];
    for (size_t i = 0; i < sizeof renamed / sizeof *renamed; i++) {
        memcpy(parts, plain, sizeof parts);
        parts[renamed[i].which].name = renamed[i].name;
        check_refused_parts(parts, PART_COUNT, renamed[i].words);
    }
    memcpy(parts, plain, sizeof parts);
    parts[FORMAT] = (part)TEXT_PART("net/archive_format", "pt3");
    check_refused_parts(parts, PART_COUNT, "format is 'pt3'");
    parts[FORMAT] = (part)TEXT_PART("net/archive_version", "1");
    check_refused_parts(parts, PART_COUNT, "version 1");
    parts[FORMAT] = (part)TEXT_PART("net/byteorder", "big");
    check_refused_parts(parts, PART_COUNT, "byte order 'big'");
}

// Whatever is left of a file, it is an error and never a crash.
static void truncated_archives_are_refused(void **state) {
    (void)state;
    zip_memory bytes = pack(plain, PART_COUNT);
    for (size_t size = 0; size < bytes.size; size++) {
        unsigned char *copy = malloc(size + 1); // exactly as large: reads past the end are seen
        module *root = NULL;
        assert_non_null(copy);
        memcpy(copy, bytes.data, size);
        const zip_memory cut = {.data = copy, .size = size};
        if (read_bytes(&cut, &root, NULL) == TARE_OK)
            fail_msg("%zu of %zu bytes were read", size, bytes.size);
        if (size > 100 && !tare__pt2_is_archive(copy, size))
            fail_msg("%zu of %zu bytes are not recognized", size, bytes.size);
        free(copy);
    }
    tare__free(bytes.data);
}

static void a_damaged_record_does_not_match_its_checksum(void **state) {
    (void)state;
    zip_memory bytes = pack(plain, PART_COUNT);
    module *root = NULL;
    for (size_t i = 0; i + sizeof weight <= bytes.size; i++)
        if (memcmp(bytes.data + i, weight, sizeof weight) == 0) bytes.data[i] ^= 1;
    CHECK_REFUSED(read_bytes(&bytes, &root, job_error()), TARE_MALFORMED_FILE, "checksum");
    tare__free(bytes.data);
}

static void every_allocation_may_fail(void **state) {
    (void)state;
    zip_memory bytes = pack(plain, PART_COUNT);
    module *root = NULL;
    tare_status status;
    EVERY_ALLOCATION_FAILS(status, status = read_bytes(&bytes, &root, NULL),
                           tare__module_release(root));
    tare__free(bytes.data);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(programs_become_graph_modules),
        cmocka_unit_test(tensors_are_placed_as_the_table_says),
        cmocka_unit_test(sources_and_open_sizes_are_kept),
        cmocka_unit_test(programs_that_contradict_themselves_are_refused),
        cmocka_unit_test(tables_that_do_not_fit_their_records_are_refused),
        cmocka_unit_test(archives_that_lie_are_refused),
        cmocka_unit_test(truncated_archives_are_refused),
        cmocka_unit_test(a_damaged_record_does_not_match_its_checksum),
        cmocka_unit_test(every_allocation_may_fail),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
