// SPDX-License-Identifier: Apache-2.0
// The names of fusers in torch's backend configs.
#include <string.h>

#include "config/builtin_names.h"
#include "core/text/text.h"

#define MAPPINGS "torch.ao.quantization.fuser_method_mappings."
#define ONEDNN   "torch.ao.quantization.backend_config.onednn."

static const fuser_name fusers[] = {
    // A closure is written as its factory function, applied to the class it captures.
    {MAPPINGS "_sequential_wrapper2", .holds_class = true},
    {MAPPINGS "fuse_conv_bn", .subject = "Conv"},
    {MAPPINGS "fuse_conv_bn_relu", .subject = "Conv", .asks_activation = true},
    {MAPPINGS "fuse_linear_bn", .subject = "Linear"},
    {MAPPINGS "fuse_convtranspose_bn", .subject = "ConvTranspose", .refuses_qat = true},
    {ONEDNN "_fuse_conv_add_left", .subject = "Conv"},
    {ONEDNN "_fuse_conv_add_right", .subject = "Conv"},
    {ONEDNN "_fuse_conv_bn_add_left", .subject = "Conv", .refuses_qat = true},
    {ONEDNN "_fuse_conv_bn_add_right", .subject = "Conv", .refuses_qat = true},
    {ONEDNN "_fuse_conv_add_relu_left", .subject = "Conv"},
    {ONEDNN "_fuse_conv_add_relu_right", .subject = "Conv"},
    {ONEDNN "_fuse_conv_bn_add_relu_left", .subject = "Conv", .refuses_qat = true},
    {ONEDNN "_fuse_conv_bn_add_relu_right", .subject = "Conv", .refuses_qat = true},
    {ONEDNN "_fuse_linear_bn_leaky_relu", .subject = "Linear", .refuses_qat = true},
};

enum { FUSER_COUNT = sizeof fusers / sizeof *fusers };

const char *tare__fuser_name_at(size_t index) {
    return index < FUSER_COUNT ? fusers[index].name : NULL;
}

static const char *name_at(const void *unused, size_t index) {
    (void)unused;
    return tare__fuser_name_at(index);
}

static const fuser_name *find_row(const char *name, size_t length) {
    for (size_t i = 0; i < FUSER_COUNT; i++)
        if (strlen(fusers[i].name) == length && strncmp(fusers[i].name, name, length) == 0)
            return &fusers[i];
    return NULL;
}

static tare_status unknown_fuser(const char *name, tare_error *err) {
    tare__fail(err, TARE_NOT_FOUND, "no built-in fuser is called '%s'", name);
    tare__hint(err, TARE_NOT_FOUND, "pass a fuser of your own as a callback");
    return tare__suggest(err, TARE_NOT_FOUND, name, name_at, NULL);
}

tare_status tare__fuser_find(const char *name, const fuser_name **out, char *fused_class,
                             size_t size, tare_error *err) {
    const char *open = strchr(name, '(');
    const size_t length = open ? (size_t)(open - name) : strlen(name);
    const fuser_name *row = find_row(name, length);
    if (!row) return unknown_fuser(name, err);
    const size_t held = open ? strlen(open + 1) : 0; // "torch..LinearReLU)"
    const bool has_class = held > 1 && strchr(open, ')') == open + held;
    if (row->holds_class != (open != NULL) || (open && !has_class))
        return tare__fail(err, TARE_INVALID_ARGUMENT, "expected %s%s, found '%s'", row->name,
                          row->holds_class ? "(the fused class)" : "", name);
    if (fused_class && held >= size)
        return tare__fail(err, TARE_INVALID_ARGUMENT, "the fused class in '%s' is too long", name);
    if (fused_class) {
        if (open) memcpy(fused_class, open + 1, held - 1);
        fused_class[open ? held - 1 : 0] = '\0';
    }
    *out = row;
    return TARE_OK;
}
