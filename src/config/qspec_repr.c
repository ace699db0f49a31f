// SPDX-License-Identifier: Apache-2.0
// Prints quantization specs as Python's repr of torchao's dataclasses, for torch's messages.
#include <string.h>

#include "config/qspec.h"
#include "observe/observer_spec.h"

static void write_class(const char *name, text *out) {
    // A user's class has the name of its own module.
    const char *home = strchr(name, '.') != NULL ? ""
                       : strstr(name, "FakeQuantize") != NULL
                           ? "torchao.quantization.pt2e.fake_quantize."
                           : "torchao.quantization.pt2e.observer.";
    tare__text_printf(out, "<class '%s%s'>", home, name);
}

static void write_constructor(const tare_observer_spec *spec, text *out) {
    if (spec->count == 0) {
        write_class(spec->class_name, out);
        return;
    }
    tare__text_append(out, "functools.partial(");
    write_class(spec->class_name, out);
    for (size_t i = 0; i < spec->count; i++) {
        tare__text_printf(out, ", %s=", spec->arguments[i].name);
        if (spec->arguments[i].kind == ARGUMENT_OBSERVER)
            write_constructor(spec->arguments[i].as.observer, out);
        else
            tare__argument_text(&spec->arguments[i], out);
    }
    tare__text_append(out, "){}");
}

static void write_int(const char *key, bool has, int64_t v, text *out) {
    if (has)
        tare__text_printf(out, ", %s=%lld", key, (long long)v);
    else
        tare__text_printf(out, ", %s=None", key);
}

static void write_edge(const tare_edge_name *edge, text *out) {
    if (edge->from != NULL)
        tare__text_printf(out, "(%s, %s)", edge->from, edge->node);
    else
        tare__text_append(out, edge->node);
}

static void write_head(const tare_qspec *spec, text *out) {
    const char *dtype = tare_dtype_name(spec->fields.dtype);
    if (spec->kind == TARE_QSPEC_FIXED) {
        tare__text_printf(out, "FixedQParamsQuantizationSpec(dtype=%s, scale=", dtype);
        tare__text_double(out, spec->fields.scale);
        write_int("zero_point", true, spec->fields.zero_point, out);
        return;
    }
    if (spec->kind == TARE_QSPEC_DERIVED) {
        tare__text_append(out, "DerivedQuantizationSpec(derived_from=[");
        for (size_t i = 0; i < spec->target_count; i++) {
            if (i > 0) tare__text_append(out, ", ");
            write_edge(&spec->targets[i], out);
        }
        tare__text_printf(out, "], derive_qparams_fn=<function %s>, dtype=%s", spec->rule.name,
                          dtype);
        return;
    }
    tare__text_printf(out, "QuantizationSpec(dtype=%s, observer_or_fake_quant_ctr=", dtype);
    write_constructor(spec->fields.observer, out);
}

void tare__qspec_repr(const tare_qspec *spec, text *out) {
    const tare_qspec_fields *f = &spec->fields;
    if (spec->kind == TARE_QSPEC_SHARED) {
        tare__text_append(out, "SharedQuantizationSpec(edge_or_node=");
        write_edge(&spec->targets[0], out);
        tare__text_char(out, ')');
        return;
    }
    write_head(spec, out);
    write_int("quant_min", f->has_quant_min, f->quant_min, out);
    write_int("quant_max", f->has_quant_max, f->quant_max, out);
    tare__text_printf(out, ", qscheme=%s",
                      f->qscheme != TARE_QSCHEME_UNSET ? tare_qscheme_name(f->qscheme) : "None");
    if (spec->kind != TARE_QSPEC_FIXED)
        write_int("ch_axis", f->has_channel_axis, f->channel_axis, out);
    tare__text_printf(out, ", is_dynamic=%s)", f->is_dynamic ? "True" : "False");
}
