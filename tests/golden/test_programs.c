// SPDX-License-Identifier: Apache-2.0
// Programs that torch.export.save wrote: they compute what torch computed, also for another batch,
// and written by us they are what they were, field by field. Data: tests/data/programs.zip, made by
// tools/record_programs.py with PyTorch 2.15.
#include "support/models.h"
#include "support/temp.h"
#include "support/test.h"

#include <math.h>

#include "core/json/json.h"
#include "core/system/file.h"
#include "io/native/safetensors.h"
#include "io/pt2/payload.h"
#include "io/pt2/read/archive.h"
#include "ops/interpret.h"
#include "ops/op.h"
#include "replay/zip_memory.h"

static const char *const programs[] = {"arguments", "choice", "cond",       "containers", "dynamic",
                                       "encoder",   "map",    "open",       "pictures",   "rounds",
                                       "scan",      "static", "while_loop", "writes"};

// What may differ, and why: an id is of its archive's bytes; example inputs, a pickle, are left
// out; the version is that whose form it is.
static const char *const other_members[] = {".data/serialization_id",
                                            "data/sample_inputs/model.pt"};
static const char other_key[] = "torch_version";

// --- the recorded files ---

typedef struct bytes {
    storage *store;
    const unsigned char *data;
    size_t size;
} bytes;

// A member of the recorded files, whose archive has no root folder.
static bytes recorded(const char *name, const char *ending) {
    storage *store = NULL;
    const unsigned char *data = NULL;
    size_t size = 0;
    char member[64];
    (void)snprintf(member, sizeof member, "%s.%s", name, ending);
    CHECK_DONE(tare__file_map("tests/data/programs.zip", &store, &data, &size, job_error()));
    zip_memory memory = {.data = (unsigned char *)data, .size = size};
    unzFile zip = unzip_open(&memory);
    unz_file_info64 info;
    assert_non_null(zip);
    assert_int_equal(unzLocateFile(zip, member, 1), UNZ_OK);
    assert_int_equal(unzGetCurrentFileInfo64(zip, &info, NULL, 0, NULL, 0, NULL, 0), UNZ_OK);
    assert_int_equal(unzOpenCurrentFile(zip), UNZ_OK);
    storage *made = tare__storage_create(info.uncompressed_size);
    assert_non_null(made);
    unsigned char *to = (unsigned char *)tare__storage_data(made); // nobody else sees it yet
    assert_int_equal(unzReadCurrentFile(zip, to, (unsigned)info.uncompressed_size),
                     info.uncompressed_size);
    unzCloseCurrentFile(zip);
    unzClose(zip);
    tare__storage_release(store);
    return (bytes){made, to, info.uncompressed_size};
}

static const char *put_program(const char *name) {
    char file[64];
    const bytes b = recorded(name, "pt2");
    (void)snprintf(file, sizeof file, "%s.pt2", name);
    const char *path = temp_path(file);
    temp_write(path, b.data, b.size);
    tare__storage_release(b.store);
    return path;
}

// --- what they compute ---

static void check_tensor(const char *name, const tare_tensor *made, const tare_tensor *expected) {
    assert_int_equal(made->dtype, expected->dtype);
    assert_int_equal(made->ndim, expected->ndim);
    assert_memory_equal(made->shape, expected->shape, (size_t)made->ndim * sizeof *made->shape);
    for (int64_t i = 0; i < made->count; i++) {
        const double a = tare__tensor_get(made, i), b = tare__tensor_get(expected, i);
        if (a != b && !(fabs(a - b) <= 2e-6 + 2e-6 * fabs(b)))
            fail_msg("%s[%d]: %.9g, expected %.9g", name, (int)i, a, b);
    }
}

// Values in order, containers laid flat; None and numbers are not recorded.
static void check_outputs(const value *v, const safetensors *s, int call, int *next) {
    char name[32];
    for (uint32_t i = 0; tare__value_has_items(v) && i < v->count; i++)
        check_outputs(&v->as.items[i], s, call, next);
    if (v->kind != VALUE_TENSOR) return;
    (void)snprintf(name, sizeof name, "%d.out.%d", call, (*next)++);
    const tare_tensor *expected = tare__safetensors_get(s, name);
    if (expected == NULL)
        fail_msg("torch gave no '%s'", name);
    else
        check_tensor(name, v->as.tensor, expected);
}

