// SPDX-License-Identifier: Apache-2.0
// Any bytes as a calibration state; one that is read can be written.
#include "flow/calibrate/calibration.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    storage *store = tare__storage_adopt((void *)data, size, NULL, NULL);
    const observer_classes *classes = &tare__context_or_builtin(NULL)->observers;
    safetensors file = {0};
    calibration c = {0};
    if (tare__safetensors_parse(store, data, size, &file, NULL) == TARE_OK) {
        if (tare__calibration_from_file(&file, classes, &c, NULL) == TARE_OK)
            (void)tare__calibration_save(&c, "/dev/null/none", NULL);
        tare__calibration_release(&c);
        tare__safetensors_release(&file);
    }
    tare__storage_release(store);
    return 0;
}
