// SPDX-License-Identifier: Apache-2.0
// Mutates model files inside of their formats: of ours the graph, the other metadata and the
// entries of tensors, of ONNX the messages. Now and then bytes are mutated all the same.
#include <stdint.h>
#include <string.h>

#include "core/json/json.h"
#include "core/json/write.h"
#include "core/text/text.h"
#include "edit.h"

size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t max_size);
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned seed);

// The graph and what else is JSON within the header's strings; or the header itself.
static void edit_header(edit_random *r, json_t *header) {
    json_t *metadata = json_object_get(header, "__metadata__");
    const size_t chosen = edit_choose(r, json_object_size(metadata) + 1);
    size_t at = 0;
    const char *key = NULL;
    json_t *item = NULL;
    json_object_foreach(metadata, key, item) {
        text changed = {0};
        if (at++ == chosen && json_is_string(item) &&
            edit_json_text(r, json_string_value(item), json_string_length(item), &changed))
            (void)json_object_set_new(metadata, key, json_string(tare__text_chars(&changed)));
        const bool is_changed = changed.length > 0;
        tare__text_release(&changed);
        if (is_changed) return;
    }
    edit_json(r, header);
}

// Eight bytes of length, the header, the tensors' bytes.
static bool edit_own(edit_random *r, const uint8_t *data, size_t size, text *out) {
    uint64_t length = 0;
    json_t *header = NULL;
    text changed = {0};
    if (size < 8) return false;
    for (int i = 0; i < 8; i++) length |= (uint64_t)data[i] << 8 * i;
    if (length > size - 8 ||
        tare__json_parse((const char *)data + 8, length, &header, NULL) != TARE_OK)
        return false;
    edit_header(r, header);
    tare__json_write(header, &changed);
    json_decref(header);
    for (int i = 0; i < 8; i++)
        tare__text_char(out, (char)(unsigned char)((uint64_t)changed.length >> 8 * i));
    tare__text_append_n(out, tare__text_chars(&changed), changed.length);
    tare__text_append_n(out, (const char *)data + 8 + length, size - 8 - length);
    const bool is_done = !changed.failed && !out->failed;
    tare__text_release(&changed);
    return is_done;
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned seed) {
    edit_random r = edit_seed(seed);
    text changed = {0};
    size_t made = 0;
    const bool is_edited = edit_choose(&r, 16) != 0 && (edit_own(&r, data, size, &changed) ||
                                                        edit_onnx(&r, data, size, &changed));
    if (is_edited && changed.length > 0 && changed.length <= max_size) {
        made = changed.length;
        memcpy(data, tare__text_chars(&changed), made);
    }
    tare__text_release(&changed);
    return made > 0 ? made : LLVMFuzzerMutate(data, size, max_size);
}