static void run_call(const char *path, const safetensors *s, int call) {
    tare_model *model = NULL;
    arena memory = {0};
    value inputs[16], result;
    size_t count = 0;
    int tensor = 0, output = 0;
    char name[32];
    CHECK_DONE(tare_model_read(path, NULL, &model, job_error()));
    for (const node *n = model->root->graph->first; n != NULL; n = n->next) {
        if (!tare__node_is_input(n)) continue;
        assert_true(count < 16);
        (void)snprintf(name, sizeof name, "%d.in.%d", call, tensor++);
        inputs[count].kind = VALUE_TENSOR;
        inputs[count].as.tensor = tare__safetensors_get(s, name);
        assert_non_null(inputs[count++].as.tensor);
    }
    const interpreter it = {.root = model->root, .own = model->root, .thread_count = 1};
    CHECK_DONE(tare__interpret(&it, inputs, count, &memory, &result, job_error()));
    check_outputs(&result, s, call, &output);
    (void)snprintf(name, sizeof name, "%d.out.%d", call, output);
    assert_null(tare__safetensors_get(s, name)); // that was all
    tare__value_release_tensors(&result);
    tare__arena_release(&memory);
    tare_model_destroy(model);
}

static size_t inputs_of(const safetensors *s, int call, const tare_tensor *inputs[8]) {
    size_t count = 0;
    char name[64];
    for (; count < 8; count++) {
        (void)snprintf(name, sizeof name, "%d.in.%zu", call, count);
        if ((inputs[count] = tare__safetensors_get(s, name)) == NULL) break;
    }
    return count;
}

// By plan where shapes do not depend on data, twice with one session.
static void run_in_session(const char *path, const safetensors *s, int calls) {
    tare_model *model = NULL;
    tare_session *session = NULL;
    CHECK_DONE(tare_model_read(path, NULL, &model, job_error()));
    CHECK_DONE(tare_session_create(model, NULL, &session, job_error()));
    for (int call = 0; call < calls; call++) {
        const tare_tensor *inputs[8];
        tare_tensor *outputs[8];
        const size_t count = inputs_of(s, call, inputs);
        size_t made = 0;
        char name[64];
        CHECK_DONE(tare_session_run(session, inputs, count, outputs, 8, &made, job_error()));
        for (size_t i = 0; i < made; i++) {
            (void)snprintf(name, sizeof name, "%d.out.%zu", call, i);
            const value expected = {.kind = VALUE_TENSOR,
                                    .as.tensor = tare__safetensors_get(s, name)};
            assert_non_null(expected.as.tensor);
            check_tensor(name, outputs[i], expected.as.tensor);
            tare_tensor_release(outputs[i]);
        }
    }
    tare_session_destroy(session);
    tare_model_destroy(model);
}

static int count_calls(const safetensors *s) {
    char name[32] = "0.in.0";
    int count = 0;
    while (tare__safetensors_get(s, name) != NULL)
        (void)snprintf(name, sizeof name, "%d.in.0", ++count);
    return count;
}

static void run_calls(const char *name, const char *path) {
    const bytes b = recorded(name, "safetensors");
    safetensors s = {0};
    CHECK_DONE(tare__safetensors_parse(b.store, b.data, b.size, &s, job_error()));
    run_call(path, &s, 0);
    const int calls = count_calls(&s);
    for (int call = 1; call < calls; call++) run_call(path, &s, call);
    run_in_session(path, &s, calls);
    tare__safetensors_release(&s);
    tare__storage_release(b.store);
}

static void programs_compute_what_torch_did(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof programs / sizeof *programs; i++)
        run_calls(programs[i], put_program(programs[i]));
}

