// SPDX-License-Identifier: Apache-2.0
// Assigns each intermediate result of a plan an offset in its block of memory.
#include "runtime/plan/build.h"
#include "runtime/plan/memory_layout.h"

// The offset of a slice follows from the buffer that it is part of.
bool tare__plan_is_laid_out(const plan_buffer *buffer) {
    return buffer->kind == BUFFER_ARENA && buffer->first != NOTHING && buffer->whole == NOTHING;
}

static size_t list_buffers(const plan *p, memory_buffer *buffers) {
    size_t count = 0;
    for (size_t i = 0; i < p->buffer_count; i++) {
        const plan_buffer *buffer = &p->buffers[i];
        if (tare__plan_is_laid_out(buffer))
            buffers[count++] = (memory_buffer){buffer->bytes, buffer->first, buffer->last, 0};
    }
    return count;
}

static void take_offsets(plan *p, const memory_buffer *buffers) {
    for (size_t i = 0; i < p->buffer_count; i++)
        if (tare__plan_is_laid_out(&p->buffers[i])) p->buffers[i].offset = (buffers++)->offset;
}

static tare_status find_offsets(plan *p, arena *memory, tare_error *err) {
    memory_buffer *buffers = tare__arena_array(memory, p->buffer_count + 1, sizeof *buffers);
    if (buffers == NULL) return tare__out_of_memory(err);
    TARE_TRY(tare__memory_lay_out(buffers, list_buffers(p, buffers), &p->block_bytes,
                                  &p->least_bytes, err));
    take_offsets(p, buffers);
    return TARE_OK;
}

// A run needs the block, and memory for its outputs. Above the limit the interpreter runs the
// graph: it needs less memory, or reports the error.
static tare_status check_size(const plan *p, uint64_t most, tare_error *err) {
    uint64_t left = most;
    bool fits = p->block_bytes <= left;
    left -= fits ? p->block_bytes : 0;
    for (size_t i = 0; i < p->buffer_count && fits; i++) {
        const plan_buffer *buffer = &p->buffers[i];
        if (buffer->kind != BUFFER_OUTPUT) continue;
        fits = buffer->bytes <= left;
        left -= fits ? buffer->bytes : 0;
    }
    if (fits) return TARE_OK;
    return tare__fail(err, TARE_UNSUPPORTED, "results would take more memory than the limit");
}

tare_status tare__plan_lay_out(plan *p, uint64_t most, tare_error *err) {
    arena memory = {0};
    const tare_status status = find_offsets(p, &memory, err);
    tare__arena_release(&memory);
    TARE_TRY(status);
    for (size_t i = 0; i < p->buffer_count; i++) {
        plan_buffer *buffer = &p->buffers[i];
        if (buffer->whole != NOTHING)
            buffer->offset = p->buffers[buffer->whole].offset + buffer->shift;
    }
    TARE_TRY(check_size(p, most, err));
    if (p->is_of_call) return TARE_OK;
    void *block = tare__alloc_large(p->block_bytes);
    if (block == NULL) return tare__out_of_memory(err);
    tare__plan_take_block(p, block);
    return TARE_OK;
}

void tare__plan_take_block(plan *p, void *block) {
    p->block = block;
    for (size_t i = 0; i < p->buffer_count; i++)
        if (p->buffers[i].kind == BUFFER_ARENA)
            p->buffers[i].data = (unsigned char *)block + p->buffers[i].offset;
}
