// SPDX-License-Identifier: Apache-2.0
// Runs the steps of a plan for one sample.
#include <string.h>

#include "runtime/plan/profile.h"
#include "runtime/plan/states.h"

// The address of a sample in a tensor of all samples.
static void *sample_of(const tare_tensor *all, const tare_tensor *one, int64_t sample) {
    return (unsigned char *)all->data + (size_t)sample * tare__tensor_bytes(one);
}

static void move_in(plan *p, const tare_tensor *const *inputs, tare_tensor *const *outputs,
                    int64_t sample) {
    for (size_t i = 0; i < p->output_count; i++) {
        const plan_output *out = &p->outputs[i];
        if (out->buffer != NOTHING && !out->is_copied)
            p->buffers[out->buffer].data = sample_of(outputs[i], out->like, sample);
    }
    for (size_t i = 0; i < p->input_count; i++)
        if (p->input_buffers[i] != NOTHING)
            p->buffers[p->input_buffers[i]].data = sample_of(inputs[i], p->inputs[i], sample);
    for (size_t i = 0; i < p->moving_count; i++)
        p->moving[i].tensor->data = p->buffers[p->moving[i].buffer].data;
}

static tare_status run_all(const plan_run_state *run) {
    const plan *p = run->plan;
    tare_status status = TARE_OK;
    for (size_t i = 0; i < p->step_count && status == TARE_OK; i++)
        status = p->steps[i].class->run(run, p->steps[i].state);
    return status;
}

static tare_status run_steps(plan *p, tare_error *err) {
    const plan_run_state run = {.plan = p, .kernels = p->setting.kernels, .err = err};
    const tare_status status = p->profile != NULL ? tare__plan_run_timed(&run) : run_all(&run);
    tare__arena_clear(&p->run_memory);
    return status;
}

static void copy_outputs(const plan *p, tare_tensor *const *made, int64_t sample) {
    for (size_t i = 0; i < p->output_count; i++) {
        const plan_output *out = &p->outputs[i];
        if (out->buffer != NOTHING && out->is_copied && made[i]->count > 0)
            memcpy(sample_of(made[i], out->like, sample), p->buffers[out->buffer].data,
                   tare__tensor_bytes(out->like));
    }
}

static void hand_over(const plan *p, int64_t sample) {
    const plan_handover *row = &p->handover;
    if (row->rows != NULL)
        memcpy(row->rows + (size_t)sample * row->bytes, p->buffers[row->buffer].data, row->bytes);
}

tare_status tare__plan_run_sample(plan *p, const tare_tensor *const *inputs,
                                  tare_tensor *const *outputs, int64_t sample, tare_error *err) {
    TARE_TRY(tare__plan_take_states(p, err));
    move_in(p, inputs, outputs, sample);
    TARE_TRY(run_steps(p, err));
    copy_outputs(p, outputs, sample);
    tare__plan_leave_states(p);
    hand_over(p, sample);
    return TARE_OK;
}