// torch.no_grad() and autocasts without effect: what they hold stands around, by its names.
static void contexts_without_effect_are_gone(void **state) {
    (void)state;
    const char *path = put_program("contexts");
    tare_model *model = NULL;
    run_calls("contexts", path);
    CHECK_DONE(tare_model_read(path, NULL, &model, job_error()));
    const graph *g = model->root->graph;
    for (const node *n = g->first; n != NULL; n = n->next)
        if (strstr(n->target, "wrap_with") != NULL) fail_msg("'%s' is left", n->name);
    assert_non_null(tare__graph_find(g, "linear"));
    assert_non_null(tare__graph_find(g, "relu"));
    assert_int_equal(model->root->child_count, 3); // two layers and the guards
    tare_model_destroy(model);
}

// --- what inputs and outputs are called ---

static void check_call_names(const tare_model *model) {
    static const char *const inputs[] = {"pair.0", "pair.1.0", "pair.1.1", "table.k", "scale"};
    static const char *const outputs[] = {"output.0.y",
                                          "output.0.parts.0.0",
                                          "output.0.parts.0.1",
                                          "output.0.parts.0.2",
                                          "output.0.top.0",
                                          "output.0.top.1",
                                          "output.1"};
    tare_session *session = NULL;
    CHECK_DONE(tare_session_create(model, NULL, &session, job_error()));
    assert_int_equal(tare_model_input_count(model), 5);
    for (size_t i = 0; i < 5; i++) assert_string_equal(tare_model_input_name(model, i), inputs[i]);
    assert_int_equal(tare_session_output_count(session), 7);
    for (size_t i = 0; i < 7; i++)
        assert_string_equal(tare_session_output_name(session, i), outputs[i]);
    assert_null(tare_session_output_name(session, 7));
    text nesting = {0};
    CHECK_DONE(
        tare_session_write_nesting(session, tare__text_append_writer, &nesting, job_error()));
    CHECK_HOLDS(tare__text_chars(&nesting), "\"keys\": [\"y\", \"parts\", \"top\"]}, 6]}");
    tare__text_release(&nesting);
    CHECK_REFUSED(tare_session_write_nesting(session, NULL, NULL, job_error()),
                  TARE_INVALID_ARGUMENT, "expected a session and a writer");
    tare_session_destroy(session);
}

// Also where aten operators are called in the graphs of its control flow alone.
static void every_program_is_known_as_one(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof programs / sizeof *programs; i++) {
        tare_model *model = NULL, *prepared = NULL;
        tare_quantizer *q = NULL;
        CHECK_DONE(tare_model_read(put_program(programs[i]), NULL, &model, job_error()));
        assert_true(tare_model_is_exported(model));
        CHECK_DONE(tare_quantizer_builtin("XNNPACKQuantizer", NULL, &q, job_error()));
        if (tare_model_get_stage(model) == TARE_STAGE_FLOAT)
            CHECK_DONE(tare_prepare_pt2e(model, q, &prepared, job_error()));
        tare_quantizer_destroy(q);
        tare_model_destroy(prepared);
        tare_model_destroy(model);
    }
}

static void nested_inputs_and_outputs_are_called_by_their_paths(void **state) {
    (void)state;
    const char *own = temp_path("own.safetensors");
    tare_model *model = NULL, *again = NULL;
    CHECK_DONE(tare_model_read(put_program("containers"), NULL, &model, job_error()));
    check_call_names(model);
    CHECK_DONE(tare_model_write(model, own, job_error()));
    CHECK_DONE(tare_model_read(own, NULL, &again, job_error()));
    check_call_names(again);
    tare_model_destroy(model);
    tare_model_destroy(again);
}

// --- what they are when we write them ---

// Strides, where data that was not dense is now.
static bool is_stride(const json_at *at) {
    for (; at != NULL; at = at->parent)
        if (at->key != NULL && strcmp(at->key, "strides") == 0) return true;
    return false;
}

static void check_json(const json_at *ours, const json_t *theirs, bool may_restride);

