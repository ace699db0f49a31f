// SPDX-License-Identifier: Apache-2.0
// Opens a file, refuses what cannot be read, and reads fields that the schema of ONNX 1.12 lacks.
#include "io/onnx/schema.h"

#include <inttypes.h>
#include <string.h>

#include "core/memory/alloc.h"
#include "io/onnx/onnx.h"
#include "io/onnx/read/wire.h"

enum {
    OLDEST_OPSET = 11,
    NEWEST_OPSET = 21,
    OLDEST_IR = 3, // the first IR version that states operator sets
    NODE_METADATA = 9
};

// --- element types ---

// clang-format off
static const struct {
    const char *name;
    tare_dtype dtype;
} types[] = {
    {"UNDEFINED", TARE_DTYPE_UNSET}, {"FLOAT", TARE_FLOAT32}, {"UINT8", TARE_UINT8},
    {"INT8", TARE_INT8}, {"UINT16", TARE_UINT16}, {"INT16", TARE_INT16}, {"INT32", TARE_INT32},
    {"INT64", TARE_INT64}, {"STRING", TARE_DTYPE_UNSET}, {"BOOL", TARE_BOOL},
    {"FLOAT16", TARE_FLOAT16}, {"DOUBLE", TARE_FLOAT64}, {"UINT32", TARE_DTYPE_UNSET},
    {"UINT64", TARE_DTYPE_UNSET}, {"COMPLEX64", TARE_DTYPE_UNSET}, {"COMPLEX128", TARE_DTYPE_UNSET},
    {"BFLOAT16", TARE_BFLOAT16}, {"FLOAT8E4M3FN", TARE_FLOAT8_E4M3FN},
    {"FLOAT8E4M3FNUZ", TARE_DTYPE_UNSET}, {"FLOAT8E5M2", TARE_FLOAT8_E5M2},
    {"FLOAT8E5M2FNUZ", TARE_DTYPE_UNSET}, {"UINT4", TARE_DTYPE_UNSET}, {"INT4", TARE_DTYPE_UNSET},
    {"FLOAT4E2M1", TARE_DTYPE_UNSET}, {"FLOAT8E8M0", TARE_DTYPE_UNSET}, {"UINT2", TARE_DTYPE_UNSET},
    {"INT2", TARE_DTYPE_UNSET},
};
// clang-format on
static const int64_t type_count = sizeof types / sizeof *types;

const char *tare__onnx_type_name(int64_t data_type) {
    return data_type >= 0 && data_type < type_count ? types[data_type].name : "unknown";
}

tare_dtype tare__onnx_type_to_dtype(int64_t data_type) {
    return data_type >= 0 && data_type < type_count ? types[data_type].dtype : TARE_DTYPE_UNSET;
}

int tare__onnx_type_of_dtype(tare_dtype dtype) {
    for (int64_t i = 1; i < type_count; i++)
        if (types[i].dtype == dtype && dtype != TARE_DTYPE_UNSET) return (int)i;
    return 0;
}

// --- metadata ---

// Reads field 1 or 2 of a metadata entry.
static bool read_entry(const unsigned char *bytes, size_t size, onnx_property *out) {
    memset(out, 0, sizeof *out);
    for (size_t at = 0; at < size;) {
        uint64_t tag = 0, length = 0;
        if (!tare__wire_varint(bytes, size, &at, &tag) || (tag & 7) != 2 ||
            !tare__wire_varint(bytes, size, &at, &length) || length > size - at)
            return false;
        const char *chars = (const char *)bytes + at;
        if (tag >> 3 == 1) out->key = chars, out->key_length = (size_t)length;
        if (tag >> 3 == 2) out->value = chars, out->value_length = (size_t)length;
        at += (size_t)length;
    }
    return out->key != NULL && out->value != NULL;
}

// protobuf-c keeps an unknown field as raw bytes, with the field's length in front.
void tare__onnx_each_property(const Onnx__NodeProto *proto,
                              void (*visit)(void *user, const onnx_property *p), void *user) {
    for (unsigned i = 0; i < proto->base.n_unknown_fields; i++) {
        const ProtobufCMessageUnknownField *field = &proto->base.unknown_fields[i];
        size_t at = 0;
        uint64_t length = 0;
        onnx_property p;
        if (field->tag != NODE_METADATA || field->wire_type != PROTOBUF_C_WIRE_TYPE_LENGTH_PREFIXED)
            continue;
        if (!tare__wire_varint(field->data, field->len, &at, &length) || length != field->len - at)
            continue;
        if (read_entry(field->data + at, (size_t)length, &p)) visit(user, &p);
    }
}

// --- memory ---

// The memory blocks of one file. They are freed when the last tensor that is a view of one is
// released.
typedef struct unpacked {
    Onnx__ModelProto *model;
    ProtobufCAllocator allocator;
    bool failed; // memory ran out
} unpacked;

