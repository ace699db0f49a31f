// SPDX-License-Identifier: Apache-2.0
// Runs two models on the same data and compares them.
#include "compare/comparison.h"

#include "support/gather.h"
#include "support/report.h"
#include "support/scores.h"

/// The outputs of a model for a batch, as float32.
typedef struct results {
    tare_tensor *tensors[GATHER_CAPACITY];
    size_t count;
} results;

static void release_results(results *r) {
    for (size_t i = 0; i < r->count; i++) tare_tensor_release(r->tensors[i]);
    r->count = 0;
}

static tare_status judge_classes(comparison *c, const tare_batch *batch, const tare_tensor *x,
                                 const tare_tensor *y) {
    tare_verdict *v = &c->verdict;
    if (!is_scores(x, batch->size) || !is_scores(y, batch->size)) return TARE_OK;
    v->has_classes = true;
    for (int64_t i = 0; i < batch->size; i++)
        if (winning_class(x, i) == winning_class(y, i)) v->agreeing_count++;
    if (batch->labels == NULL) return TARE_OK;
    v->has_labels = true;
    TRY(count_correct(x, batch->labels, c->settings.data, &v->float_correct, c->err));
    return count_correct(y, batch->labels, c->settings.data, &v->quantized_correct, c->err);
}

static void add_cosines(comparison *c, const tare_batch *batch, const tare_tensor *x,
                        const tare_tensor *y) {
    const bool is_batched = tare_tensor_ndim(x) > 0 && tare_tensor_shape(x)[0] == batch->size;
    const int64_t samples = is_batched && batch->size > 0 ? batch->size : 1;
    const int64_t each = tare_tensor_element_count(x) / samples;
    const float *a = tare_tensor_data(x), *b = tare_tensor_data(y);
    for (int64_t i = 0; i < samples && each > 0; i++) {
        c->cosine_sum += cosine_of(a + i * each, b + i * each, each);
        c->cosine_count++;
    }
}

static tare_status judge(comparison *c, const tare_batch *batch, const results *x,
                         const results *y) {
    if (x->count != y->count)
        return fail_here("compare", "compare a model with what was made of it",
                         "one model has %zu outputs, the other %zu", x->count, y->count);
    for (size_t i = 0; i < x->count; i++) {
        if (!difference_add(&c->output, x->tensors[i], y->tensors[i]))
            return fail_here("compare", "compare a model with what was made of it",
                             "the models' outputs differ in shape");
        add_cosines(c, batch, x->tensors[i], y->tensors[i]);
    }
    c->verdict.sample_count += batch->size;
    return x->count > 0 ? judge_classes(c, batch, x->tensors[0], y->tensors[0]) : TARE_OK;
}

static tare_status compare_batch(comparison *c, const tare_batch *batch) {
    results x = {.count = 0}, y = {.count = 0};
    tare_debug_outputs of_float = {x.tensors, GATHER_CAPACITY, 0};
    tare_debug_outputs of_quantized = {y.tensors, GATHER_CAPACITY, 0};
    tare_status status = tare_debug_compare(c->values, batch->inputs, batch->input_count, &of_float,
                                            &of_quantized, c->err);
    x.count = of_float.count;
    y.count = of_quantized.count;
    if (status == TARE_OK) status = gather_plain(x.tensors, x.count, c->err);
    if (status == TARE_OK) status = gather_plain(y.tensors, y.count, c->err);
    if (status == TARE_OK) status = judge(c, batch, &x, &y);
    release_results(&x);
    release_results(&y);
    return status;
}

static tare_status compare_batches(comparison *c, tare_data *data) {
    for (bool done = false;;) {
        tare_batch batch = {0};
        TRY(tare_data_next(data, &batch, &done, c->err));
        if (done) return TARE_OK;
        TRY(compare_batch(c, &batch));
        show_progress("comparing", c->verdict.sample_count, tare_data_sample_count(data));
    }
}

tare_status common_preprocess(const tare_model *x, const tare_model *y,
                              const tare_preprocess **out) {
    const tare_preprocess *a = tare_model_preprocess(x), *b = tare_model_preprocess(y);
    if (a != NULL && b != NULL && !tare_preprocess_equal(a, b))
        return fail_here("compare", "see tare preprocess",
                         "the models declare different preprocessing");
    *out = a != NULL ? a : b;
    return TARE_OK;
}

static tare_status check_order(const comparison *c) {
    const tare_model_stage x = tare_model_get_stage(c->float_model);
    const tare_model_stage y = tare_model_get_stage(c->quantized_model);
    if (x < TARE_STAGE_REFERENCE || y >= TARE_STAGE_REFERENCE) return TARE_OK;
    return fail_here("compare", "swap them: tare compare FLOAT QUANTIZED",
                     "the first model is quantized and the second is not");
}

tare_status comparison_run(comparison *c) {
    const tare_debug_options options = {.struct_size = sizeof options,
                                        .thread_count = (int)c->settings.threads,
                                        .by_origin = !c->settings.by_handles,
                                        .has_ranges = c->settings.has_ranges};
    tare_data_options data_options = {.batch_size = c->settings.batch,
                                      .sample_limit = c->settings.limit};
    tare_data *data = NULL;
    TRY(check_order(c));
    TRY(tare_debug_comparison_create(c->float_model, c->quantized_model, &options, &c->values,
                                     c->err));
    TRY(common_preprocess(c->float_model, c->quantized_model, &data_options.preprocess));
    TRY(tare_data_open(c->settings.data, c->float_model, &data_options, &data, c->err));
    const tare_status status = compare_batches(c, data);
    end_progress();
    tare_data_close(data);
    c->verdict.sqnr_db = signal_to_noise_db(&c->output);
    c->verdict.max_abs_error = c->output.largest_error;
    c->verdict.cosine = c->cosine_count > 0 ? c->cosine_sum / (double)c->cosine_count : 1;
    return status;
}

void comparison_release(comparison *c) {
    tare_debug_comparison_destroy(c->values);
}

// --- JSON ---

static void number_of_difference(json_out *json, const difference *d) {
    json_out_number(json, "sqnr_db", signal_to_noise_db(d)); // infinite: null
    json_out_number(json, "max_abs_error", d->largest_error);
}

static double share_of(int64_t count, int64_t whole) {
    return whole > 0 ? (double)count / (double)whole : 0.0;
}

void comparison_write(const comparison *c, json_out *json) {
    const tare_verdict *v = &c->verdict;
    json_out_integer(json, "samples", (uint64_t)v->sample_count);
    json_out_open(json, "layers", '[');
    tare_debug_row row;
    for (size_t i = 0; tare_debug_comparison_row(c->values, i, &row); i++) {
        const difference d = difference_of(&row);
        if (row.element_count == 0) continue;
        json_out_open(json, NULL, '{');
        json_out_string(json, "quantized_node", row.node);
        json_out_string(json, "float_node", row.reference_node);
        number_of_difference(json, &d);
        json_out_close(json, '}');
    }
    json_out_close(json, ']');
    json_out_open(json, "output", '{');
    number_of_difference(json, &c->output);
    json_out_close(json, '}');
    if (v->has_classes)
        json_out_number(json, "agreement", share_of(v->agreeing_count, v->sample_count));
    if (v->has_labels) {
        json_out_number(json, "float_accuracy", share_of(v->float_correct, v->sample_count));
        json_out_number(json, "quantized_accuracy",
                        share_of(v->quantized_correct, v->sample_count));
    }
}
