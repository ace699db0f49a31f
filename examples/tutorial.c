// SPDX-License-Identifier: Apache-2.0
// The BackendConfig tutorial: a backend of two operators, linear and conv-relu, and three
// experiments. docs/tutorial.md walks through it.
//
// ctest: examples/data
#include <stdio.h>
#include <stdlib.h>

#include "tare/tare.h"

#define TRY(call)                                                                                  \
    do {                                                                                           \
        const tare_status status_ = (call);                                                        \
        if (status_ != TARE_OK) return status_;                                                    \
    } while (0)

static bool write_out(void *user, const char *chars, size_t length) {
    return fwrite(chars, 1, length, user) == length;
}

// 1. What the backend's tensors may be: quint8 in the range 0..255 with a scale of at least 2^-12.
static tare_dtype_config int8_config(void) {
    const tare_dtype_constraints quint8 = {
        .dtype = TARE_QUINT8,
        .set = TARE_SET_QUANT_MIN | TARE_SET_QUANT_MAX | TARE_SET_SCALE_MIN,
        .quant_min_lower_bound = 0,
        .quant_max_upper_bound = 255,
        .scale_min_lower_bound = 0x1p-12,
    };
    tare_dtype_config config = tare_dtype_config_init();
    config.input = config.output = quint8;
    config.weight.dtype = TARE_QINT8;
    config.bias = TARE_FLOAT32;
    return config;
}

// 2. How conv and relu become one module. Users' fusers get the modules in the order of the data.
static tare_status fuse_conv_relu(void *user, bool is_qat, const tare_module *const *modules,
                                  const char *const *function_names, size_t count,
                                  tare_module **out, tare_error *err) {
    (void)user;
    (void)is_qat;
    (void)function_names;
    (void)count;
    tare_module *fused = NULL;
    TRY(tare_module_create(NULL, "torch.ao.nn.intrinsic.ConvReLU2d", &fused, err));
    tare_status status = tare_module_set_child(fused, "0", modules[0], err);
    if (status == TARE_OK) status = tare_module_set_child(fused, "1", modules[1], err);
    if (status == TARE_OK)
        *out = fused;
    else
        tare_module_release(fused);
    return status;
}

// 3. The backend: a pattern for linear, one that fuses, one for what fusion made. Setters keep
// their first error and report it where the config is used.
static tare_backend_config *my_backend(void) {
    const tare_dtype_config int8 = int8_config();
    tare_backend_config *backend = tare_backend_config_create("my_backend");
    if (backend == NULL) return NULL;

    tare_pattern_config *linear = tare_backend_config_add(backend, "torch.nn.Linear", NULL, NULL);
    tare_pattern_config_set_observation_type(linear, TARE_OUTPUT_USE_DIFFERENT_OBSERVER_AS_INPUT);
    tare_pattern_config_add_dtype_config(linear, &int8);
    tare_pattern_config_set_root_module(linear, "torch.nn.Linear");
    tare_pattern_config_set_qat_module(linear, "torch.ao.nn.qat.Linear");
    tare_pattern_config_set_reference_quantized_module(linear,
                                                       "torch.ao.nn.quantized.reference.Linear");

    tare_pattern_config *conv_relu =
        tare_backend_config_add(backend, "torch.nn.Conv2d", "torch.nn.ReLU", NULL);
    tare_pattern_config_set_fused_module(conv_relu, "torch.ao.nn.intrinsic.ConvReLU2d");
    tare_pattern_config_set_fuser_callback(conv_relu, fuse_conv_relu, NULL);

    tare_pattern_config *fused =
        tare_backend_config_add(backend, "torch.ao.nn.intrinsic.ConvReLU2d", NULL, NULL);
    tare_pattern_config_add_dtype_config(fused, &int8);
    tare_pattern_config_set_root_module(fused, "torch.nn.Conv2d");
    tare_pattern_config_set_qat_module(fused, "torch.ao.nn.intrinsic.qat.ConvReLU2d");
    tare_pattern_config_set_reference_quantized_module(fused,
                                                       "torch.ao.nn.quantized.reference.Conv2d");
    return backend;
}

