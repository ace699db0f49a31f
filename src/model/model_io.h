// SPDX-License-Identifier: Apache-2.0
// What a model file contains in addition to modules and graph.
#ifndef MODEL_MODEL_IO_H
#define MODEL_MODEL_IO_H

#include <jansson.h>

#include "io/native/model_file.h"
#include "model/model.h"

/// Stage, engine, decisions and so on, as in a file's `record`. The caller calls json_decref(*out).
tare_status tare__model_extra(const tare_model *model, json_t **out, tare_error *err);

/// The same as tare_model_write, with packed weights in addition.
tare_status tare__model_write_packed(const tare_model *model, const char *path,
                                     const model_packings *packings, tare_error *err);

#endif
