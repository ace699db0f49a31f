// SPDX-License-Identifier: Apache-2.0
// Prints quantization specs in short form.
#include <string.h>

#include "config/qspec.h"
#include "core/text/text.h"
#include "observe/observer.h"

static const char *bare(const char *name) {
    const char *dot = strrchr(name, '.');
    return dot != NULL ? dot + 1 : name;
}

static void write_range(const tare_qspec_fields *f, text *out) {
    tare__text_append(out, bare(tare_dtype_name(f->dtype)));
    if (f->has_quant_min && f->has_quant_max)
        tare__text_printf(out, " %lld..%lld", (long long)f->quant_min, (long long)f->quant_max);
    if (f->qscheme != TARE_QSCHEME_UNSET)
        tare__text_printf(out, " %s", bare(tare_qscheme_name(f->qscheme)));
    if (f->is_dynamic) tare__text_append(out, ", dynamic");
}

static void write_targets(const tare_qspec *spec, text *out) {
    for (size_t i = 0; i < spec->target_count; i++) {
        if (i > 0) tare__text_append(out, ", ");
        tare__edge_name_text(&spec->targets[i], out);
    }
}

void tare__qspec_text(const tare_qspec *spec, text *out) {
    switch (spec->kind) {
    case TARE_QSPEC_PLAIN:
        write_range(&spec->fields, out);
        tare__text_printf(out, " by %s", bare(tare__observer_spec_class(spec->fields.observer)));
        break;
    case TARE_QSPEC_FIXED:
        write_range(&spec->fields, out);
        tare__text_append(out, " of the fixed scale ");
        tare__text_json_double(out, spec->fields.scale);
        tare__text_printf(out, " and zero point %lld", (long long)spec->fields.zero_point);
        break;
    case TARE_QSPEC_SHARED:
        tare__text_append(out, "as ");
        write_targets(spec, out);
        break;
    case TARE_QSPEC_DERIVED:
        write_range(&spec->fields, out);
        tare__text_printf(out, " derived by %s from ", spec->rule.name);
        write_targets(spec, out);
        break;
    }
}
