// SPDX-License-Identifier: Apache-2.0
// Prints a description of a quantizer as text or as JSON.
#include <string.h>

#include "config/qspec.h"
#include "core/text/text.h"
#include "quantizers/builtin.h"
#include "quantizers/data/quantizer.h"
#include "quantizers/quantizer.h"

// --- fields of a config, one list for both forms ---

typedef struct config_field {
    const char *name;
    const tare_qspec *spec;
} config_field;
enum { CONFIG_FIELDS = 4 };

static void list_fields(const tare_quantization_config *c, config_field fields[CONFIG_FIELDS]) {
    fields[0] = (config_field){"input_activation", c->input_activation};
    fields[1] = (config_field){"output_activation", c->output_activation};
    fields[2] = (config_field){"weight", c->weight};
    fields[3] = (config_field){"bias", c->bias};
}

static const char *kind_of(const tare_quantizer *q) {
    if (tare__builtin_row_of(q) != NULL) return "built-in";
    if (tare__data_quantizer_of(q) != NULL) return "rules";
    return q->member_count > 0 ? "composed" : "coded";
}

// --- lists of names ---

typedef struct name_list {
    text *out;
    bool as_json, has_some;
} name_list;

static void add_name(void *user, const char *name) {
    name_list *l = user;
    tare__text_append(l->out, l->as_json ? (l->has_some ? "," : "") : "\n    ");
    l->has_some = true;
    if (l->as_json)
        tare__text_json_string(l->out, name);
    else
        tare__text_append(l->out, name);
}

static name_list begin_list(text *out, bool as_json, const char *key) {
    tare__text_printf(out, as_json ? ",\"%s\":[" : "  %s:", key);
    return (name_list){.out = out, .as_json = as_json};
}

static void end_list(const name_list *l) {
    if (l->as_json)
        tare__text_char(l->out, ']');
    else
        tare__text_append(l->out, l->has_some ? "\n" : " none\n");
}

static void write_names(text *out, bool as_json, const char *key, const char *const *names) {
    name_list l = begin_list(out, as_json, key);
    for (; *names != NULL; names++) add_name(&l, *names);
    end_list(&l);
}

// --- a single quantizer ---

static void write_config(const tare_quantizer *q, bool as_json, text *out) {
    config_field fields[CONFIG_FIELDS];
    const tare_quantizer_settings *s = q->settings;
    if (s == NULL) return;
    tare__text_append(out, as_json ? ",\"config\":" : "  config:");
    if (!s->has_global || s->global.is_none) {
        tare__text_append(out, as_json ? "null" : " none\n");
        return;
    }
    list_fields(&s->global.config, fields);
    for (size_t i = 0; i < CONFIG_FIELDS; i++) {
        if (as_json) {
            tare__text_printf(out, "%s\"%s\":", i > 0 ? "," : "{", fields[i].name);
            tare__qspec_to_json(fields[i].spec, out);
            continue;
        }
        tare__text_printf(out, "\n    %s: ", fields[i].name);
        if (fields[i].spec != NULL)
            tare__qspec_text(fields[i].spec, out);
        else
            tare__text_append(out, "none");
    }
    const char *is_qat = s->global.config.is_qat ? "true" : "false";
    if (as_json)
        tare__text_printf(out, ",\"is_qat\":%s}", is_qat);
    else
        tare__text_append(out, s->global.config.is_qat ? "\n    for training\n" : "\n");
}

static void write_builtin(const builtin_row *row, bool as_json, text *out) {
    name_list l = begin_list(out, as_json, "rules");
    row->each_rule(row, add_name, &l);
    end_list(&l);
    l = begin_list(out, as_json, "operators");
    if (row->each_operator != NULL) row->each_operator(row, add_name, &l);
    end_list(&l);
}

static void write_data(const data_quantizer *q, bool as_json, text *out) {
    name_list l = begin_list(out, as_json, "rules");
    for (size_t i = 0; i < q->rule_count; i++) add_name(&l, q->rules[i].name);
    end_list(&l);
    write_names(out, as_json, "keeps_observer", q->keeps_observer);
    write_names(out, as_json, "joins_inputs", q->joins_inputs);
    write_names(out, as_json, "lifts_scalars", q->lifts_scalars);
}

static void write_quantizer(const tare_quantizer *q, bool as_json, text *out) {
    if (as_json) {
        tare__text_append(out, "{\"name\":");
        tare__text_json_string(out, q->class.name);
        tare__text_printf(out, ",\"kind\":\"%s\"", kind_of(q));
    } else {
        tare__text_printf(out, "%s (%s)\n", q->class.name, kind_of(q));
    }
    write_config(q, as_json, out);
    const builtin_row *row = tare__builtin_row_of(q);
    const data_quantizer *data = tare__data_quantizer_of(q);
    if (row != NULL) write_builtin(row, as_json, out);
    if (data != NULL) write_data(data, as_json, out);
    if (as_json && q->member_count > 0) tare__text_append(out, ",\"quantizers\":[");
    for (size_t i = 0; i < q->member_count; i++) {
        if (as_json && i > 0) tare__text_char(out, ',');
        write_quantizer(q->members[i], as_json, out);
    }
    if (as_json) tare__text_append(out, q->member_count > 0 ? "]}" : "}");
}

tare_status tare_quantizer_show(const tare_quantizer *q, bool as_json, tare_writer write,
                                void *user, tare_error *err) {
    text out = {0};
    write_quantizer(q, as_json, &out);
    if (as_json) tare__text_char(&out, '\n');
    return tare__text_write(&out, TARE_OK, write, user, err);
}
