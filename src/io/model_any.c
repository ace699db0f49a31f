// SPDX-License-Identifier: Apache-2.0
// Detects the format by the first bytes; names of files are not reliable.
#include "io/model_any.h"

#include <string.h>

#include "core/system/file.h"
#include "core/system/mapping.h"
#include "core/text/text.h"
#include "io/pt2/pt2.h"
#ifdef TARE_HAVE_ONNX
#include "io/onnx/onnx.h"
#endif

// --- what is no model ---

typedef struct signature {
    const char *bytes;
    size_t length, offset;
    const char *what, *hint;
} signature;
#define SIGNATURE(bytes, offset, what, hint)                                                       \
    { bytes, sizeof(bytes) - 1, offset, what, hint }

#define EXPORT_HINT "write the model with tools/tare_export.py, or export it to ONNX"
#define DATA_HINT   "data is given with --calibrate, --data or as the command's DATA"

// clang-format off
static const signature signatures[] = {
    SIGNATURE("\xff\xd8\xff", 0, "a JPEG image", DATA_HINT),
    SIGNATURE("\x89PNG\r\n\x1a\n", 0, "a PNG image", DATA_HINT),
    SIGNATURE("GIF8", 0, "a GIF image", DATA_HINT),
    SIGNATURE("BM", 0, "a BMP image", DATA_HINT),
    SIGNATURE("WEBP", 8, "a WebP image", DATA_HINT),
    SIGNATURE("\x93NUMPY", 0, "a NumPy array (.npy)", DATA_HINT),
    SIGNATURE("PK\3\4", 0, "a zip archive (.npz or .pt)", EXPORT_HINT),
    SIGNATURE("\x1f\x8b", 0, "gzip-compressed data", "unpack it first"),
    SIGNATURE("\x89HDF\r\n\x1a\n", 0, "an HDF5 file (Keras?)", "convert the model to ONNX (tf2onnx)"),
    SIGNATURE("TFL3", 4, "a TensorFlow Lite model", "convert the model to ONNX (tf2onnx)"),
    SIGNATURE("GGUF", 0, "a GGUF model", EXPORT_HINT),
    SIGNATURE("\x80\x02", 0, "a Python pickle (an old .pt file?)", EXPORT_HINT),
    SIGNATURE("\x7f" "ELF", 0, "a program or library", NULL),
    SIGNATURE("%PDF", 0, "a PDF document", NULL),
};
// clang-format on

static const signature *find_signature(const unsigned char *bytes, size_t size) {
    for (size_t i = 0; i < sizeof signatures / sizeof *signatures; i++) {
        const signature *s = &signatures[i];
        if (size >= s->offset + s->length && memcmp(bytes + s->offset, s->bytes, s->length) == 0)
            return s;
    }
    return NULL;
}

static bool is_text(const unsigned char *bytes, size_t size) {
    const size_t look = size < 512 ? size : 512;
    for (size_t i = 0; i < look; i++)
        if ((bytes[i] < 0x20 && strchr("\t\n\r\f", bytes[i]) == NULL) || bytes[i] == 0 ||
            bytes[i] == 0x7f)
            return false;
    return size > 8;
}

const char *tare__describe_bytes(const unsigned char *bytes, size_t size) {
    if (size == 0) return "an empty file";
    const signature *s = find_signature(bytes, size);
    if (s != NULL) return s->what;
    return is_text(bytes, size) ? "text" : NULL;
}

static tare_status refuse(const unsigned char *bytes, size_t size, tare_error *err) {
    const signature *s = size > 0 ? find_signature(bytes, size) : NULL;
    tare__fail(err, TARE_MALFORMED_FILE,
               "expected a model (tare's own .safetensors, .pt2, or ONNX), found %s",
               tare__describe_bytes(bytes, size));
    if (s != NULL && s->hint != NULL) tare__hint(err, TARE_MALFORMED_FILE, "%s", s->hint);
    return TARE_MALFORMED_FILE;
}

// --- formats ---

// A header's length that fits the file, and its first brace.
static bool is_safetensors(const unsigned char *bytes, size_t size) {
    if (size < 10 || bytes[8] != '{') return false;
    uint64_t length = 0;
    for (int i = 7; i >= 0; i--) length = length << 8 | bytes[i];
    return length <= size - 8;
}

typedef struct reading {
    const registry *classes;
    const model_state_io *state;
    const tare_model_read_options *options;
    model_found *out;
    tare_error *err;
} reading;

static tare_status refuse_sizes(const reading *r) {
    if (r->options == NULL || r->options->dim_count + r->options->shape_count == 0) return TARE_OK;
    return tare__fail(r->err, TARE_INVALID_ARGUMENT,
                      "the model leaves no size of its inputs open: only ONNX files take sizes "
                      "and shapes");
}

