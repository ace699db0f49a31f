// SPDX-License-Identifier: Apache-2.0
// The options of ONNX export.
#include "commands/onnx_export.h"

#include <string.h>

#include "support/models.h"
#include "support/output.h"
#include "support/report.h"

typedef struct report_file {
    output_file file;
    tare_status status; // of creating the report
} report_file;

// The report is completed before the model is written: only its file name is set later.
static bool take_report(void *user, const char *chars, size_t length) {
    report_file *r = user;
    (void)fwrite(chars, 1, length, r->file.text.stream);
    r->status = output_prepare(&r->file, TARE_OK);
    return r->status == TARE_OK;
}

static tare_status write_with(const tare_model *model, const onnx_export *o, const char *path,
                              const shape_list *shapes, report_file *report, tare_error *err) {
    const tare_onnx_options options = {.struct_size = sizeof options,
                                       .opset = (int)o->opset,
                                       .external_data = o->external_data,
                                       .shapes = shapes->shapes,
                                       .shape_count = shapes->count,
                                       .report = report != NULL ? take_report : NULL,
                                       .report_user = report};
    return tare_model_write_onnx(model, path, &options, err);
}

// The report is written even if the model cannot be, because it says why. If memory ran out,
// neither is written.
static tare_status write_reported(const tare_model *model, const onnx_export *o, const char *path,
                                  const shape_list *shapes, tare_error *err) {
    report_file r = {.status = TARE_OK};
    TRY(output_open(&r.file, NULL, o->report));
    tare_status status = write_with(model, o, path, shapes, &r, err);
    if (r.status != TARE_OK) {
        tare_error_clear(err); // output_prepare printed the error
        status = r.status;
    }
    const bool stays = status != TARE_OUT_OF_MEMORY;
    const tare_status placed = output_place(&r.file, stays ? TARE_OK : status);
    return status != TARE_OK ? status : placed;
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