static void check_object(const json_at *ours, const json_t *theirs, bool may_restride) {
    const char *key = NULL;
    json_t *item = NULL;
    json_object_foreach((json_t *)theirs, key, item) {
        const json_at at = tare__json_get(ours, key);
        if (strcmp(key, other_key) != 0) check_json(&at, item, may_restride);
    }
    assert_int_equal(json_object_size(ours->value), json_object_size(theirs));
}

static void check_json(const json_at *ours, const json_t *theirs, bool may_restride) {
    text path = {0};
    tare__json_path(ours, &path);
    if (ours->value == NULL || json_typeof(ours->value) != json_typeof(theirs))
        fail_msg("%s is of another kind", tare__text_chars(&path));
    if (json_is_object(theirs)) {
        check_object(ours, theirs, may_restride);
    } else if (json_is_array(theirs)) {
        if (json_array_size(ours->value) != json_array_size(theirs))
            fail_msg("%s has another length", tare__text_chars(&path));
        for (size_t i = 0; i < json_array_size(theirs); i++) {
            const json_at at = tare__json_item(ours, i);
            check_json(&at, json_array_get(theirs, i), may_restride);
        }
    } else if (!json_equal((json_t *)ours->value, (json_t *)theirs) &&
               !(may_restride && is_stride(ours))) {
        fail_msg("%s is another value", tare__text_chars(&path));
    }
    tare__text_release(&path);
}

typedef struct opened {
    storage *store;
    pt2_archive archive;
} opened;

static void open_archive(const char *path, opened *out) {
    const unsigned char *data = NULL;
    size_t size = 0;
    CHECK_DONE(tare__file_map(path, &out->store, &data, &size, job_error()));
    CHECK_DONE(tare__pt2_open(out->store, data, size, 0, job_error(), &out->archive));
}

static void close_archive(opened *o) {
    tare__pt2_close(&o->archive);
    tare__storage_release(o->store);
}

static void check_member(opened *ours, opened *theirs, const char *name, bool may_restride) {
    for (size_t i = 0; i < sizeof other_members / sizeof *other_members; i++)
        if (strcmp(name, other_members[i]) == 0) return;
    pt2_bytes a, b;
    CHECK_DONE(tare__pt2_read_member(&ours->archive, name, &a));
    CHECK_DONE(tare__pt2_read_member(&theirs->archive, name, &b));
    const size_t offset = (size_t)(a.data - ours->archive.data);
    if (offset % 64 != 0) fail_msg("'%s' begins at byte %zu", name, offset);
    if (tare__ends_with(name, ".json")) {
        json_t *x = NULL, *y = NULL;
        CHECK_DONE(tare__pt2_read_json(&ours->archive, name, &x));
        CHECK_DONE(tare__pt2_read_json(&theirs->archive, name, &y));
        const json_at top = tare__json_root(x);
        check_json(&top, y, may_restride);
        json_decref(x);
        json_decref(y);
    } else if (!may_restride || strstr(name, "/weight_") == NULL) {
        if (a.size != b.size || memcmp(a.data, b.data, a.size) != 0)
            fail_msg("'%s' holds other bytes", name);
    }
    tare__storage_release(a.store);
    tare__storage_release(b.store);
}

static void check_archives(const char *our_path, const char *their_path, bool may_restride) {
    opened ours, theirs;
    open_archive(our_path, &ours);
    open_archive(their_path, &theirs);
    const map *members = &theirs.archive.members;
    assert_int_equal(ours.archive.members.count, members->count);
    for (size_t i = 0; i < members->count; i++) {
        // In torch's order, too.
        assert_string_equal(ours.archive.members.entries[i].key, members->entries[i].key);
        check_member(&ours, &theirs, members->entries[i].key, may_restride);
    }
    close_archive(&ours);
    close_archive(&theirs);
}

static void written_programs_are_what_they_were(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof programs / sizeof *programs; i++) {
        tare_model *model = NULL;
        const char *their_path = put_program(programs[i]), *our_path = temp_path("ours.pt2");
        // Only this one has weights that are channels last.
        const bool may_restride = strcmp(programs[i], "arguments") == 0;
        CHECK_DONE(tare_model_read(their_path, NULL, &model, job_error()));
        CHECK_DONE(tare_model_write_pt2(model, our_path, job_error()));
        check_archives(our_path, their_path, may_restride);
        run_calls(programs[i], our_path);
        tare_model_destroy(model);
    }
}