static tare_status read_own(const reading *r, storage *store, const unsigned char *bytes,
                            size_t size) {
    safetensors file = {0};
    TARE_TRY(refuse_sizes(r));
    TARE_TRY(tare__safetensors_parse(store, bytes, size, &file, r->err));
    const bool ignores_digests = r->options != NULL && r->options->ignores_digests;
    model_found *out = r->out;
    const tare_status status =
        ignores_digests ? tare__model_from_file_unchecked(&file, r->classes, r->state, &out->root,
                                                          &out->extra, r->err)
                        : tare__model_from_file_counted(&file, r->classes, r->state, &out->root,
                                                        &out->extra, &out->digest_count, r->err);
    tare__safetensors_release(&file);
    return status;
}

#ifdef TARE_HAVE_ONNX

static tare_status read_onnx(const reading *r, const char *path, const unsigned char *bytes,
                             size_t size) {
    onnx_origin origin = {0};
    TARE_TRY(tare__onnx_read(bytes, size, path, r->classes, r->state, r->options, &r->out->root,
                             &origin, r->err));
    r->out->extra = origin.extra;
    r->out->is_quantized = origin.is_quantized;
    r->out->from_onnx = true;
    r->out->norms_are_folded = origin.is_torch && origin.has_conv && !origin.has_batch_norm;
    return TARE_OK;
}

#else

// The first field of a model is its IR version, a small number.
static bool tare__onnx_is_model(const unsigned char *bytes, size_t size) {
    return size > 2 && bytes[0] == 8 && bytes[1] < 0x20 && bytes[2] != 0;
}

static tare_status read_onnx(const reading *r, const char *path, const unsigned char *bytes,
                             size_t size) {
    (void)path, (void)bytes, (void)size;
    tare__fail(r->err, TARE_UNSUPPORTED, "this build of tare cannot read ONNX files");
    return tare__hint(r->err, TARE_UNSUPPORTED,
                      "build it with protobuf-c and the ONNX schema (Debian: protobuf-c-compiler "
                      "libprotobuf-c-dev libonnx-dev)");
}

#endif

static uint64_t memory_limit(const tare_model_read_options *options) {
    return options != NULL && options->limits != NULL ? options->limits->memory_bytes : 0;
}

static tare_status read_pt2(const reading *r, storage *store, const unsigned char *bytes,
                            size_t size) {
    TARE_TRY(refuse_sizes(r));
    return tare__pt2_read(store, bytes, size, r->classes, memory_limit(r->options), &r->out->root,
                          r->err);
}

static tare_status read_bytes(const reading *r, const char *path, storage *store,
                              const unsigned char *bytes, size_t size) {
    if (is_safetensors(bytes, size)) return read_own(r, store, bytes, size);
    if (tare__pt2_is_archive(bytes, size)) return read_pt2(r, store, bytes, size);
    if (size == 0 || find_signature(bytes, size) != NULL) return refuse(bytes, size, r->err);
    if (tare__onnx_is_model(bytes, size)) return read_onnx(r, path, bytes, size);
    if (is_text(bytes, size)) return refuse(bytes, size, r->err);
    return read_own(r, store, bytes, size); // which reports what is wrong
}

static void keep_lent(void *owner) {
    (void)owner; // the bytes are the caller's
}

static tare_status open_memory(const model_source *from, bool copies, storage **out,
                               const unsigned char **bytes, tare_error *err) {
    void *lent = (void *)from->bytes; // NOLINT: adopted bytes are only read
    *out = copies ? tare__storage_create(from->size)
                  : tare__storage_adopt(lent, from->size, NULL, keep_lent);
    if (*out == NULL) return tare__out_of_memory(err);
    *bytes = tare__storage_data(*out);
    if (copies && from->size > 0) memcpy((void *)*bytes, from->bytes, from->size);
    return TARE_OK;
}

static tare_status open_source(const model_source *from, const tare_model_read_options *options,
                               storage **out, const unsigned char **bytes, size_t *size,
                               tare_error *err) {
    const bool copies = options != NULL && options->copies_file;
    *size = from->size;
    if (from->bytes != NULL) return open_memory(from, copies, out, bytes, err);
    if (strcmp(from->path, "-") == 0)
        return tare__standard_input_read(memory_limit(options), out, bytes, size, err);
    return copies ? tare__file_read(from->path, out, bytes, size, err)
                  : tare__file_map(from->path, out, bytes, size, err);
}

tare_status tare__model_any_read(const model_source *from, const registry *classes,
                                 const model_state_io *state,
                                 const tare_model_read_options *options, model_found *out,
                                 tare_error *err) {
    const reading r = {classes, state, options, out, err};
    const char *path = from->path;
    storage *store = NULL;
    const unsigned char *bytes = NULL;
    size_t size = 0;
    memset(out, 0, sizeof *out);
    TARE_TRY(open_source(from, options, &store, &bytes, &size, err));
    tare_status status = read_bytes(&r, from->bytes != NULL ? NULL : path, store, bytes, size);
    // A file that is truncated meanwhile looks damaged.
    const bool is_lost = status != TARE_OK && tare__mapping_check(err) != TARE_OK;
    tare__storage_release(store);
    if (is_lost) return TARE_IO;
    return status == TARE_OK ? TARE_OK : tare__at(err, status, "%s", path);
}
