// SPDX-License-Identifier: Apache-2.0
// NumPy's .npy files: one array, little-endian. Source: numpy.lib.format, versions 1.0 to 3.0.
#ifndef IO_DATA_NPY_H
#define IO_DATA_NPY_H

#include "core/error.h"
#include "core/tensor/tensor.h"
#include "core/text/text.h"

/// The contents of a header.
typedef struct npy_header {
    tare_dtype dtype;
    int ndim;
    int64_t shape[TARE_MAX_DIMS];
    bool is_fortran_order;
    size_t header_bytes, data_bytes;
} npy_header;

/// The size of an array's header, determined from its first NPY_PREFIX bytes (fewer are an error).
#define NPY_PREFIX 12u
tare_status tare__npy_header_size(const unsigned char *bytes, size_t size, size_t *out,
                                  tare_error *err);
/// bytes: at least the header. Big-endian data, structures, strings and objects are refused, with
/// the dtype in the message.
tare_status tare__npy_parse_header(const unsigned char *bytes, size_t size, npy_header *out,
                                   tare_error *err);
/// The array in the `size` bytes at `data`, which belong to `store`. It is a view of them, or a
/// copy if they are not aligned or in Fortran order. The caller releases *out.
tare_status tare__npy_parse(storage *store, const unsigned char *data, size_t size,
                            tare_tensor **out, tare_error *err);
/// Maps PATH; errors name it.
tare_status tare__npy_read(const char *path, tare_tensor **out, tare_error *err);

/// The header of t, version 1.0, padded so that the following data is aligned to 64 bytes.
/// Quantized tensors and dtypes that NumPy lacks are refused.
tare_status tare__npy_make_header(const tare_tensor *t, text *out, tare_error *err);
tare_status tare__npy_write(const char *path, const tare_tensor *t, tare_error *err);

#endif