// What the program's file says beside the graph goes through our own format.
static void our_files_keep_what_programs_need(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof programs / sizeof *programs; i++) {
        tare_model *model = NULL, *again = NULL;
        const char *their_path = put_program(programs[i]), *our_path = temp_path("ours.pt2");
        const char *between = temp_path("between.safetensors");
        CHECK_DONE(tare_model_read(their_path, NULL, &model, job_error()));
        CHECK_DONE(tare_model_write(model, between, job_error()));
        CHECK_DONE(tare_model_read(between, NULL, &again, job_error()));
        CHECK_DONE(tare_model_write_pt2(again, our_path, job_error()));
        check_archives(our_path, their_path, strcmp(programs[i], "arguments") == 0);
        tare_model_destroy(model);
        tare_model_destroy(again);
    }
}

// Calibrated with the inputs of the first calls.
static tare_model *quantize(const char *name, int calls) {
    const bytes b = recorded(name, "safetensors");
    safetensors s = {0};
    tare_model *model = NULL, *prepared = NULL, *converted = NULL;
    tare_quantizer *q = NULL;
    CHECK_DONE(tare__safetensors_parse(b.store, b.data, b.size, &s, job_error()));
    CHECK_DONE(tare_model_read(put_program(name), NULL, &model, job_error()));
    CHECK_DONE(tare_quantizer_builtin("XNNPACKQuantizer", NULL, &q, job_error()));
    CHECK_DONE(tare_prepare_pt2e(model, q, &prepared, job_error()));
    for (int call = 0; call < calls; call++) {
        const tare_tensor *inputs[8];
        const size_t count = inputs_of(&s, call, inputs);
        CHECK_DONE(tare_calibrate(prepared, inputs, count, job_error()));
    }
    CHECK_DONE(tare_convert_pt2e(prepared, NULL, &converted, job_error()));
    check_explained(converted);
    tare_quantizer_destroy(q);
    tare_model_destroy(model);
    tare_model_destroy(prepared);
    tare__safetensors_release(&s);
    tare__storage_release(b.store);
    return converted;
}

static double signal_to_noise(const tare_tensor *expected, const tare_tensor *made) {
    double signal = 0, noise = 0;
    assert_int_equal(made->ndim, expected->ndim);
    assert_memory_equal(made->shape, expected->shape, (size_t)made->ndim * sizeof *made->shape);
    for (int64_t i = 0; i < made->count; i++) {
        const double a = tare__tensor_get(expected, i);
        signal += a * a;
        noise += (tare__tensor_get(made, i) - a) * (tare__tensor_get(made, i) - a);
    }
    return 10 * log10(signal / noise);
}

static void check_integers(const tare_model *lowered, const safetensors *s, int calls) {
    tare_session *session = NULL;
    CHECK_DONE(tare_session_create(lowered, NULL, &session, job_error()));
    for (int call = 0; call < calls; call++) {
        const tare_tensor *inputs[8];
        tare_tensor *outputs[8];
        const size_t count = inputs_of(s, call, inputs);
        size_t made = 0;
        char name[64];
        CHECK_DONE(tare_session_run(session, inputs, count, outputs, 8, &made, job_error()));
        assert_true(tare_session_step_count(session) > 0); // planned, whatever the sizes
        for (size_t i = 0; i < made; i++) {
            (void)snprintf(name, sizeof name, "%d.out.%zu", call, i);
            const double decibels = signal_to_noise(tare__safetensors_get(s, name), outputs[i]);
            if (!(decibels > 20)) fail_msg("%s: %.1f dB", name, decibels);
            tare_tensor_release(outputs[i]);
        }
    }
    tare_session_destroy(session);
}

