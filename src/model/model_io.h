// SPDX-License-Identifier: Apache-2.0
// The contents of a model file besides modules and graph.
#ifndef MODEL_MODEL_IO_H
#define MODEL_MODEL_IO_H

#include <jansson.h>

#include "io/native/model_file.h"
#include "model/model.h"

/// Stage, engine, decisions and the rest, as a file's `record` has them. The caller's json_decref.
tare_status tare__model_extra(const tare_model *model, json_t **out, tare_error *err);

/// As tare_model_write, with weights packed, too.
tare_status tare__model_write_packed(const tare_model *model, const char *path,
                                     const model_packings *packings, tare_error *err);

#endif
