// SPDX-License-Identifier: Apache-2.0
// Finds where a node stands in the user's module tree, from the two notations of torch's exporters.
//
// TorchScript: the node's name is "/layer1/layer1.0/conv1/Conv". Each segment is the name by which
// the parent calls a module; a segment that begins with the previous one is in a Sequential. All
// calls of a module but the first are renamed ("relu_1").
//
// dynamo: the metadata holds name_scopes = ['', 'layer1', 'layer1.0', 'relu_1'], full paths that
// end with the call, and class_hierarchy, their classes, which ends with what was called.
#include <stdio.h>
#include <string.h>

#include "core/text/text.h"
#include "io/onnx/read/state.h"

enum { DEEPEST_SCOPE = 64 };

// --- Python's lists of strings ---

typedef struct string_list {
    const char *items[DEEPEST_SCOPE];
    size_t count;
} string_list;

typedef struct metadata {
    arena *memory;
    string_list names, classes;
    bool has_names, has_classes, failed; // failed: memory ran out
} metadata;

// Parses "['', 'a']" into the list; false for anything else. Items are copied.
static bool read_list(metadata *m, const char *at, size_t length, string_list *out) {
    const char *end = at + length;
    out->count = 0;
    if (at == end || *at++ != '[') return false;
    while (at < end && *at != ']') {
        const char quote = *at++;
        const char *begin = at;
        if ((quote != '\'' && quote != '"') || out->count == DEEPEST_SCOPE) return false;
        while (at < end && *at != quote && *at != '\\') at++;
        if (at == end || *at == '\\') return false;
        out->items[out->count] = tare__arena_strndup(m->memory, begin, (size_t)(at - begin));
        m->failed |= out->items[out->count] == NULL;
        if (m->failed) return false;
        out->count++;
        for (at++; at < end && (*at == ',' || *at == ' ');) at++;
    }
    return at < end;
}

// --- dynamo ---

static bool is_key(const onnx_property *p, const char *key) {
    return tare__is_word(p->key, p->key_length, key);
}

static bool is_text(const onnx_property *p) {
    return memchr(p->value, '\0', p->value_length) == NULL;
}

static void read_property(void *user, const onnx_property *p) {
    metadata *m = user;
    if (is_key(p, "pkg.torch.onnx.name_scopes") && is_text(p))
        m->has_names = read_list(m, p->value, p->value_length, &m->names);
    if (is_key(p, "pkg.torch.onnx.class_hierarchy") && is_text(p))
        m->has_classes = read_list(m, p->value, p->value_length, &m->classes);
}

// Every name of a path must be an identifier or a number to be a module's name.
static bool is_path(const char *path) {
    size_t depth = 1;
    bool is_empty = true;
    for (const char *c = path; *c != '\0'; c++) {
        if (*c == '.' && is_empty) return false;
        depth += *c == '.';
        is_empty = *c == '.';
        const bool is_plain = (*c >= 'a' && *c <= 'z') || (*c >= 'A' && *c <= 'Z') ||
                              (*c >= '0' && *c <= '9') || *c == '_' || *c == '.';
        if (!is_plain) return false;
    }
    return !is_empty && depth < DEEPEST_SCOPE;
}

static const char *public_name(arena *memory, const char *name) {
    char out[300];
    if (strlen(name) >= sizeof out) return name;
    tare__class_public_name(name, out, sizeof out);
    return tare__arena_strdup(memory, out);
}

// "conv@1" is the second call of conv.
static const char *without_call(arena *memory, const char *path) {
    const size_t length = strcspn(path, "@");
    return path[length] == '\0' ? path : tare__arena_strndup(memory, path, length);
}

static void use_metadata(metadata *m, onnx_scope *out) {
    if (!m->has_names || !m->has_classes || m->names.count != m->classes.count ||
        m->names.count < 2)
        return;
    const size_t innermost = m->names.count - 2;
    const char *path = without_call(m->memory, m->names.items[innermost]);
    const char *type = public_name(m->memory, m->classes.items[innermost]);
    m->failed |= path == NULL || type == NULL;
    if (m->failed || (*path != '\0' && !is_path(path))) return;
    *out = (onnx_scope){.path = path,
                        .raw = path,
                        .type = type,
                        .target = m->classes.items[innermost + 1],
                        .call = m->names.items[innermost + 1],
                        .is_known = true};
}