// 4. What the user wants: a qconfig that satisfies the backend's constraints, for each operator of
// the patterns.
static tare_qconfig_mapping *my_mapping(void) {
    tare_observer_spec *activation = tare_observer_spec_create("MinMaxObserver");
    tare_observer_spec_set_int(activation, "quant_min", 0);
    tare_observer_spec_set_int(activation, "quant_max", 127);
    tare_observer_spec_set_double(activation, "eps", 0x1p-12);
    tare_observer_spec *weight = tare_observer_spec_create("MinMaxObserver");
    tare_observer_spec_set_dtype(weight, "dtype", TARE_QINT8);
    tare_observer_spec_set_qscheme(weight, "qscheme", TARE_PER_TENSOR_SYMMETRIC);
    tare_qconfig *qconfig = tare_qconfig_create(activation, weight);
    tare_observer_spec_release(activation);
    tare_observer_spec_release(weight);

    tare_qconfig_mapping *mapping = tare_qconfig_mapping_create();
    tare_qconfig_mapping_set_object_type(mapping, "torch.nn.Linear", qconfig);
    tare_qconfig_mapping_set_object_type(mapping, "torch.nn.Conv2d", qconfig);
    tare_qconfig_mapping_set_object_type(mapping, "torch.nn.BatchNorm2d", qconfig);
    tare_qconfig_mapping_set_object_type(mapping, "torch.nn.ReLU", qconfig);
    tare_qconfig_release(qconfig);
    return mapping;
}

// 5. Prepare, calibrate, convert.
static tare_status calibrate(tare_model *prepared, const char *samples, tare_error *err) {
    tare_data *data = NULL;
    TRY(tare_data_open(samples, prepared, NULL, &data, err));
    const tare_status status = tare_calibrate_data(prepared, data, NULL, NULL, err);
    tare_data_close(data);
    return status;
}

static tare_status quantize(const tare_model *model, const tare_backend_config *backend,
                            const tare_qconfig_mapping *mapping, const char *samples,
                            tare_model **out, tare_error *err) {
    tare_model *prepared = NULL;
    TRY(tare_prepare_fx(model,
                        &(tare_prepare_options){.backend = backend, .qconfig_mapping = mapping},
                        &prepared, err));
    tare_status status = calibrate(prepared, samples, err);
    if (status == TARE_OK)
        status = tare_convert_fx(prepared, &(tare_convert_options){.backend = backend}, out, err);
    tare_model_destroy(prepared);
    return status;
}

static tare_status experiment(const char *title, const char *folder, const char *file,
                              const tare_qconfig_mapping *mapping, tare_error *err) {
    char path[512], samples[512];
    (void)snprintf(path, sizeof path, "%s/%s", folder, file);
    (void)snprintf(samples, sizeof samples, "%s/tutorial_input.npy", folder);
    tare_backend_config *backend = my_backend();
    tare_model *model = NULL, *quantized = NULL;
    tare_status status = tare_model_read(path, NULL, &model, err);
    if (status == TARE_OK) status = quantize(model, backend, mapping, samples, &quantized, err);
    if (status == TARE_OK) {
        printf("== %s\n", title);
        status = tare_model_print(quantized, TARE_PRINT_MODEL, write_out, stdout, err);
    }
    if (status == TARE_OK) {
        printf("\n-- why\n");
        status = tare_model_explain(quantized, NULL, write_out, stdout, err);
        printf("\n");
    }
    tare_model_destroy(quantized);
    tare_model_destroy(model);
    tare_backend_config_destroy(backend);
    return status;
}

static tare_status run(const char *folder, tare_error *err) {
    tare_qconfig_mapping *mine = my_mapping(), *standard = NULL;
    tare_status status = tare_qconfig_mapping_default("x86", false, -1, &standard, err);
    if (status == TARE_OK)
        status = experiment("conv-relu: linear and conv-relu are quantized", folder,
                            "tutorial_conv_relu.safetensors", mine, err);
    if (status == TARE_OK)
        status = experiment("batch norm in between: only linear is", folder,
                            "tutorial_conv_bn_relu.safetensors", mine, err);
    if (status == TARE_OK)
        status = experiment("the default mapping breaks the constraints: nothing is", folder,
                            "tutorial_conv_bn_relu.safetensors", standard, err);
    tare_qconfig_mapping_destroy(mine);
    tare_qconfig_mapping_destroy(standard);
    return status;
}

int main(int argc, char **argv) {
    tare_error *err = tare_error_create();
    const tare_status status = run(argc > 1 ? argv[1] : "examples/data", err);
    if (status != TARE_OK)
        fprintf(stderr, "tutorial: %s: %s (%s)\n", tare_error_where(err), tare_error_message(err),
                tare_error_hint(err));
    tare_error_destroy(err);
    return status == TARE_OK ? EXIT_SUCCESS : EXIT_FAILURE;
}