// Quantized with data of one size, they run in integers on pictures, batches and lengths of others.
static void open_sizes_stay_open_in_integers(void **state) {
    (void)state;
    static const char *const names[] = {"encoder", "pictures"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const bytes b = recorded(names[i], "safetensors");
        safetensors s = {0};
        tare_model *converted = quantize(names[i], 1), *lowered = NULL;
        CHECK_DONE(tare__safetensors_parse(b.store, b.data, b.size, &s, job_error()));
        CHECK_DONE(tare_lower_pt2e(converted, NULL, &lowered, job_error()));
        check_explained(lowered);
        assert_int_equal(count_calls(&s), 3);
        check_integers(lowered, &s, 3);
        tare_model_destroy(converted);
        tare_model_destroy(lowered);
        tare__safetensors_release(&s);
        tare__storage_release(b.store);
    }
}

// The outputs of all calls, one after another.
static size_t run_all(const tare_model *lowered, const safetensors *s, tare_tensor **outputs) {
    tare_session *session = NULL;
    size_t found = 0, made = 0;
    CHECK_DONE(tare_session_create(lowered, NULL, &session, job_error()));
    for (int call = 0; call < count_calls(s); call++, found += made) {
        const tare_tensor *inputs[8];
        const size_t count = inputs_of(s, call, inputs);
        CHECK_DONE(
            tare_session_run(session, inputs, count, outputs + found, 4, &made, job_error()));
    }
    tare_session_destroy(session);
    return found;
}

// Networks with layers in branches and rounds: as good in integers as others, also after torch's
// file, to which integers and scales of graphs inside go as arguments.
static void graphs_inside_run_in_integers(void **state) {
    (void)state;
    static const char *const names[] = {"choice", "rounds"};
    for (size_t i = 0; i < 2; i++) {
        const bytes b = recorded(names[i], "safetensors");
        safetensors s = {0};
        tare_model *converted = quantize(names[i], 2), *lowered = NULL, *again = NULL,
                   *other = NULL;
        tare_tensor *ours[8], *theirs[8];
        tare_coverage c = {.struct_size = sizeof c};
        CHECK_DONE(tare__safetensors_parse(b.store, b.data, b.size, &s, job_error()));
        CHECK_DONE(tare_lower_pt2e(converted, NULL, &lowered, job_error()));
        check_explained(lowered);
        CHECK_DONE(tare_model_coverage(lowered, &c, job_error()));
        assert_int_equal(c.quantized_macs, c.macs);
        CHECK_DONE(tare_model_write_pt2(converted, temp_path("converted.pt2"), job_error()));
        CHECK_DONE(tare_model_read(temp_path("converted.pt2"), NULL, &again, job_error()));
        CHECK_DONE(tare_lower(again, NULL, &other, job_error()));
        const size_t count = run_all(lowered, &s, ours);
        assert_int_equal(run_all(other, &s, theirs), count);
        for (size_t k = 0; k < count; k++) {
            char name[64];
            (void)snprintf(name, sizeof name, "%zu.out.%zu", k / (count / 2), k % (count / 2));
            const double decibels = signal_to_noise(tare__safetensors_get(&s, name), ours[k]);
            if (!(decibels > 20)) fail_msg("%s %s: %.1f dB", names[i], name, decibels);
            check_same_tensor(ours[k], theirs[k]);
            tare_tensor_release(ours[k]);
            tare_tensor_release(theirs[k]);
        }
        tare_model *const models[] = {converted, lowered, again, other};
        for (size_t k = 0; k < 4; k++) tare_model_destroy(models[k]);
        tare__safetensors_release(&s);
        tare__storage_release(b.store);
    }
}

