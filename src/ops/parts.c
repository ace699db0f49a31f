// SPDX-License-Identifier: Apache-2.0
// Parts of calls.
#include "ops/parts.h"

tare_status tare__element_parts(op_call *call, tare_status (*run)(op_call *, int64_t, int64_t),
                                call_parts *out) {
    *out = (call_parts){.count = tare__call_out(call)->count, .work = 1, .run = run};
    return TARE_OK;
}

tare_status tare__run_parts(op_call *call, tare_status (*parts)(op_call *call, call_parts *out)) {
    call_parts all = {0};
    TARE_TRY(parts(call, &all));
    return all.count > 0 ? all.run(call, 0, all.count) : TARE_OK;
}
