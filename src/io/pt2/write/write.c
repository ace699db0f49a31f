// SPDX-License-Identifier: Apache-2.0
// Writes the archive's members in torch's order.
#include "io/pt2/write/write.h"

#include <inttypes.h>
#include <string.h>
#include <zlib.h>

#include "core/json/write.h"
#include "core/memory/alloc.h"
#include "io/pt2/write/hoist.h"
#include "io/pt2/write/program.h"
#include "io/zip/sink.h"

enum { SCHEMA_MAJOR = 8, SCHEMA_MINOR = 20, ATEN_VERSION = 10 };
static const char torch_version[] = "2.15.0"; // the version whose format is written

// --- the program ---

// Writes a field as it was read from a file, else as a new export has it.
static void write_kept(const program_writer *w, const char *key, const char *otherwise, text *out) {
    const json_t *kept = json_object_get(tare__pt2_sizes_about(w->sizes), key);
    tare__text_printf(out, ", \"%s\": ", key);
    if (kept != NULL)
        tare__json_write(kept, out);
    else
        tare__text_append(out, otherwise);
}

static void write_field(const char *key, char open, const text *items, char close, text *out) {
    if (out->chars != NULL && out->chars[out->length - 1] != '{') tare__text_append(out, ", ");
    tare__text_printf(out, "\"%s\": %c", key, open);
    tare__text_append(out, tare__text_chars(items));
    tare__text_char(out, close);
}

static bool is_single(const program_writer *w) {
    const node *output = tare__graph_output(w->g);
    return w->is_branch && output != NULL && tare__node_arg(output, 0) != NULL;
}

void tare__pt2_write_graph(const program_writer *w, text *out) {
    tare__text_char(out, '{');
    write_field("inputs", '[', &w->inputs, ']', out);
    write_field("outputs", '[', &w->outputs, ']', out);
    write_field("nodes", '[', &w->nodes, ']', out);
    write_field("tensor_values", '{', &w->tensor_values, '}', out);
    write_field("sym_int_values", '{', &w->sym_int_values, '}', out);
    write_field("sym_bool_values", '{', &w->sym_bool_values, '}', out);
    write_field("sym_float_values", '{', &w->sym_float_values, '}', out);
    tare__text_printf(out, ", \"custom_obj_values\": {}, \"is_single_tensor_return\": %s}",
                      is_single(w) ? "true" : "false");
}

static tare_status write_program(const program_writer *w, text *out) {
    tare__text_append(out, "{\"graph_module\": {\"graph\": ");
    tare__pt2_write_graph(w, out);
    tare__text_append(out, ", \"signature\": {");
    write_field("input_specs", '[', &w->input_specs, ']', out);
    write_field("output_specs", '[', &w->output_specs, ']', out);
    tare__text_append(out, "}, \"module_call_graph\": ");
    TARE_TRY(tare__pt2_write_calls(w, out));
    write_kept(w, "metadata", "{}", out);
    write_kept(w, "treespec_namedtuple_fields", "{}", out);
    tare__text_printf(out, "}, \"opset_version\": {\"aten\": %d}", ATEN_VERSION);
    write_kept(w, "range_constraints", "{}", out);
    tare__text_printf(out, ", \"schema_version\": {\"major\": %d, \"minor\": %d}", SCHEMA_MAJOR,
                      SCHEMA_MINOR);
    write_kept(w, "verifiers", "[\"TRAINING\"]", out);
    tare__text_printf(out, ", \"torch_version\": \"%s\"", torch_version);
    write_kept(w, "guards_code", "[]", out);
    tare__text_char(out, '}');
    return tare__text_status(out, w->err);
}

tare_status tare__pt2_check_texts(const program_writer *w) {
    const text *const texts[] = {&w->inputs,         &w->outputs,          &w->nodes,
                                 &w->input_specs,    &w->output_specs,     &w->tensor_values,
                                 &w->sym_int_values, &w->sym_float_values, &w->sym_bool_values};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        TARE_TRY(tare__text_status(texts[i], w->err));
    return TARE_OK;
}

