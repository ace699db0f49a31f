// SPDX-License-Identifier: Apache-2.0
// The names and arguments of torch's fake quantizers, so that mappings for training read as data.
// Making one is refused until training is there.
#include "core/error.h"
#include "quant/observers/builtin.h"
#include "quant/observers/uniform.h"

static tare_status create(void *user, const tare_observer_args *args, void **state,
                          tare_observer_info *info, tare_error *err) {
    (void)user;
    (void)args;
    (void)state;
    (void)info;
    return tare__fail(err, TARE_UNSUPPORTED, "FakeQuantize is not available yet");
}

// Whatever is not the wrapper's own goes to its observer.
#define OBSERVER_ARGUMENTS "observer", "ch_axis", "averaging_constant", "bins", UNIFORM_ARGUMENTS

static const char *const arguments[] = {OBSERVER_ARGUMENTS, NULL};
static const char *const learnable_arguments[] = {
    OBSERVER_ARGUMENTS, "scale", "zero_point", "channel_len", "use_grad_scaling", NULL};

#define FAKE_QUANTIZE(descriptor, class_name, names)                                               \
    const tare_observer_class descriptor = {.struct_size = sizeof(tare_observer_class),            \
                                            .name = class_name,                                    \
                                            .arguments = names,                                    \
                                            .create = create,                                      \
                                            .destroy = tare__no_state_destroy,                     \
                                            .clone = tare__no_state_clone}
FAKE_QUANTIZE(tare__fake_quantize_class, "FakeQuantize", arguments);
FAKE_QUANTIZE(tare__fused_moving_average_fake_quantize_class, "FusedMovingAvgObsFakeQuantize",
              arguments);
FAKE_QUANTIZE(tare__fixed_qparams_fake_quantize_class, "FixedQParamsFakeQuantize", arguments);
FAKE_QUANTIZE(tare__learnable_fake_quantize_class, "_LearnableFakeQuantize", learnable_arguments);
