// SPDX-License-Identifier: Apache-2.0
// Evaluates the outputs of a classifier.
#include "support/scores.h"

#include <math.h>

#include "support/report.h"

bool is_scores(const tare_tensor *scores, int64_t sample_count) {
    return tare_tensor_dtype(scores) == TARE_FLOAT32 && tare_tensor_ndim(scores) == 2 &&
           tare_tensor_shape(scores)[0] == sample_count && tare_tensor_shape(scores)[1] > 1;
}

int64_t winning_class(const tare_tensor *scores, int64_t sample) {
    const int64_t count = tare_tensor_shape(scores)[1];
    const float *row = (const float *)tare_tensor_data(scores) + sample * count;
    int64_t best = 0;
    for (int64_t i = 1; i < count; i++)
        if (row[i] > row[best]) best = i;
    return best;
}

static tare_status check_label(double label, int64_t class_count, const char *data) {
    if (label >= 0 && label < (double)class_count && label == floor(label)) return TARE_OK;
    return fail_here(data, "labels are the numbers of classes, from 0 up",
                     "expected labels of 0..%lld, found %g", (long long)class_count - 1, label);
}

tare_status count_correct(const tare_tensor *scores, const tare_tensor *labels, const char *data,
                          int64_t *out, tare_error *err) {
    tare_tensor *numbers = NULL; // classes are few enough for float32 to hold their numbers
    TRY(tare_tensor_to_float(labels, &numbers, err));
    const float *label = tare_tensor_data(numbers);
    tare_status status = TARE_OK;
    for (int64_t i = 0; i < tare_tensor_shape(scores)[0] && status == TARE_OK; i++) {
        status = check_label((double)label[i], tare_tensor_shape(scores)[1], data);
        if ((float)winning_class(scores, i) == label[i]) ++*out;
    }
    tare_tensor_release(numbers);
    return status;
}