tare_status tare__pt2_write_fields(program_writer *w) {
    TARE_TRY(tare__pt2_check_calls(w));
    TARE_TRY(tare__pt2_sizes_create(w->root, &w->sizes, w->err));
    w->given = tare__arena_array(&w->memory, w->g->next_id + 1, sizeof *w->given);
    if (w->given == NULL) return tare__out_of_memory(w->err);
    TARE_TRY(tare__pt2_write_inputs(w));
    TARE_TRY(tare__pt2_write_nodes(w));
    TARE_TRY(tare__pt2_write_outputs(w));
    return tare__pt2_check_texts(w);
}

void tare__pt2_release_fields(program_writer *w) {
    text *const texts[] = {&w->inputs,         &w->outputs,          &w->nodes,
                           &w->input_specs,    &w->output_specs,     &w->tensor_values,
                           &w->sym_int_values, &w->sym_float_values, &w->sym_bool_values};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) tare__text_release(texts[i]);
    tare__map_release(&w->lifted_at);
    tare__map_release(&w->taken);
    tare__pt2_sizes_destroy(w->sizes);
    tare__arena_release(&w->memory);
}

// --- records ---

typedef struct folder {
    const char *name, *record;
    bool is_persistent;
} folder;

static tare_status write_entry(const program_writer *w, const folder *f, const lifted *l,
                               text *out) {
    tare__pt2_separate(out);
    tare__text_json_string(out, l->path);
    tare__text_printf(out,
                      ": {\"path_name\": \"%s_%zu\", \"is_param\": %s, \"use_pickle\": false, "
                      "\"tensor_meta\": ",
                      f->record, l->record, l->kind == LIFTED_PARAMETER ? "true" : "false");
    TARE_TRY(tare__pt2_sizes_data(w->sizes, l->reader, l->data, l->requires_grad, out));
    tare__text_char(out, '}');
    return tare__text_status(out, w->err);
}

static tare_status put_text(zip_sink *sink, const char *name, const text *chars) {
    return tare__zip_sink_put(sink, name, tare__text_chars(chars), chars->length);
}

static tare_status put_table(const program_writer *w, zip_sink *sink, const folder *f) {
    text entries = {0}, table = {0};
    char name[128];
    tare_status status = TARE_OK;
    for (size_t i = 0; i < w->lifted_count && status == TARE_OK; i++)
        if (w->lifted[i].is_persistent == f->is_persistent)
            status = write_entry(w, f, &w->lifted[i], &entries);
    tare__text_printf(&table, "{\"config\": {%s}}", tare__text_chars(&entries));
    (void)snprintf(name, sizeof name, "data/%s/model_%s_config.json", f->name, f->name);
    if (status == TARE_OK) status = tare__text_status(&table, w->err);
    if (status == TARE_OK) status = put_text(sink, name, &table);
    tare__text_release(&entries);
    tare__text_release(&table);
    return status;
}

// Any of the tensors that share a record; NULL past the last one.
static const lifted *find_record(const program_writer *w, const folder *f, size_t record) {
    for (size_t i = 0; i < w->lifted_count; i++)
        if (w->lifted[i].is_persistent == f->is_persistent && w->lifted[i].record == record)
            return &w->lifted[i];
    return NULL;
}

static tare_status put_folder(const program_writer *w, zip_sink *sink, const folder *f) {
    const lifted *l = NULL;
    char name[128];
    for (size_t i = 0; (l = find_record(w, f, i)) != NULL; i++) {
        (void)snprintf(name, sizeof name, "data/%s/%s_%zu", f->name, f->record, i);
        TARE_TRY(tare__zip_sink_put(sink, name, l->data->data, tare__tensor_bytes(l->data)));
        tare__tensor_forget(l->data);
    }
    return put_table(w, sink, f);
}

