// SPDX-License-Identifier: Apache-2.0
// build: -O3
// Copies between two strided layouts. Rows that are contiguous on both sides are copied whole;
// otherwise tiles are transposed, so that both sides stay in the cache.
#include "runtime/gemm/strided_copy.h"

#include <string.h>

#include "core/memory/short_copy.h"
#include "runtime/gemm/transpose_tiles.h"
#include "runtime/kernels/scratch.h"

enum {
    GRAIN = 1 << 14, // elements per task, roughly
    SHORT = 256,     // bytes of a row that is copied without a call
};

// --- loops ---

// Outermost first, in the order of y: by descending stride.
static size_t sort_loops(const copy_loop *loops, size_t count, copy_loop *out) {
    size_t kept = 0;
    for (size_t i = 0; i < count; i++) {
        if (loops[i].size == 1) continue;
        size_t at = kept++;
        for (; at > 0 && out[at - 1].to < loops[i].to; at--) out[at] = out[at - 1];
        out[at] = loops[i];
    }
    return kept;
}

// Merges loops that are contiguous on both sides.
static size_t join_loops(copy_loop *loops, size_t count) {
    size_t kept = 0;
    for (size_t i = 0; i < count; i++) {
        const copy_loop *inner = &loops[i];
        copy_loop *outer = kept > 0 ? &loops[kept - 1] : NULL;
        if (outer != NULL && outer->from == inner->from * inner->size &&
            outer->to == inner->to * inner->size) {
            *outer = (copy_loop){outer->size * inner->size, inner->from, inner->to};
            continue;
        }
        loops[kept++] = *inner;
    }
    return kept;
}

static void take_loop(copy_loop *loops, size_t *count, size_t i, copy_loop *out) {
    *out = loops[i];
    (*count)--;
    memmove(&loops[i], &loops[i + 1], (*count - i) * sizeof *loops);
}

// If no neighbours in y are written (columns of a wider tensor), a row is one element.
static void choose_inner(strided_copy *c, copy_loop *loops, size_t *count) {
    const copy_loop none = {1, 1, 1};
    c->row = c->other = none;
    if (*count > 0 && loops[*count - 1].to == 1) take_loop(loops, count, *count - 1, &c->row);
    const bool is_whole = c->row.size > 1 && c->row.from == 1;
    for (size_t i = *count; !is_whole && i-- > 0;)
        if (loops[i].from == 1) {
            take_loop(loops, count, i, &c->other);
            break;
        }
}

// Divides large inner loops, so that threads have blocks to share.
static void cut(strided_copy *c) {
    copy_loop *longer = c->other.size > 1 ? &c->other : &c->row;
    const int64_t each = c->row.size * c->other.size / longer->size;
    c->block = GRAIN / each / TRANSPOSE_TILE * TRANSPOSE_TILE;
    if (c->block < TRANSPOSE_TILE) c->block = TRANSPOSE_TILE;
    if (c->block > longer->size) c->block = longer->size;
    c->blocks = (longer->size + c->block - 1) / c->block;
}

strided_copy tare__strided_copy_of(size_t element, int64_t offset, const copy_loop *loops,
                                   size_t count) {
    strided_copy c = {.element = element, .offset = offset};
    copy_loop sorted[COPY_MOST_LOOPS];
    size_t kept = join_loops(sorted, sort_loops(loops, count, sorted));
    choose_inner(&c, sorted, &kept);
    cut(&c);
    c.units = c.blocks;
    c.loop_count = (int)kept;
    for (size_t i = 0; i < kept; i++) {
        c.loop[i] = sorted[i];
        c.units *= sorted[i].size;
    }
    const int64_t unit = c.row.size * c.other.size / c.blocks;
    c.grain = tare__grain_of(GRAIN, unit > 0 ? (size_t)unit : 1);
    return c;
}

bool tare__strided_copy_is_same(const strided_copy *c) {
    return c->offset == 0 && c->loop_count == 0 && c->other.size == 1 && c->row.from == 1 &&
           c->row.to == 1;
}

int64_t tare__strided_copy_elements(const strided_copy *c) {
    return c->units * c->row.size * c->other.size / c->blocks;
}

// --- elements ---

