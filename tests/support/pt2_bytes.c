// SPDX-License-Identifier: Apache-2.0
// Packs the program's records into a zip archive, and checks what reading a changed one reports.
#include "support/pt2_bytes.h"

#include "support/test.h"

#include "io/pt2/pt2.h"
#include "model/model.h"

// clang-format off
static const char weights_json[] =
    "{\"config\": {\"a.w\": {\"path_name\": \"weight_0\", \"is_param\": true, \"use_pickle\": false, "
    "\"tensor_meta\": {\"dtype\": 7, \"sizes\": [{\"as_int\": 2}, {\"as_int\": 2}], \"strides\": "
    "[{\"as_int\": 1}, {\"as_int\": 2}], \"requires_grad\": false, \"device\": {\"type\": \"cpu\", "
    "\"index\": null}, \"layout\": 7, \"storage_offset\": {\"as_int\": 0}}}, \"a.tied\": "
    "{\"path_name\": \"weight_1\", \"is_param\": true, \"use_pickle\": false, \"tensor_meta\": "
    "{\"dtype\": 7, \"sizes\": [{\"as_int\": 4}], \"strides\": [{\"as_int\": 1}], \"requires_grad\": "
    "false, \"device\": {\"type\": \"cpu\", \"index\": null}, \"layout\": 7, \"storage_offset\": "
    "{\"as_int\": 0}}}, \"b\": {\"path_name\": \"weight_1\", \"is_param\": true, \"use_pickle\": "
    "false, \"tensor_meta\": {\"dtype\": 7, \"sizes\": [{\"as_int\": 4}], \"strides\": [{\"as_int\": "
    "1}], \"requires_grad\": false, \"device\": {\"type\": \"cpu\", \"index\": null}, \"layout\": 7, "
    "\"storage_offset\": {\"as_int\": 0}}}}}";

static const char program_json[] =
    "{\"schema_version\": {\"major\": 8, \"minor\": 20}, \"opset_version\": {\"aten\": 10}, "
    "\"graph_module\": {\"graph\": {\"inputs\": [{\"as_tensor\": {\"name\": \"p_a_w\"}}, "
    "{\"as_tensor\": {\"name\": \"p_a_tied\"}}, {\"as_tensor\": {\"name\": \"b_b\"}}, {\"as_tensor\": "
    "{\"name\": \"x\"}}], \"outputs\": [{\"as_tensor\": {\"name\": \"first\"}}], \"nodes\": [{\"name\": "
    "\"mul\", \"target\": \"torch.ops.aten.mul.Tensor\", \"inputs\": [{\"name\": \"self\", \"arg\": "
    "{\"as_tensor\": {\"name\": \"x\"}}, \"kind\": 1}, {\"name\": \"other\", \"arg\": {\"as_tensor\": "
    "{\"name\": \"p_a_tied\"}}, \"kind\": 1}], \"outputs\": [{\"as_tensor\": {\"name\": \"mul\"}}], "
    "\"metadata\": {\"nn_module_stack\": \"L__self__,,my.Net;L__self__a,a,torch.nn.modules.lin"
    "ear.Linear\", \"torch_fn\": \"mul_1;method_descriptor.mul\", \"stack_trace\": \"line\"}}, "
    "{\"name\": \"sym_size\", \"target\": \"torch.ops.aten.sym_size.int\", \"inputs\": [{\"name\": "
    "\"self\", \"arg\": {\"as_tensor\": {\"name\": \"x\"}}, \"kind\": 1}, {\"name\": \"dim\", \"arg\": "
    "{\"as_int\": 0}, \"kind\": 1}], \"outputs\": [{\"as_sym_int\": {\"as_name\": \"sym_size\"}}], "
    "\"metadata\": {}}, {\"name\": \"view\", \"target\": \"torch.ops.aten.view.default\", "
    "\"inputs\": [{\"name\": \"self\", \"arg\": {\"as_tensor\": {\"name\": \"mul\"}}, \"kind\": 1}, "
    "{\"name\": \"size\", \"arg\": {\"as_sym_ints\": [{\"as_name\": \"sym_size\"}, {\"as_int\": 4}]}, "
    "\"kind\": 1}], \"outputs\": [{\"as_tensor\": {\"name\": \"view\"}}], \"metadata\": {}}, "
    "{\"name\": \"split\", \"target\": \"torch.ops.aten.split.Tensor\", \"inputs\": [{\"name\": "
    "\"self\", \"arg\": {\"as_tensor\": {\"name\": \"view\"}}, \"kind\": 1}, {\"name\": \"split_size\", "
    "\"arg\": {\"as_int\": 2}, \"kind\": 1}, {\"name\": \"dim\", \"arg\": {\"as_int\": 1}, \"kind\": "
    "1}], \"outputs\": [{\"as_tensors\": [{\"name\": \"first\"}, {\"name\": \"split_unused_1\"}]}], "
    "\"metadata\": {}}], \"tensor_values\": {\"x\": {\"dtype\": 7, \"sizes\": [{\"as_expr\": "
    "{\"expr_str\": \"Symbol('s77')\", \"hint\": {\"as_int\": 2}}}, {\"as_int\": 4}], \"strides\": "
    "[{\"as_int\": 4}, {\"as_int\": 1}], \"requires_grad\": false, \"device\": {\"type\": \"cpu\", "
    "\"index\": null}, \"layout\": 7, \"storage_offset\": {\"as_int\": 0}}, \"mul\": {\"dtype\": 7, "
    "\"sizes\": [{\"as_expr\": {\"expr_str\": \"Symbol('s77')\", \"hint\": {\"as_int\": 2}}}, "
    "{\"as_int\": 4}], \"strides\": [{\"as_int\": 4}, {\"as_int\": 1}], \"requires_grad\": false, "
    "\"device\": {\"type\": \"cpu\", \"index\": null}, \"layout\": 7, \"storage_offset\": {\"as_int\": "
    "0}}}}, \"signature\": {\"input_specs\": [{\"parameter\": {\"arg\": {\"name\": \"p_a_w\"}, "
    "\"parameter_name\": \"a.w\"}}, {\"parameter\": {\"arg\": {\"name\": \"p_a_tied\"}, "
    "\"parameter_name\": \"a.tied\"}}, {\"buffer\": {\"arg\": {\"name\": \"b_b\"}, \"buffer_name\": "
    "\"b\", \"persistent\": true}}, {\"user_input\": {\"arg\": {\"as_tensor\": {\"name\": \"x\"}}}}], "
    "\"output_specs\": [{\"buffer_mutation\": {\"arg\": {\"name\": \"mul\"}, \"buffer_name\": \"b\"}}, "
    "{\"user_output\": {\"arg\": {\"as_tensor\": {\"name\": \"first\"}}}}]}, \"module_call_graph\": "
    "[{\"fqn\": \"\", \"signature\": {\"inputs\": [], \"outputs\": [], \"in_spec\": \"[1, {\\\"type\\\": "
    "\\\"builtins.tuple\\\", \\\"context\\\": \\\"null\\\", \\\"children_spec\\\": [{\\\"type\\\": "
    "\\\"builtins.tuple\\\", \\\"context\\\": \\\"null\\\", \\\"children_spec\\\": []}, {\\\"type\\\": "
    "\\\"builtins.dict\\\", \\\"context\\\": \\\"[\\\\\\\"x\\\\\\\"]\\\", \\\"children_spec\\\": [{}]}]}]\", "
    "\"out_spec\": \"\", \"forward_arg_names\": [\"x\"]}}]}}";
