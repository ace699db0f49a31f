// SPDX-License-Identifier: Apache-2.0
// ONNX models as trees of messages: protobuf-c describes every field.
#include "edit.h"

#ifdef TARE_HAVE_ONNX

#include <onnx.pb-c.h>
#include <string.h>

#include "core/memory/alloc.h"
#include "core/memory/arena.h"

// What lives as long as the edit: messages may stand in several places, and none is freed.
static void *allocate(void *user, size_t size) {
    return tare__arena_alloc(user, size);
}

static void keep(void *user, void *memory) {
    (void)user, (void)memory;
}

// A field that is there.
typedef struct place {
    ProtobufCMessage *message;
    const ProtobufCFieldDescriptor *field;
} place;

typedef struct editor {
    edit_random *random;
    place *places;
    size_t count, capacity;
} editor;

static void *member_of(const place *p) {
    return (char *)p->message + p->field->offset;
}

static size_t *count_of(const place *p) {
    return (size_t *)(void *)((char *)p->message + p->field->quantifier_offset);
}

static bool is_repeated(const place *p) {
    return p->field->label == PROTOBUF_C_LABEL_REPEATED;
}

static size_t size_of(const ProtobufCFieldDescriptor *f) {
    switch (f->type) {
    case PROTOBUF_C_TYPE_INT64:
    case PROTOBUF_C_TYPE_SINT64:
    case PROTOBUF_C_TYPE_SFIXED64:
    case PROTOBUF_C_TYPE_UINT64:
    case PROTOBUF_C_TYPE_FIXED64:
    case PROTOBUF_C_TYPE_DOUBLE:
        return 8;
    case PROTOBUF_C_TYPE_STRING:
    case PROTOBUF_C_TYPE_MESSAGE:
        return sizeof(void *);
    case PROTOBUF_C_TYPE_BYTES:
        return sizeof(ProtobufCBinaryData);
    default:
        return 4;
    }
}

// Fields of a union share their memory: only one is there.
static bool is_there(const place *p) {
    if ((p->field->flags & PROTOBUF_C_FIELD_FLAG_ONEOF) == 0) return true;
    uint32_t which;
    memcpy(&which, (char *)p->message + p->field->quantifier_offset, sizeof which);
    return which == p->field->id;
}

static void collect(editor *e, ProtobufCMessage *m, int depth) {
    for (unsigned i = 0; i < m->descriptor->n_fields; i++) {
        const place p = {m, &m->descriptor->fields[i]};
        if (!is_there(&p)) continue;
        if (e->count == MOST_PLACES || depth > 32 ||
            !tare__grow((void **)&e->places, &e->capacity, e->count, sizeof *e->places))
            return;
        e->places[e->count++] = p;
        if (p.field->type != PROTOBUF_C_TYPE_MESSAGE) continue;
        ProtobufCMessage **one = member_of(&p), **all = is_repeated(&p) ? *(void **)one : one;
        const size_t count = is_repeated(&p) ? *count_of(&p) : *one != NULL;
        for (size_t k = 0; k < count; k++) collect(e, all[k], depth + 1);
    }
}

// One of a repeated field goes away, comes twice, or changes places with another.
static void edit_items(editor *e, const place *p, arena *memory) {
    const size_t size = size_of(p->field), count = *count_of(p);
    if (count == 0) return;
    char *items = tare__arena_alloc(memory, (count + 1) * size), *old = *(char **)member_of(p);
    if (items == NULL) return;
    const size_t at = edit_choose(e->random, count), other = edit_choose(e->random, count);
    memcpy(items, old, count * size);
    switch (edit_choose(e->random, 3)) {
    case 0:
        memmove(items + at * size, items + (at + 1) * size, (count - at - 1) * size);
        *count_of(p) = count - 1;
        break;
    case 1:
        memcpy(items + count * size, old + at * size, size);
        *count_of(p) = count + 1;
        break;
    default:
        memcpy(items + at * size, old + other * size, size);
        memcpy(items + other * size, old + at * size, size);
    }
    *(char **)member_of(p) = items;
}

static const int64_t numbers[] = {0, 1, -1, 2, 7, 16, 65, 4096, INT32_MAX, INT64_MAX, INT64_MIN};