// Copies rows of `count` elements that are `from` apart, and `others` such rows, which are adjacent
// in x and `to` apart in y. Two rows whose elements alternate in y are interleaved.
#define DEFINE(name, type)                                                                         \
    static void name##_row(const type *x, int64_t from, int64_t count, type *y) {                  \
        for (int64_t i = 0; i < count; i++) y[i] = x[i * from];                                    \
    }                                                                                              \
    static void name##_interleave(const type *restrict x, int64_t from, int64_t others,            \
                                  type *restrict y) {                                              \
        const type *restrict second = x + from;                                                    \
        for (int64_t k = 0; k < others; k++) {                                                     \
            y[2 * k] = x[k];                                                                       \
            y[2 * k + 1] = second[k];                                                              \
        }                                                                                          \
    }                                                                                              \
    DEFINE_TRANSPOSE(name##_tiles, type)

DEFINE(copy_bytes, uint8_t)
DEFINE(copy_halves, uint16_t)
DEFINE(copy_words, uint32_t)
DEFINE(copy_doubles, uint64_t)

#define EACH_TYPE(size, call)                                                                      \
    switch (size) {                                                                                \
    case 1:                                                                                        \
        call(copy_bytes, uint8_t);                                                                 \
        break;                                                                                     \
    case 2:                                                                                        \
        call(copy_halves, uint16_t);                                                               \
        break;                                                                                     \
    case 4:                                                                                        \
        call(copy_words, uint32_t);                                                                \
        break;                                                                                     \
    default:                                                                                       \
        call(copy_doubles, uint64_t);                                                              \
    }

static void copy_row(const strided_copy *c, const void *x, int64_t count, void *y) {
    if (c->row.from == 1) {
        memcpy(y, x, (size_t)count * c->element);
        return;
    }
#define ROW(name, type) name##_row(x, c->row.from, count, y)
    EACH_TYPE(c->element, ROW)
#undef ROW
}

static void copy_tiles(const strided_copy *c, const void *x, int64_t others, void *y) {
    if (c->row.size == 2 && c->other.to == 2) {
#define INTERLEAVE(name, type) name##_interleave(x, c->row.from, others, y)
        EACH_TYPE(c->element, INTERLEAVE)
#undef INTERLEAVE
        return;
    }
#define TILES(name, type) name##_tiles(x, c->row.from, c->row.size, others, y, c->other.to)
    EACH_TYPE(c->element, TILES)
#undef TILES
}

static void copy_unit(const strided_copy *c, int64_t block, const unsigned char *x,
                      unsigned char *y) {
    const copy_loop *longer = c->other.size > 1 ? &c->other : &c->row;
    const int64_t first = block * c->block, left = longer->size - first;
    const int64_t count = left < c->block ? left : c->block;
    const void *from = x + first * longer->from * (int64_t)c->element;
    void *to = y + first * longer->to * (int64_t)c->element;
    if (c->other.size > 1)
        copy_tiles(c, from, count, to);
    else
        copy_row(c, from, count, to);
}

// Short rows, and the innermost loop around them.
static bool has_short_rows(const strided_copy *c) {
    return c->row.from == 1 && c->other.size == 1 && c->blocks == 1 && c->loop_count > 0 &&
           c->row.size * (int64_t)c->element <= SHORT;
}

static void copy_short_rows(const strided_copy *c, size_t count, const unsigned char *x,
                            unsigned char *y) {
    const copy_loop *loop = &c->loop[c->loop_count - 1];
    const ptrdiff_t element = (ptrdiff_t)c->element, from = loop->from * element,
                    to = loop->to * element;
    const size_t bytes = (size_t)c->row.size * c->element;
    for (; count > 0; count--, x += from, y += to) tare__short_copy(y, x, bytes);
}

// Of a unit's loops.
typedef struct position {
    int64_t at[COPY_MOST_LOOPS], from, to;
} position;

static void begin_at(const strided_copy *c, int64_t rest, position *p) {
    p->from = c->offset;
    p->to = 0;
    for (int d = c->loop_count - 1; d >= 0; d--) {
        p->at[d] = rest % c->loop[d].size;
        rest /= c->loop[d].size;
        p->from += p->at[d] * c->loop[d].from;
        p->to += p->at[d] * c->loop[d].to;
    }
}

// The innermost loop has as many steps left.
static void advance(const strided_copy *c, int64_t steps, position *p) {
    for (int d = c->loop_count - 1; d >= 0; d--, steps = 1) {
        p->from += steps * c->loop[d].from;
        p->to += steps * c->loop[d].to;
        p->at[d] += steps;
        if (p->at[d] < c->loop[d].size) return;
        p->from -= c->loop[d].size * c->loop[d].from;
        p->to -= c->loop[d].size * c->loop[d].to;
        p->at[d] = 0;
    }
}

void tare__strided_copy_units(const strided_copy *c, size_t first, size_t end, const void *x,
                              void *y) {
    const int64_t element = (int64_t)c->element;
    const bool is_short = has_short_rows(c);
    int64_t block = (int64_t)first % c->blocks;
    position p;
    begin_at(c, (int64_t)first / c->blocks, &p);
    for (size_t i = first, count = 1; i < end; i += count) {
        const unsigned char *from = (const unsigned char *)x + p.from * element;
        unsigned char *to = (unsigned char *)y + p.to * element;
        if (is_short) {
            const int inner = c->loop_count - 1;
            count = tare__least((size_t)(c->loop[inner].size - p.at[inner]), end - i);
            copy_short_rows(c, count, from, to);
        } else {
            copy_unit(c, block, from, to);
            if (++block < c->blocks) continue;
            block = 0;
        }
        advance(c, (int64_t)count, &p);
    }
}

// --- all of it ---

typedef struct copy_job {
    const strided_copy *copy;
    const void *x;
    void *y;
} copy_job;

static void copy_units(void *user, size_t first, size_t end, size_t worker) {
    const copy_job *job = user;
    (void)worker;
    tare__strided_copy_units(job->copy, first, end, job->x, job->y);
}

void tare__strided_copy_run(const strided_copy *c, thread_pool *pool, const void *x, void *y) {
    copy_job job = {c, x, y};
    tare__parallel(pool, (size_t)c->units, c->grain, copy_units, &job);
}
