// SPDX-License-Identifier: Apache-2.0
#include "onnx_export.h"

#include <string.h>

#include "models.h"
#include "output.h"
#include "report.h"

bool onnx_export_is_given(const onnx_export *o) {
    return o->opset != 0 || o->external_data || o->report != NULL || o->shapes != NULL;
}

static bool write_file(void *user, const char *chars, size_t length) {
    return fwrite(chars, 1, length, user) == length;
}

static tare_status write_with(const tare_model *model, const onnx_export *o, const char *path,
                              const shape_list *shapes, FILE *report, tare_error *err) {
    const tare_onnx_options options = {.struct_size = sizeof options,
                                       .opset = o->opset > INT16_MAX ? INT16_MAX : (int)o->opset,
                                       .external_data = o->external_data,
                                       .shapes = shapes->shapes,
                                       .shape_count = shapes->count,
                                       .report = report != NULL ? write_file : NULL,
                                       .report_user = report};
    return tare_model_write_onnx(model, path, &options, err);
}

// The report stays, too, where the model could not be written: that is what it says.
static tare_status write_reported(const tare_model *model, const onnx_export *o, const char *path,
                                  const shape_list *shapes, tare_error *err) {
    output_file file;
    TRY(output_open(&file, NULL, o->report));
    const tare_status status = write_with(model, o, path, shapes, file.stream, err);
    const tare_status closed = output_close(&file, TARE_OK);
    return status != TARE_OK ? status : closed;
}

tare_status onnx_export_write(const tare_model *model, const onnx_export *o, const char *path,
                              tare_error *err) {
    shape_list shapes = {.has_batch = true};
    tare_status status = read_shape_list("--input-shape", o->shapes, &shapes);
    if (status == TARE_OK)
        status = o->report != NULL ? write_reported(model, o, path, &shapes, err)
                                   : write_with(model, o, path, &shapes, NULL, err);
    shape_list_release(&shapes);
    return status;
}
