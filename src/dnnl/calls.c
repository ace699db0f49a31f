// SPDX-License-Identifier: Apache-2.0
// oneDNN's engine and stream, and its failures as tare errors.
#ifdef TARE_HAVE_DNNL
#include "dnnl/calls.h"

#include "core/memory/alloc.h"

tare_status tare__dnnl_status(dnnl_status_t status, tare_error *err) {
    if (status == dnnl_success) return TARE_OK;
    if (status == dnnl_out_of_memory) return tare__out_of_memory(err);
    return tare__fail(err, TARE_UNSUPPORTED, "oneDNN refuses a layer (status %d)", (int)status);
}

tare_status tare__dnnl_expect(size_t bytes, tare_error *err) {
    return tare__memory_is_at_hand(bytes) ? TARE_OK : tare__out_of_memory(err);
}

// --- engine and stream ---

tare_status tare__dnnl_open(dnnl_context *out, tare_error *err) {
    *out = (dnnl_context){0};
    TARE_TRY(tare__dnnl_expect(DNNL_COMPILE_BYTES, err));
    dnnl_status_t status = dnnl_engine_create(&out->engine, dnnl_cpu, 0);
    if (status == dnnl_success)
        status = dnnl_stream_create(&out->stream, out->engine, dnnl_stream_default_flags);
    if (status != dnnl_success) tare__dnnl_close(out);
    return tare__dnnl_status(status, err);
}

void tare__dnnl_close(dnnl_context *p) {
    if (p->stream != NULL) dnnl_stream_destroy(p->stream);
    if (p->engine != NULL) dnnl_engine_destroy(p->engine);
    *p = (dnnl_context){0};
}

// --- reorders ---

tare_status tare__dnnl_create_reorder(const dnnl_context *p, const dnnl_memory_desc_t *from,
                                      const dnnl_memory_desc_t *to, dnnl_primitive_t *out,
                                      tare_error *err) {
    dnnl_primitive_desc_t pd = NULL;
    TARE_TRY(tare__dnnl_expect(DNNL_COMPILE_BYTES, err));
    DNNL_TRY(dnnl_reorder_primitive_desc_create(&pd, from, p->engine, to, p->engine, NULL));
    const dnnl_status_t status = dnnl_primitive_create(out, pd);
    dnnl_primitive_desc_destroy(pd);
    return tare__dnnl_status(status, err);
}

dnnl_status_t tare__dnnl_reorder(const dnnl_context *p, dnnl_primitive_t reorder,
                                 dnnl_memory_t from, dnnl_memory_t to) {
    const dnnl_exec_arg_t args[] = {{DNNL_ARG_FROM, from}, {DNNL_ARG_TO, to}};
    return dnnl_primitive_execute(reorder, p->stream, 2, args);
}

// oneDNN's functions take pointers to const data as non-const.
tare_status tare__dnnl_pack(const dnnl_context *p, const dnnl_memory_desc_t *given,
                            const void *data, const dnnl_memory_desc_t *wanted, void *packed,
                            tare_error *err) {
    dnnl_primitive_t reorder = NULL;
    dnnl_memory_t from = NULL, to = NULL;
    TARE_TRY(tare__dnnl_create_reorder(p, given, wanted, &reorder, err));
    dnnl_status_t status = dnnl_memory_create(&from, given, p->engine, (void *)data);
    if (status == dnnl_success) status = dnnl_memory_create(&to, wanted, p->engine, packed);
    if (status == dnnl_success) status = tare__dnnl_reorder(p, reorder, from, to);
    if (status == dnnl_success) status = dnnl_stream_wait(p->stream);
    if (from != NULL) dnnl_memory_destroy(from);
    if (to != NULL) dnnl_memory_destroy(to);
    dnnl_primitive_destroy(reorder);
    return tare__dnnl_status(status, err);
}

// --- primitives ---

tare_status tare__dnnl_create_attribute(dnnl_primitive_attr_t *out, tare_error *err) {
    DNNL_TRY(dnnl_primitive_attr_create(out));
    const dnnl_status_t status =
        dnnl_primitive_attr_set_scratchpad_mode(*out, dnnl_scratchpad_mode_user);
    if (status != dnnl_success) {
        dnnl_primitive_attr_destroy(*out);
        *out = NULL;
    }
    return tare__dnnl_status(status, err);
}

const char *tare__dnnl_implementation(const_dnnl_primitive_desc_t pd) {
    const char *name = "";
    return dnnl_primitive_desc_query(pd, dnnl_query_impl_info_str, 0, (void *)&name) == dnnl_success
               ? name
               : "ref";
}
#else
typedef int tare__no_dnnl_calls; // a file must not be empty
#endif
