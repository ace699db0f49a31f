// SPDX-License-Identifier: Apache-2.0
// Prints a backend config: one block per pattern, with one labelled line per property.
#include <string.h>

#include "config/backend_config.h"
#include "config/constraints.h"
#include "config/pattern_form.h"
#include "core/text/text.h"

// Omits the package: "quint8" for "torch.quint8".
static const char *short_dtype(tare_dtype dtype) {
    const char *name = tare_dtype_name(dtype);
    return tare__starts_with(name, "torch.") ? name + strlen("torch.") : name;
}

// Example: "quint8[q >= 0, q <= 255, scale >= 0.000244140625]".
static void tensor_to_text(const tare_dtype_constraints *c, text *t) {
    tare__text_append(t, c->dtype == TARE_DTYPE_UNSET ? "any" : short_dtype(c->dtype));
    tare__constraints_to_text(c, t);
}

// Example: "quint8 * qint8 + float32 -> quint8" for input * weight + bias -> output.
static void dtypes_to_text(const tare_dtype_config *d, text *t) {
    tensor_to_text(&d->input, t);
    if (d->weight.dtype != TARE_DTYPE_UNSET) {
        tare__text_append(t, " * ");
        tensor_to_text(&d->weight, t);
    }
    if (d->bias != TARE_DTYPE_UNSET) tare__text_printf(t, " + %s", short_dtype(d->bias));
    tare__text_append(t, " -> ");
    tensor_to_text(&d->output, t);
    if (d->is_dynamic > 0) tare__text_append(t, ", dynamic");
}

static const char *observation_word(tare_observation_type type) {
    switch (type) {
    case TARE_OUTPUT_USE_DIFFERENT_OBSERVER_AS_INPUT:
        return "output has its own observer";
    case TARE_OUTPUT_SHARE_OBSERVER_WITH_INPUT:
        return "output shares its input's observer";
    case TARE_INPUT_OUTPUT_NOT_OBSERVED:
        return "not observed";
    }
    return "";
}

// Writes the label before the first of several lines, and blanks before the others.
static void label(text *t, const char *name, bool is_first) {
    tare__text_printf(t, "  %-11s  ", is_first ? name : "");
}

static void observation_to_text(const tare_pattern_config *p, text *t) {
    if (p->observation_count == 0) {
        label(t, "observation", true);
        tare__text_printf(t, "%s\n", observation_word(p->observation_type));
    }
    for (size_t i = 0; i < p->observation_count; i++) {
        label(t, "observation", i == 0);
        tare__text_printf(t, "with %lld tensor arguments %s\n",
                          (long long)p->observations[i].tensor_arg_count,
                          observation_word(p->observations[i].type));
    }
}

static void name_to_text(text *t, const char *what, const char *name) {
    if (!name) return;
    label(t, what, true);
    tare__text_printf(t, "%s\n", name);
}

static void config_to_text(const tare_pattern_config *p, text *t) {
    tare__pattern_to_text(tare__pattern_config_given(p), t);
    tare__text_char(t, '\n');
    for (size_t i = 0; i < p->dtype_configs.count; i++) {
        label(t, "dtypes", i == 0);
        dtypes_to_text(&p->dtype_configs.items[i], t);
        tare__text_char(t, '\n');
    }
    observation_to_text(p, t);
    name_to_text(t, "root", p->spelled_modules[MODULE_ROOT]);
    name_to_text(t, "reference", p->spelled_modules[MODULE_REFERENCE_QUANTIZED]);
    name_to_text(t, "qat", p->spelled_modules[MODULE_QAT]);
    name_to_text(t, "fused", p->spelled_modules[MODULE_FUSED]);
    name_to_text(t, "fuser", p->fuser && !p->fuser_method ? "(a callback)" : p->fuser_method);
    for (size_t i = 0; i < p->input_index_count; i++) {
        label(t, "arguments", i == 0);
        tare__text_printf(t, "%s is number %lld\n", p->input_indexes[i].input,
                          (long long)p->input_indexes[i].index);
    }
}

tare_status tare_backend_config_show(const tare_backend_config *config, tare_writer write,
                                     void *user, tare_error *err) {
    TARE_TRY(tare__backend_config_status(config, err));
    text out = {0};
    tare__text_printf(&out, "%s: %zu patterns\n", config->name, config->count);
    for (size_t i = 0; i < config->count; i++) {
        tare__text_char(&out, '\n');
        config_to_text(config->configs[i], &out);
    }
    return tare__text_write(&out, TARE_OK, write, user, err);
}

// The last part of a name such as "torch.ao.nn.intrinsic.ConvReLU2d", for columns that imply the
// package.
static const char *last_word(const char *name) {
    const char *dot = name ? strrchr(name, '.') : NULL;
    return dot ? dot + 1 : name ? name : "";
}

static void table_row(const tare_pattern_config *p, const tare_dtype_config *d, text *t) {
    tare__text_append(t, "| `");
    tare__pattern_to_text(tare__pattern_config_given(p), t);
    tare__text_append(t, "` | ");
    if (d) dtypes_to_text(d, t);
    const tare_observation_type type =
        p->observation_count > 0 ? p->observations[0].type : p->observation_type;
    tare__text_printf(t, " | %s%s | %s | %s | %s |\n", observation_word(type),
                      p->observation_count > 1 ? " (by number of tensors)" : "",
                      last_word(p->spelled_modules[MODULE_FUSED]),
                      last_word(p->spelled_modules[MODULE_REFERENCE_QUANTIZED]),
                      last_word(p->spelled_modules[MODULE_QAT]));
}

tare_status tare_backend_config_table(const tare_backend_config *config, tare_writer write,
                                      void *user, tare_error *err) {
    TARE_TRY(tare__backend_config_status(config, err));
    text out = {0};
    tare__text_printf(&out,
                      "# Backend %s\n\n"
                      "%zu patterns. Dtypes read input * weight + bias -> output.\n\n"
                      "| pattern | dtypes | observation | fused | reference | QAT |\n"
                      "| --- | --- | --- | --- | --- | --- |\n",
                      config->name, config->count);
    for (size_t i = 0; i < config->count; i++) {
        const tare_pattern_config *p = config->configs[i];
        if (p->dtype_configs.count == 0) table_row(p, NULL, &out);
        for (size_t k = 0; k < p->dtype_configs.count; k++)
            table_row(p, &p->dtype_configs.items[k], &out);
    }
    return tare__text_write(&out, TARE_OK, write, user, err);
}