// A field of the same type elsewhere, by which this one is replaced; NULL: none was met.
static const void *same_elsewhere(editor *e, const place *p) {
    for (int tries = 0; tries < 32; tries++) {
        const place *other = &e->places[edit_choose(e->random, e->count)];
        const bool suits = other->field->type == p->field->type &&
                           other->field->descriptor == p->field->descriptor;
        if (!suits) continue;
        if (!is_repeated(other)) return member_of(other);
        if (*count_of(other) == 0) continue;
        return *(char **)member_of(other) +
               size_of(p->field) * edit_choose(e->random, *count_of(other));
    }
    return NULL;
}

static void edit_value(editor *e, const place *p, void *at) {
    const int64_t number = numbers[edit_choose(e->random, sizeof numbers / sizeof *numbers)];
    const bool is_number = size_of(p->field) <= 8 && p->field->type != PROTOBUF_C_TYPE_STRING &&
                           p->field->type != PROTOBUF_C_TYPE_MESSAGE &&
                           p->field->type != PROTOBUF_C_TYPE_BYTES;
    const void *other = same_elsewhere(e, p);
    if (is_number && (other == NULL || edit_choose(e->random, 2) == 0)) {
        memcpy(at, &number, size_of(p->field));
        return;
    }
    if (p->field->type == PROTOBUF_C_TYPE_BYTES && edit_choose(e->random, 2) == 0) {
        ProtobufCBinaryData *bytes = at;
        bytes->len = edit_choose(e->random, bytes->len + 1);
        return;
    }
    const bool is_pointer =
        p->field->type == PROTOBUF_C_TYPE_STRING || p->field->type == PROTOBUF_C_TYPE_MESSAGE;
    if (other == NULL || (is_pointer && *(void *const *)other == NULL)) return;
    memcpy(at, other, size_of(p->field));
}

static void edit(editor *e, ProtobufCMessage *m, arena *memory) {
    e->count = 0;
    collect(e, m, 0);
    if (e->count == 0) return;
    const place p = e->places[edit_choose(e->random, e->count)];
    const bool has_items = is_repeated(&p) && *count_of(&p) > 0;
    if (has_items && edit_choose(e->random, 2) == 0)
        edit_items(e, &p, memory);
    else if (has_items)
        edit_value(e, &p,
                   *(char **)member_of(&p) +
                       size_of(p.field) * edit_choose(e->random, *count_of(&p)));
    else if (!is_repeated(&p) && p.field->type != PROTOBUF_C_TYPE_MESSAGE)
        edit_value(e, &p, member_of(&p));
}

// A message that became a part of itself has no end.
static bool is_finite(const ProtobufCMessage *m, int depth, size_t *left) {
    if (depth > 40 || *left == 0) return false;
    (*left)--;
    for (unsigned i = 0; i < m->descriptor->n_fields; i++) {
        const place p = {(ProtobufCMessage *)m, &m->descriptor->fields[i]};
        if (p.field->type != PROTOBUF_C_TYPE_MESSAGE || !is_there(&p)) continue;
        ProtobufCMessage **one = member_of(&p), **all = is_repeated(&p) ? *(void **)one : one;
        const size_t count = is_repeated(&p) ? *count_of(&p) : *one != NULL;
        for (size_t k = 0; k < count; k++)
            if (!is_finite(all[k], depth + 1, left)) return false;
    }
    return true;
}

bool edit_onnx(edit_random *r, const uint8_t *bytes, size_t size, text *out) {
    arena memory = {0};
    ProtobufCAllocator allocator = {allocate, keep, &memory};
    editor e = {.random = r};
    size_t left = 1 << 14;
    Onnx__ModelProto *model = onnx__model_proto__unpack(&allocator, size, bytes);
    for (size_t i = edit_choose(r, MOST_EDITS) + 1; model != NULL && i > 0; i--)
        edit(&e, &model->base, &memory);
    const bool is_done = model != NULL && is_finite(&model->base, 0, &left);
    const size_t packed = is_done ? onnx__model_proto__get_packed_size(model) : 0;
    uint8_t *to = packed > 0 ? tare__alloc(packed) : NULL;
    if (to != NULL) {
        (void)onnx__model_proto__pack(model, to);
        tare__text_append_n(out, (const char *)to, packed);
    }
    tare__free(to);
    tare__free(e.places);
    tare__arena_release(&memory);
    return is_done && !out->failed;
}

#else

bool edit_onnx(edit_random *r, const uint8_t *bytes, size_t size, text *out) {
    (void)r, (void)bytes, (void)size, (void)out;
    return false;
}

#endif
