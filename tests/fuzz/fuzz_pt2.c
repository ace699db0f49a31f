// SPDX-License-Identifier: Apache-2.0
// Any bytes as a program of torch.export: read, printed, and written again.
#include "io/pt2/pt2.h"
#include "io/pt2/write/write.h"
#include "ir/module.h"
#include "model/model.h"
#include "ops/classes/classes.h"
#include "ops/text/print.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static tare_status touch(void *user, const char *path, module *m, tare_error *err) {
    volatile double sum = 0;
    (void)user, (void)path, (void)err;
    for (size_t i = 0; i < m->tensor_count; i++)
        for (int64_t e = 0; m->tensors[i].tensor != NULL && e < m->tensors[i].tensor->count; e++)
            sum += tare__tensor_get(m->tensors[i].tensor, e);
    (void)sum;
    return TARE_OK;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    storage *store = tare__storage_adopt((void *)data, size, NULL, NULL);
    module *root = NULL;
    text printed = {0};
    (void)tare__pt2_is_archive(data, size);
    if (tare__pt2_read(store, data, size, &tare__context_or_builtin(NULL)->classes, 0, &root,
                       NULL) == TARE_OK) {
        (void)tare__module_walk(root, touch, NULL, NULL);
        (void)tare__print_model(root, &printed, NULL);
        tare__text_release(&printed);
        (void)tare__pt2_write("/dev/null", root, NULL);
        tare__module_release(root);
    }
    tare__storage_release(store);
    return 0;
}