static void *allocate(void *user, size_t size) {
    unpacked *u = user;
    void *memory = tare__alloc(size > 0 ? size : 1);
    u->failed |= memory == NULL;
    return memory;
}

static void release(void *user, void *memory) {
    (void)user;
    tare__free(memory);
}

static void release_unpacked(void *owner) {
    unpacked *u = owner;
    if (u->model != NULL) onnx__model_proto__free_unpacked(u->model, &u->allocator);
    tare__free(u);
}

static tare_status unpack(const unsigned char *bytes, size_t size, onnx_file *out,
                          tare_error *err) {
    unpacked *u = tare__alloc_zeroed(1, sizeof *u);
    if (u == NULL) return tare__out_of_memory(err);
    u->allocator = (ProtobufCAllocator){allocate, release, u};
    u->model = onnx__model_proto__unpack(&u->allocator, size, bytes);
    if (u->model == NULL) {
        const bool failed = u->failed;
        release_unpacked(u);
        if (failed) return tare__out_of_memory(err);
        return tare__fail(err, TARE_MALFORMED_FILE,
                          "the file is no ONNX model: a field has another type than in onnx.proto");
    }
    out->model = u->model;
    out->store = tare__storage_adopt(NULL, 0, u, release_unpacked);
    if (out->store != NULL) return TARE_OK;
    release_unpacked(u);
    return tare__out_of_memory(err);
}

// --- versions ---

tare_status tare__onnx_check_opset(const char *what, int64_t version, tare_error *err) {
    if (version >= OLDEST_OPSET && version <= NEWEST_OPSET) return TARE_OK;
    tare__fail(err, TARE_UNSUPPORTED, "%s has opset %lld, expected %d to %d", what,
               (long long)version, OLDEST_OPSET, NEWEST_OPSET);
    return tare__hint(err, TARE_UNSUPPORTED,
                      "export it with opset_version=17 or 18, or convert it with "
                      "onnx.version_converter");
}

static tare_status check_opset(onnx_file *f, const Onnx__OperatorSetIdProto *set, tare_error *err) {
    const char *domain = set->domain != NULL ? set->domain : "";
    if (*domain != '\0' && strcmp(domain, "ai.onnx") != 0)
        return TARE_OK; // refused where it is used
    if (f->opset != 0)
        return tare__fail(err, TARE_MALFORMED_FILE,
                          "the model states two opsets, %d and %" PRId64 "; expected one", f->opset,
                          (int64_t)set->version);
    TARE_TRY(tare__onnx_check_opset("the model", set->version, err));
    f->opset = (int)set->version;
    return TARE_OK;
}

static tare_status check_versions(onnx_file *f, tare_error *err) {
    const Onnx__ModelProto *m = f->model;
    // Newer IR versions only add to the format. The operator set, checked below, says what the file
    // may mean.
    if (m->ir_version < OLDEST_IR)
        return tare__fail(err, TARE_MALFORMED_FILE,
                          "the model has IR version %lld, expected %d or newer",
                          (long long)m->ir_version, OLDEST_IR);
    for (size_t i = 0; i < m->n_opset_import; i++)
        TARE_TRY(check_opset(f, m->opset_import[i], err));
    if (f->opset == 0) return tare__fail(err, TARE_MALFORMED_FILE, "the model states no opset");
    if (m->graph == NULL) return tare__fail(err, TARE_MALFORMED_FILE, "the model has no graph");
    return TARE_OK;
}

// --- the whole ---

// The message has few fields: the first one must have a number and kind that the schema knows.
bool tare__onnx_is_model(const unsigned char *bytes, size_t size) {
    size_t at = 0;
    uint64_t tag = 0;
    if (!tare__wire_varint(bytes, size, &at, &tag)) return false;
    switch (tag >> 3) {
    case 1: // ir_version: a small number
        return (tag & 7) == 0 && at < size && bytes[at] < 0x80 &&
               (at + 1 == size || bytes[at + 1] != 0);
    case 2:
    case 3:
    case 4:
    case 6:
    case 7:
    case 8:
    case 14:
    case 25: {
        uint64_t length = 0;
        return (tag & 7) == 2 && tare__wire_varint(bytes, size, &at, &length) &&
               length <= size - at;
    }
    default:
        return false;
    }
}

tare_status tare__onnx_file_open(const unsigned char *bytes, size_t size, const char *path,
                                 onnx_file *out, tare_error *err) {
    onnx_file f = {.path = path};
    TARE_TRY(tare__wire_check(&onnx__model_proto__descriptor, bytes, size, err));
    TARE_TRY(unpack(bytes, size, &f, err));
    const tare_status status = check_versions(&f, err);
    if (status != TARE_OK) {
        tare__onnx_file_release(&f);
        return status;
    }
    *out = f;
    return TARE_OK;
}

void tare__onnx_file_release(onnx_file *f) {
    tare__storage_release(f->store);
    memset(f, 0, sizeof *f);
}