// A module that is in one graph only, and an operator that only a graph inside calls.
static void settings_hold_for_all_graphs(void **state) {
    (void)state;
    static const char json[] = "{\"global\": {\"default\": {}}, \"module_name\": [[\"head\", "
                               "{\"default\": {}}]], \"operator\": "
                               "[[\"torch.ops.aten.add.Tensor\", null]]}";
    tare_quantizer_settings *settings = NULL;
    tare_quantizer *q = NULL;
    tare_model *model = NULL, *prepared = NULL;
    CHECK_DONE(tare_quantizer_settings_from_json(json, sizeof json - 1, "XNNPACKQuantizer",
                                                 &settings, job_error()));
    CHECK_DONE(tare_quantizer_builtin("XNNPACKQuantizer", settings, &q, job_error()));
    CHECK_DONE(tare_model_read(put_program("choice"), NULL, &model, job_error()));
    CHECK_DONE(tare_prepare_pt2e(model, q, &prepared, job_error()));
    CHECK_HOLDS(explained(prepared, "true_graph_0/add"), "is not to quantize it");
    CHECK_HOLDS(explained(prepared, "true_graph_0/conv2d"), "annotates 3 inputs");
    tare_model_destroy(model);
    tare_model_destroy(prepared);
    tare_quantizer_destroy(q);
    tare_quantizer_settings_destroy(settings);
}

static const char *first_tensor(const json_t *list) {
    const json_t *first = json_array_get(list, 0), *arg = json_object_get(first, "arg");
    const json_t *tensor = json_object_get(arg != NULL ? arg : first, "as_tensor");
    return json_string_value(json_object_get(tensor, "name"));
}

// What convert inserts has the sizes of what it quantizes, also those that are open.
static void inserted_nodes_follow_open_sizes(void **state) {
    (void)state;
    tare_model *model = quantize("open", 1);
    const char *path = temp_path("quantized.pt2");
    opened made;
    json_t *json = NULL;
    size_t open_count = 0;
    CHECK_DONE(tare_model_write_pt2(model, path, job_error()));
    open_archive(path, &made);
    CHECK_DONE(tare__pt2_read_json(&made.archive, "models/model.json", &json));
    const json_t *g = json_object_get(json_object_get(json, "graph_module"), "graph");
    const json_t *nodes = json_object_get(g, "nodes");
    const json_t *tensors = json_object_get(g, "tensor_values");
    for (size_t i = 0; i < json_array_size(nodes); i++) {
        const json_t *n = json_array_get(nodes, i);
        if (strstr(json_string_value(json_object_get(n, "target")), "quantize_per_tensor") == NULL)
            continue;
        const char *in = first_tensor(json_object_get(n, "inputs"));
        const char *out = first_tensor(json_object_get(n, "outputs"));
        json_t *sizes = json_object_get(json_object_get(tensors, out), "sizes");
        assert_true(json_equal(json_object_get(json_object_get(tensors, in), "sizes"), sizes));
        for (size_t d = 0; d < json_array_size(sizes); d++)
            open_count += json_object_get(json_array_get(sizes, d), "as_expr") != NULL ? 1 : 0;
    }
    assert_true(open_count >= 4);
    json_decref(json);
    close_archive(&made);
    tare_model_destroy(model);
}

static void every_allocation_of_writing_may_fail(void **state) {
    (void)state;
    tare_model *model = NULL;
    tare_status status;
    CHECK_DONE(tare_model_read(put_program("open"), NULL, &model, job_error()));
    const char *path = temp_path("failing.pt2");
    SOME_ALLOCATIONS_FAIL(7, status, status = tare_model_write_pt2(model, path, NULL), (void)0);
    tare_model_destroy(model);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(programs_compute_what_torch_did),
        cmocka_unit_test(contexts_without_effect_are_gone),
        cmocka_unit_test(every_program_is_known_as_one),
        cmocka_unit_test(nested_inputs_and_outputs_are_called_by_their_paths),
        cmocka_unit_test(written_programs_are_what_they_were),
        cmocka_unit_test(our_files_keep_what_programs_need),
        cmocka_unit_test(inserted_nodes_follow_open_sizes),
        cmocka_unit_test(open_sizes_stay_open_in_integers),
        cmocka_unit_test(graphs_inside_run_in_integers),
        cmocka_unit_test(settings_hold_for_all_graphs),
        cmocka_unit_test(every_allocation_of_writing_may_fail),
    };
    return cmocka_run_group_tests(tests, temp_make, temp_remove);
}
