// SPDX-License-Identifier: Apache-2.0
// The tables of weights and constants, and the archive's codes of dtypes, layouts and memory
// formats.
// Private to io/pt2.
#ifndef IO_PT2_PAYLOAD_H
#define IO_PT2_PAYLOAD_H

#include "core/json/json.h"
#include "core/memory/map.h"
#include "io/pt2/read/archive.h"

/// The tensors of FOLDER ("data/weights/") of a model, by name; references owned by the map
/// (tare__tensor_map_release). Names that share a record and a shape share the tensor. A missing
/// table counts as empty.
tare_status tare__pt2_read_payloads(pt2_archive *a, const char *folder, const char *model,
                                    map *tensors);

/// The meaning of the archive's codes. Unset or NULL: unknown, or a dtype that tare does not
/// support.
tare_dtype tare__pt2_dtype(int64_t code);
int tare__pt2_dtype_code(tare_dtype dtype);        // 0: it has none
const char *tare__pt2_layout(int64_t code);        // "torch.strided"
const char *tare__pt2_memory_format(int64_t code); // "torch.channels_last"

/// A member as JSON; the caller json_decref's *out.
tare_status tare__pt2_read_json(pt2_archive *a, const char *name, json_t **out);

#endif
