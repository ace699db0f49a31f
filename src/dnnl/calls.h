// SPDX-License-Identifier: Apache-2.0
// oneDNN 2.x through its C API: shared by all its callers. Included only by code that calls oneDNN,
// where TARE_HAVE_DNNL is defined.
#ifndef DNNL_CALLS_H
#define DNNL_CALLS_H

#include <oneapi/dnnl/dnnl.h>
#include <stddef.h>

#include "core/error.h"

/// TARE_OUT_OF_MEMORY, or TARE_UNSUPPORTED for whatever else the library refuses.
tare_status tare__dnnl_status(dnnl_status_t status, tare_error *err);
#define DNNL_TRY(call) TARE_TRY(tare__dnnl_status((call), err))

/// oneDNN dies of a failed allocation: exceptions and pointers to nothing pass through it. So it is
/// called only where there is more memory than it takes. Measured with oneDNN 2.6 and AVX-512:
/// 2.2 MB to compile a layer, 12 MB for the first of all matrix products and 4.7 MB for each, a few
/// hundred bytes to run a layer; glibc asks the system for 1 MB at a time.
enum {
    DNNL_COMPILE_BYTES = 12 << 20,
    DNNL_MULTIPLY_BYTES = 24 << 20,
    DNNL_RUN_BYTES = 2 << 20,
};
/// TARE_OUT_OF_MEMORY where `bytes` are not to be had.
tare_status tare__dnnl_expect(size_t bytes, tare_error *err);

/// The processor as a device, and a queue of work for it that is done at once. Zero-initialized:
/// closed.
typedef struct dnnl_context {
    dnnl_engine_t engine;
    dnnl_stream_t stream;
} dnnl_context;
tare_status tare__dnnl_open(dnnl_context *out, tare_error *err);
void tare__dnnl_close(dnnl_context *p);

/// Moves memory from one form to another. The caller destroys *out.
tare_status tare__dnnl_create_reorder(const dnnl_context *p, const dnnl_memory_desc_t *from,
                                      const dnnl_memory_desc_t *to, dnnl_primitive_t *out,
                                      tare_error *err);
dnnl_status_t tare__dnnl_reorder(const dnnl_context *p, dnnl_primitive_t reorder,
                                 dnnl_memory_t from, dnnl_memory_t to);
/// Moves `data` of the form `given` into `packed` of the form `wanted`, once.
tare_status tare__dnnl_pack(const dnnl_context *p, const dnnl_memory_desc_t *given,
                            const void *data, const dnnl_memory_desc_t *wanted, void *packed,
                            tare_error *err);

/// An attribute by which a primitive's work memory is the caller's: the library's own would belong
/// to the thread that made it. The caller destroys *out.
tare_status tare__dnnl_create_attribute(dnnl_primitive_attr_t *out, tare_error *err);
/// The library's name of the implementation; "ref..": a reference. Static storage.
const char *tare__dnnl_implementation(const_dnnl_primitive_desc_t pd);

#endif