// clang-format on

static const float weight[] = {1, 2, 3, 4}, tied[] = {1, -1, 2, -2};
const pt2_member pt2_plain[PT2_MEMBERS] = {
    PT2_TEXT("net/archive_format", "pt2"),
    PT2_TEXT("net/models/model.json", program_json),
    PT2_TEXT("net/data/weights/model_weights_config.json", weights_json),
    {"net/data/weights/weight_0", weight, sizeof weight, 0},
    {"net/data/weights/weight_1", tied, sizeof tied, Z_DEFLATED}};

zip_memory pt2_pack(const pt2_member *members, size_t count) {
    zip_memory memory = {0};
    zipFile zip = zip_open(&memory);
    const zip_fileinfo info = {0};
    for (size_t i = 0; i < count; i++) {
        assert_int_equal(zipOpenNewFileInZip(zip, members[i].name, &info, NULL, 0, NULL, 0, NULL,
                                             members[i].method, 6),
                         ZIP_OK);
        assert_int_equal(zipWriteInFileInZip(zip, members[i].bytes, (unsigned)members[i].size),
                         ZIP_OK);
        zipCloseFileInZip(zip);
    }
    zipClose(zip, NULL);
    return memory;
}

tare_status pt2_read_bytes(const zip_memory *bytes, module **out, tare_error *err) {
    storage *store = tare__storage_adopt(bytes->data, bytes->size, NULL, NULL);
    if (store == NULL) return tare__out_of_memory(err);
    const tare_status status = tare__pt2_read(
        store, bytes->data, bytes->size, &tare__context_or_builtin(NULL)->classes, 0, out, err);
    tare__storage_release(store);
    return status;
}

static bool holds(const char *chars, const char *words) {
    return chars != NULL && strstr(chars, words) != NULL;
}

void pt2_check_refused(const zip_memory *bytes, const char *words) {
    module *root = NULL;
    tare_error *err = tare_error_create();
    if (pt2_read_bytes(bytes, &root, err) == TARE_OK) fail_msg("'%s': the archive was read", words);
    if (!holds(tare_error_message(err), words) && !holds(tare_error_where(err), words))
        fail_msg("'%s: %s' lacks '%s'", tare_error_where(err), tare_error_message(err), words);
    if (tare_error_hint(err)[0] == '\0')
        fail_msg("'%s' says not what to do", tare_error_message(err));
    tare_error_destroy(err);
}

void pt2_check_refused_members(const pt2_member *members, size_t count, const char *words) {
    zip_memory bytes = pt2_pack(members, count);
    pt2_check_refused(&bytes, words);
    tare__free(bytes.data);
}

void pt2_check_changed(int which, const char *old, const char *new, const char *words) {
    pt2_member members[PT2_MEMBERS];
    text changed = {0};
    memcpy(members, pt2_plain, sizeof members);
    const char *chars = pt2_plain[which].bytes, *at = strstr(chars, old);
    if (at == NULL) fail_msg("nothing to change: '%s'", old);
    tare__text_append_n(&changed, chars, (size_t)(at - chars));
    tare__text_append(&changed, new);
    tare__text_append(&changed, at + strlen(old));
    members[which].bytes = tare__text_chars(&changed);
    members[which].size = changed.length;
    pt2_check_refused_members(members, PT2_MEMBERS, words);
    tare__text_release(&changed);
}
