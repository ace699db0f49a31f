// SPDX-License-Identifier: Apache-2.0
// Makes a batched tail from two plans: the plan of one sample loses its last steps, and the plan of
// all samples keeps only these. Both plans exist already, because plan/by_sample.c chooses between
// them, and their layers share packed weights. One buffer connects them: each sample's row is
// copied from it to the buffer that the tail reads, unless it is an output, which both plans find
// in the caller's memory.
#include "runtime/plan/batched_tail.h"

#include <string.h>

#include "ops/rules.h"
#include "runtime/plan/samples.h"

// A tail is worthwhile from this many bytes of weights: it costs a block of memory and a
// synchronization of all threads. Fewer weights stay in the second-level cache from one sample to
// the next. Two layers behind convolutions, 16 samples, in us on one thread and on two: 512 KB take
// 48 and 40 as a tail (141 and 78 sample by sample), 128 KB 19 and 9 (46 and 21), 32 KB 7 and 6 (17
// and 9). With two samples a tail makes no difference.
// Of images, the tail begins where weights outweigh what a sample reads and writes most: ResNet-50,
// 16 samples, one thread of a Xeon: 80 ms by sample, 71.5 so, with AVX512-VNNI 204 and 186;
// ResNet-18 30.7 and 25.7. Two threads that divide every step of integers take longer than with a
// sample each, 43 instead of 39 ms. Of floats they divide the images, and each reads what it wrote.
enum { LEAST_WEIGHT_BYTES = 64 << 10 };

// --- finding it ---

static bool is_name(const char *a, const char *b) {
    return a == b || (a != NULL && b != NULL && strcmp(a, b) == 0);
}

static bool compute_same_nodes(const plan_step *a, const plan_step *b) {
    if (a->facts.node_count != b->facts.node_count || !is_name(a->node_name, b->node_name))
        return false;
    for (size_t i = 0; i < a->facts.node_count; i++)
        if (!is_name(a->facts.nodes[i], b->facts.nodes[i])) return false;
    return true;
}

static bool is_vector(const tare_tensor *t) {
    return tare__inner_count(t, t->ndim > 1 ? 1 : 0) == 1;
}

// True if `all` is `one` for each sample: of integers a vector, if threads would divide every step.
static bool are_samples(const plan *p, const tare_tensor *one, const tare_tensor *all,
                        int64_t samples) {
    return one != NULL && all != NULL && tare__is_sample(one, all, samples) && one->count > 0 &&
           (is_vector(one) || one->dtype == TARE_FLOAT32 ||
            tare__thread_count(p->setting.kernels->space.pool) == 1);
}

static step_note note_of(const plan *p, const plan_step *step) {
    step_note note = {.kernel = step->class->name};
    if (step->class->describe != NULL) step->class->describe(p, step->state, &note);
    return note;
}

// Integer steps and tare's own loops have the same bits, because samples are independent; a
// library's float steps may not.
static bool have_same_bits(const step_note *one, const step_note *all) {
    if (!one->bits_may_differ && !all->bits_may_differ) return true;
    return one->samples_are_alike && all->samples_are_alike &&
           strcmp(one->kernel, all->kernel) == 0;
}

// True if step `all` does for every sample what `one` does for one. Calls refer to tensors by
// address, which changes, and have no replicas.
static bool is_step_of_all(const plan *p, const plan_step *one, const plan_step *all,
                           int64_t samples) {
    return one->class == all->class && one->class->replicate != NULL &&
           compute_same_nodes(one, all) && are_samples(p, one->facts.x, all->facts.x, samples) &&
           are_samples(p, one->facts.y, all->facts.y, samples);
}

static bool is_written(const plan_buffer *buffer) {
    return buffer->first != NOTHING &&
           (buffer->kind == BUFFER_ARENA || buffer->kind == BUFFER_OUTPUT);
}

// The only buffer that steps from `cut` on read without writing it; it holds the tensor that the
// first of them reads. NOTHING: there is not exactly one.
static size_t find_crossing(const plan *p, size_t cut) {
    size_t found = NOTHING;
    for (size_t i = 0; i < p->buffer_count; i++) {
        const plan_buffer *buffer = &p->buffers[i];
        if (buffer->first == NOTHING || buffer->last < cut || buffer->kind == BUFFER_CONSTANT)
            continue;
        if (buffer->kind == BUFFER_INPUT) return NOTHING;
        if (buffer->first >= cut) continue;
        if (found != NOTHING) return NOTHING;
        found = i;
    }
    return found == p->steps[cut].facts.x_buffer ? found : NOTHING;
}

static bool cross_alike(const plan *one, size_t cut, const plan *whole, size_t cut_all) {
    const size_t from = find_crossing(one, cut), to = find_crossing(whole, cut_all);
    return from != NOTHING && to != NOTHING && one->buffers[from].kind == whole->buffers[to].kind;
}