// --- TorchScript ---

// "relu_12" -> 4; the whole length where no number follows.
static size_t base_length(const char *name, size_t length) {
    size_t at = length;
    while (at > 0 && name[at - 1] >= '0' && name[at - 1] <= '9') at--;
    return at < length && at > 1 && name[at - 1] == '_' ? at - 1 : length;
}

static bool holds_parameters(const onnx_import *in, const char *path) {
    const size_t length = strlen(path);
    for (size_t i = 0; i < in->initializer_names.count; i++) {
        const char *name = in->initializer_names.entries[i].key;
        if (strncmp(name, path, length) == 0 && name[length] == '.') return true;
    }
    return false;
}

typedef struct walk {
    onnx_import *in;
    const char *path, *raw;        // up to this segment
    const char *segment, *renamed; // the last segment: as in a first call, and as written
} walk;

static const char *join(arena *memory, const char *path, const char *name, size_t length) {
    return *path == '\0' ? tare__arena_strndup(memory, name, length)
                         : tare__arena_printf(memory, "%s.%.*s", path, (int)length, name);
}

// The length of the parent's path at the begin of a segment: "layer1.0" within layer1 is "0".
static size_t repeated(const char *segment, const char *before) {
    const size_t length = strlen(before);
    return length > 0 && strncmp(segment, before, length) == 0 && segment[length] == '.'
               ? length + 1
               : 0;
}

static bool add_segment(walk *w, const char *chars, size_t length) {
    arena *memory = &w->in->memory;
    const char *segment = tare__arena_strndup(memory, chars, length);
    if (segment == NULL) return false;
    size_t skip = repeated(segment, w->renamed);
    if (skip == 0) skip = repeated(segment, w->segment);
    const char *raw = join(memory, w->raw, segment + skip, length - skip);
    const size_t base = base_length(segment, length);
    const char *first = base > skip ? join(memory, w->path, segment + skip, base - skip) : NULL;
    const char *path = join(memory, w->path, segment + skip, length - skip);
    if (raw == NULL || path == NULL) return false;
    const bool again = base < length && first != NULL && tare__map_has(&w->in->scopes, first) &&
                       !holds_parameters(w->in, raw);
    if (again) path = first;
    if (!tare__map_set(&w->in->scopes, path, NULL)) return false;
    w->path = path;
    w->raw = raw;
    w->renamed = segment;
    w->segment = again ? tare__arena_strndup(memory, segment, base) : segment;
    return w->segment != NULL;
}

static bool use_name(onnx_import *in, const char *name, onnx_scope *out) {
    walk w = {.in = in, .path = "", .raw = "", .segment = "", .renamed = ""};
    const char *last = strrchr(name, '/');
    for (const char *at = name + 1; at < last;) {
        const size_t length = strcspn(at, "/");
        if (!add_segment(&w, at, length)) return false;
        at += length + 1;
    }
    if (*w.path != '\0' && (!is_path(w.path) || !is_path(w.raw))) return true;
    *out = (onnx_scope){.path = w.path, .raw = w.raw, .is_known = true};
    return true;
}

// --- entry point ---

static tare_status read_own(onnx_import *in, const onnx_step *step, onnx_scope **out) {
    const char *name = step->node.name != NULL ? step->node.name : "";
    onnx_scope *scope = tare__arena_alloc(&in->memory, sizeof *scope);
    if (scope == NULL) return tare__out_of_memory(in->err);
    *scope = (onnx_scope){.path = "", .raw = ""};
    metadata m = {.memory = &in->memory};
    tare__onnx_each_property(&step->node, read_property, &m);
    use_metadata(&m, scope);
    // The name of a function's node begins with the caller's.
    if (!m.failed && !scope->is_known && name[0] == '/' && step->caller == NULL)
        m.failed = !use_name(in, name, scope);
    if (m.failed) return tare__out_of_memory(in->err);
    *out = scope;
    return TARE_OK;
}

tare_status tare__onnx_read_scope(onnx_import *in, onnx_step *step, const onnx_scope **out) {
    for (onnx_step *s = step;; s = s->caller) {
        onnx_scope *own = NULL;
        if (s->scope == NULL) {
            TARE_TRY(read_own(in, s, &own));
            s->scope = own;
        }
        *out = s->scope;
        if (s->scope->is_known || s->caller == NULL) return TARE_OK;
    }
}
