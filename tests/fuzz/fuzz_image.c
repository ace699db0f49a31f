// SPDX-License-Identifier: Apache-2.0
// Any bytes as a picture, and what is decoded through the steps of preprocessing.
#include "io/images/preprocess.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { MOST_PIXELS = 1 << 14 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    image picture = {0};
    preprocess steps = {0};
    tare_tensor *t = NULL;
    if (tare__preprocess_from_text("imagenet,resize=9,crop=7x11", &steps, NULL) != TARE_OK)
        return 0;
    if (tare__image_decode(data, size, MOST_PIXELS, &picture, NULL) != TARE_OK) return 0;
    if (tare__preprocess_apply(&steps, &picture, &t, NULL) == TARE_OK) tare_tensor_release(t);
    return 0;
}