// An ID of 40 digits, computed from the names and checksums of all members.
static tare_status put_id(zip_sink *sink) {
    uint64_t names = 0, contents = 0;
    char digits[64];
    for (size_t i = 0; i < sink->count; i++) {
        const sink_member *m = &sink->members[i];
        const uint64_t name = crc32_z(0, (const unsigned char *)m->name, strlen(m->name));
        names = names * UINT64_C(6364136223846793005) + name;
        contents = contents * UINT64_C(6364136223846793005) + m->checksum;
    }
    (void)snprintf(digits, sizeof digits, "%020" PRIu64 "%020" PRIu64, names, contents);
    return tare__zip_sink_put(sink, ".data/serialization_id", digits, 40);
}

static tare_status put_members(const program_writer *w, zip_sink *sink, const text *program) {
    static const folder weights = {"weights", "weight", true};
    static const folder constants = {"constants", "tensor", false};
    TARE_TRY(put_folder(w, sink, &weights));
    TARE_TRY(put_folder(w, sink, &constants));
    TARE_TRY(put_text(sink, "models/model.json", program));
    // torch stores example inputs there as a pickle; an empty record means none.
    TARE_TRY(tare__zip_sink_put(sink, "data/sample_inputs/model.pt", "", 0));
    TARE_TRY(tare__zip_sink_put(sink, "archive_format", "pt2", 3));
    TARE_TRY(tare__zip_sink_put(sink, "archive_version", "0", 1));
    TARE_TRY(tare__zip_sink_put(sink, ".data/version", "6\n", 2));
    TARE_TRY(tare__zip_sink_put(sink, "byteorder", "little", 6));
    return put_id(sink);
}

// --- the whole ---

enum { ALIGNMENT = 64, LONGEST_ROOT = 512 };

// The file's name without its extension.
static char *root_of(const char *path) {
    const char *slash = strrchr(path, '/'), *name = slash != NULL ? slash + 1 : path;
    const char *dot = strrchr(name, '.');
    const size_t length = dot != NULL && dot > name ? (size_t)(dot - name) : strlen(name);
    // A folder's name must not be one that the reader would refuse as leading out of the archive.
    if (strcmp(name, "-") == 0 || strcmp(name, "..") == 0 || strpbrk(name, "\\:") != NULL ||
        length == 0 || length > LONGEST_ROOT)
        return tare__strdup("archive");
    return tare__strndup(name, length);
}

static tare_status write_archive(const program_writer *w, const char *path, const text *program) {
    zip_sink sink;
    char *root = root_of(path);
    if (root == NULL) return tare__out_of_memory(w->err);
    tare_status status = tare__zip_sink_open(&sink, path, root, ALIGNMENT, w->err);
    tare__free(root);
    if (status == TARE_OK) status = put_members(w, &sink, program);
    if (status == TARE_OK) status = tare__zip_sink_commit(&sink);
    tare__zip_sink_close(&sink);
    return status;
}

static tare_status write_root(const char *path, const module *root, tare_error *err) {
    program_writer w = {.root = root, .g = root->graph, .err = err};
    text program = {0};
    tare_status status = tare__pt2_write_fields(&w);
    if (status == TARE_OK) status = write_program(&w, &program);
    if (status == TARE_OK) status = write_archive(&w, path, &program);
    tare__text_release(&program);
    tare__pt2_release_fields(&w);
    return status;
}

tare_status tare__pt2_write(const char *path, const module *root, tare_error *err) {
    module *own = NULL;
    if (root->graph == NULL)
        return tare__fail(err, TARE_INVALID_ARGUMENT, "a model without a graph cannot be written");
    if (!tare__pt2_needs_hoist(root)) return write_root(path, root, err);
    TARE_TRY(tare__module_clone(root, &own, err));
    tare_status status = tare__pt2_hoist(own, err);
    if (status == TARE_OK) status = write_root(path, own, err);
    tare__module_release(own);
    return status;
}
