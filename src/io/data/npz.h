// SPDX-License-Identifier: Apache-2.0
// NumPy's .npz files: a zip archive of .npy members.
#ifndef IO_DATA_NPZ_H
#define IO_DATA_NPZ_H

#include "core/error.h"
#include "core/tensor/map.h"

/// Arrays by name (without ".npy") in the archive's order, into `tensors` (empty before; references
/// owned by the caller, see tare__tensor_map_release). Uncompressed members are views of the mapped
/// file. Others are inflated, but never beyond the size of their array, or beyond what deflate can
/// pack into their bytes. memory_limit: see tare__file_budget; it applies to all members together,
/// and an archive that exceeds it is refused before anything is inflated.
tare_status tare__npz_read(const char *path, uint64_t memory_limit, map *tensors, tare_error *err);
/// The same from `size` bytes at `data`, which belong to `store`.
tare_status tare__npz_parse(storage *store, const unsigned char *data, size_t size,
                            uint64_t memory_limit, map *tensors, tare_error *err);

/// Writes tensors (name -> tare_tensor *) deflated. Equal tensors give equal bytes.
tare_status tare__npz_write(const char *path, const map *tensors, tare_error *err);

#endif