// True if the step only concatenates rows that one sample has in place, so that the plan of one
// sample has no such step.
static bool only_joins(const plan_step *all, const plan_step *one) {
    return all->class->only_joins && !compute_same_nodes(one, all);
}

// Of images, which stay in the cache if a sample goes through all steps alone.
static int64_t image_bytes(const tare_tensor *t) {
    return is_vector(t) ? 0 : (int64_t)tare__tensor_bytes(t);
}

tail_steps tare__plan_find_tail(const plan *one, const plan *whole, int64_t samples) {
    tail_steps found = {0};
    int64_t weight_bytes = 0, gain = 0, most = 0;
    for (tail_steps n = {1, 1}; n.one < one->step_count && n.whole < whole->step_count; n.whole++) {
        const size_t cut = one->step_count - n.one, cut_all = whole->step_count - n.whole;
        if (only_joins(&whole->steps[cut_all], &one->steps[cut])) continue;
        if (!is_step_of_all(one, &one->steps[cut], &whole->steps[cut_all], samples)) break;
        const step_note note = note_of(one, &one->steps[cut]);
        const step_note of_all = note_of(whole, &whole->steps[cut_all]);
        if (!have_same_bits(&note, &of_all)) break;
        weight_bytes += (int64_t)of_all.weight_bytes;
        gain += (int64_t)of_all.weight_bytes - image_bytes(one->steps[cut].facts.x) -
                image_bytes(one->steps[cut].facts.y);
        if (weight_bytes >= LEAST_WEIGHT_BYTES && gain >= most &&
            cross_alike(one, cut, whole, cut_all)) {
            found = n;
            most = gain;
        }
        n.one++;
    }
    return found;
}

// --- cutting ---

static void destroy_steps(plan *p, size_t first, size_t count) {
    for (size_t i = first; i < first + count; i++)
        if (p->steps[i].class->destroy != NULL) p->steps[i].class->destroy(p->steps[i].state);
}

// An output in the connecting buffer belongs to both plans, because the tail may write over it. The
// other buffers keep their offsets: laying them out again made the block no smaller for
// MobileNetV2, V3-large, ResNet-18 and -50, and would move the tensors of calls.
static void drop_last_steps(plan *p, size_t cut) {
    for (size_t i = 0; i < p->output_count; i++) {
        plan_output *out = &p->outputs[i];
        const plan_buffer *buffer = &p->buffers[out->buffer];
        if (is_written(buffer) && buffer->first >= cut) out->buffer = NOTHING;
    }
    destroy_steps(p, cut, p->step_count - cut);
    p->step_count = cut;
    for (size_t i = 0; i < p->buffer_count; i++) {
        plan_buffer *buffer = &p->buffers[i];
        if (buffer->first == NOTHING || buffer->last < cut) continue;
        if (buffer->first >= cut) buffer->first = NOTHING;
        buffer->last = cut - 1;
    }
}

static void drop_first_steps(plan *p, size_t cut) {
    for (size_t i = 0; i < p->output_count; i++) {
        plan_output *out = &p->outputs[i];
        const plan_buffer *buffer = &p->buffers[out->buffer];
        if (!is_written(buffer) || buffer->last < cut) out->buffer = NOTHING;
    }
    destroy_steps(p, 0, cut);
    p->step_count -= cut;
    memmove(p->steps, p->steps + cut, p->step_count * sizeof *p->steps);
    for (size_t i = 0; i < p->buffer_count; i++) {
        plan_buffer *buffer = &p->buffers[i];
        if (buffer->first == NOTHING) continue;
        buffer->first = buffer->last < cut    ? NOTHING
                        : buffer->first < cut ? 0
                                              : buffer->first - cut;
        buffer->last -= buffer->last < cut ? buffer->last : cut;
    }
}

static tare_status lay_out_anew(plan *p, tare_error *err) {
    tare__free_aligned(p->block);
    p->block = NULL;
    return tare__plan_lay_out(p, tare__run_budget(p->setting.it->memory_limit).limit, err);
}

tare_status tare__plan_take_tail(plan *one, plan *whole, tail_steps tail, tare_error *err) {
    const size_t cut = one->step_count - tail.one, cut_all = whole->step_count - tail.whole;
    const size_t from = find_crossing(one, cut), to = find_crossing(whole, cut_all);
    const size_t bytes = tare__tensor_bytes(one->steps[cut].facts.x);
    one->tail = whole;
    drop_last_steps(one, cut);
    drop_first_steps(whole, cut_all);
    TARE_TRY(lay_out_anew(whole, err));
    // Rows of an output are there already.
    if (whole->buffers[to].kind != BUFFER_OUTPUT)
        one->handover = (plan_handover){from, bytes, whole->buffers[to].data};
    return TARE_OK;
}
