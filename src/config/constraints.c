// SPDX-License-Identifier: Apache-2.0
// The fields of tare_dtype_constraints as a table.
#include "config/constraints.h"

#include <math.h>
#include <stddef.h>
#include <string.h>

typedef enum field_kind {
    FIELD_BOUND, // a double that limits integers, and is written like one
    FIELD_DOUBLE,
    FIELD_INT,
    FIELD_TRUE, // present and true, or absent
    FIELD_QSCHEMES,
} field_kind;

typedef struct field {
    const char *key;   // in JSON
    const char *shown; // in listings, before the value
    uint32_t bit;
    field_kind kind;
    size_t offset;
} field;

#define FIELD(key, shown, bit, kind)                                                               \
    { #key, shown, TARE_SET_##bit, FIELD_##kind, offsetof(tare_dtype_constraints, key) }

// torch's fields in torch's order, then tare's own.
static const field fields[] = {
    FIELD(quant_min_lower_bound, "q >= ", QUANT_MIN, BOUND),
    FIELD(quant_max_upper_bound, "q <= ", QUANT_MAX, BOUND),
    FIELD(scale_min_lower_bound, "scale >= ", SCALE_MIN, DOUBLE),
    FIELD(scale_max_upper_bound, "scale <= ", SCALE_MAX, DOUBLE),
    FIELD(scale_exact_match, "scale = ", SCALE_EXACT, DOUBLE),
    FIELD(zero_point_exact_match, "zero point = ", ZERO_POINT_EXACT, INT),
    FIELD(allowed_qschemes, "", QSCHEMES, QSCHEMES),
    FIELD(channel_axis, "channel axis ", CHANNEL_AXIS, INT),
    FIELD(zero_point_lower_bound, "zero point >= ", ZERO_POINT_MIN, INT),
    FIELD(zero_point_upper_bound, "zero point <= ", ZERO_POINT_MAX, INT),
    FIELD(scale_power_of_two, "scale = 2^n", POWER_OF_TWO, TRUE),
};
enum { FIELD_COUNT = sizeof fields / sizeof *fields };

static void *at_field(const field *f, tare_dtype_constraints *c) {
    return (char *)c + f->offset;
}
static double as_double(const field *f, const tare_dtype_constraints *c) {
    double v;
    memcpy(&v, (const char *)c + f->offset, sizeof v);
    return v;
}
static int64_t as_int(const field *f, const tare_dtype_constraints *c) {
    int64_t v;
    memcpy(&v, (const char *)c + f->offset, sizeof v);
    return v;
}
static bool is_real(const field *f) {
    return f->kind == FIELD_BOUND || f->kind == FIELD_DOUBLE;
}

static const char *qscheme_name_at(const void *unused, size_t i) {
    (void)unused;
    return i + 1 < TARE_QSCHEME_COUNT ? tare_qscheme_name((tare_qscheme)(i + 1)) : NULL;
}

static tare_status read_qscheme(const json_at *at, uint32_t *set, tare_error *err) {
    const char *name = NULL;
    TARE_TRY(tare__json_string(at, &name, err));
    const tare_qscheme scheme = tare_qscheme_from_name(name);
    if (scheme == TARE_QSCHEME_UNSET) {
        tare__json_fail(at, err, "unknown qscheme '%s'", name);
        return tare__suggest(err, TARE_MALFORMED_FILE, name, qscheme_name_at, NULL);
    }
    *set |= TARE_QSCHEME_BIT(scheme);
    return TARE_OK;
}

static tare_status read_qschemes(const json_at *at, uint32_t *set, tare_error *err) {
    TARE_TRY(tare__json_expect(at, JSON_ARRAY, err));
    for (size_t i = 0; i < json_array_size(at->value); i++) {
        const json_at item = tare__json_item(at, i);
        TARE_TRY(read_qscheme(&item, set, err));
    }
    return TARE_OK;
}

static tare_status read_true(const json_at *at, bool *out, tare_error *err) {
    TARE_TRY(tare__json_bool(at, out, err));
    if (*out) return TARE_OK;
    tare__json_fail(at, err, "expected true, found false");
    return tare__hint(err, TARE_MALFORMED_FILE, "leave the key out where nothing is demanded");
}

static tare_status read_field(const field *f, const json_at *at, tare_dtype_constraints *c,
                              tare_error *err) {
    c->set |= f->bit;
    switch (f->kind) {
    case FIELD_BOUND:
    case FIELD_DOUBLE:
        return tare__json_double(at, at_field(f, c), err);
    case FIELD_INT:
        return tare__json_int(at, at_field(f, c), err);
    case FIELD_TRUE:
        return read_true(at, at_field(f, c), err);
    case FIELD_QSCHEMES:
        return read_qschemes(at, at_field(f, c), err);
    }
    return TARE_OK;
}

tare_status tare__constraints_from_json(const json_at *at, tare_dtype_constraints *c,
                                        tare_error *err) {
    const char *keys[FIELD_COUNT + 2] = {"dtype"};
    for (size_t i = 0; i < FIELD_COUNT; i++) keys[i + 1] = fields[i].key;
    TARE_TRY(tare__json_only_keys(at, keys, err));
    for (size_t i = 0; i < FIELD_COUNT; i++) {
        const json_at value = tare__json_get(at, fields[i].key);
        // An absent key and null both mean unset, as in torch's from_dict.
        if (value.value && !json_is_null(value.value))
            TARE_TRY(read_field(&fields[i], &value, c, err));
    }
    return TARE_OK;
}

// Writes a bound of integers as torch does, without a fraction.
static void emit_bound(json_emitter *e, double bound) {
    if (bound == trunc(bound) && fabs(bound) < 0x1p53)
        tare__emit_int(e, (int64_t)bound);
    else
        tare__emit_double(e, bound);
}

static void emit_qschemes(json_emitter *e, uint32_t qschemes) {
    tare__emit_open(e, '[');
    for (int q = 1; q < TARE_QSCHEME_COUNT; q++)
        if (qschemes & TARE_QSCHEME_BIT(q))
            tare__emit_string(e, tare_qscheme_name((tare_qscheme)q));
    tare__emit_close(e, ']');
}

void tare__constraints_emit(const tare_dtype_constraints *c, json_emitter *e) {
    for (size_t i = 0; i < FIELD_COUNT; i++) {
        const field *f = &fields[i];
        if (!(c->set & f->bit)) continue;
        tare__emit_key(e, f->key);
        if (f->kind == FIELD_BOUND) emit_bound(e, as_double(f, c));
        if (f->kind == FIELD_DOUBLE) tare__emit_double(e, as_double(f, c));
        if (f->kind == FIELD_INT) tare__emit_int(e, as_int(f, c));
        if (f->kind == FIELD_TRUE) tare__emit_bool(e, true);
        if (f->kind == FIELD_QSCHEMES) emit_qschemes(e, c->allowed_qschemes);
    }
}

void tare__qschemes_to_text(uint32_t qschemes, text *t) {
    bool has_one = false;
    for (int q = 1; q < TARE_QSCHEME_COUNT; q++) {
        if (!(qschemes & TARE_QSCHEME_BIT(q))) continue;
        tare__text_printf(t, "%s%s", has_one ? " or " : "", tare_qscheme_name((tare_qscheme)q));
        has_one = true;
    }
}

static void number_to_text(text *t, double number) {
    // Bounds of integers are doubles with integer values, printed without a fraction.
    if (number == trunc(number) && fabs(number) < 0x1p53)
        tare__text_printf(t, "%.0f", number);
    else
        tare__text_double(t, number);
}

void tare__constraints_to_text(const tare_dtype_constraints *c, text *t) {
    bool is_open = false;
    for (size_t i = 0; i < FIELD_COUNT; i++) {
        const field *f = &fields[i];
        if (!(c->set & f->bit)) continue;
        tare__text_printf(t, "%s%s", is_open ? ", " : "[", f->shown);
        is_open = true;
        if (is_real(f)) number_to_text(t, as_double(f, c));
        if (f->kind == FIELD_INT) tare__text_printf(t, "%lld", (long long)as_int(f, c));
        if (f->kind == FIELD_QSCHEMES) tare__qschemes_to_text(c->allowed_qschemes, t);
    }
    if (is_open) tare__text_char(t, ']');
}

static bool same_field(const field *f, const tare_dtype_constraints *a,
                       const tare_dtype_constraints *b) {
    if (is_real(f)) return as_double(f, a) == as_double(f, b);
    if (f->kind == FIELD_INT) return as_int(f, a) == as_int(f, b);
    return f->kind == FIELD_TRUE || a->allowed_qschemes == b->allowed_qschemes;
}

bool tare__constraints_equal(const tare_dtype_constraints *a, const tare_dtype_constraints *b) {
    if (a->dtype != b->dtype || a->set != b->set) return false;
    for (size_t i = 0; i < FIELD_COUNT; i++)
        if (a->set & fields[i].bit && !same_field(&fields[i], a, b)) return false;
    return true;
}

static tare_status check_values(const char *role, const tare_dtype_constraints *c,
                                tare_error *err) {
    for (size_t i = 0; i < FIELD_COUNT; i++)
        if (c->set & fields[i].bit && is_real(&fields[i]) && isnan(as_double(&fields[i], c)))
            return tare__fail(err, TARE_INVALID_ARGUMENT, "%s of %s is NaN", fields[i].key, role);
    const uint32_t none = TARE_QSCHEME_BIT(TARE_QSCHEME_UNSET);
    const uint32_t all = (TARE_QSCHEME_BIT(TARE_QSCHEME_COUNT) - 1) & ~none;
    if (c->set & TARE_SET_QSCHEMES && (c->allowed_qschemes == 0 || c->allowed_qschemes & ~all))
        return tare__fail(err, TARE_INVALID_ARGUMENT,
                          "expected allowed_qschemes of %s to be a set of qschemes, found 0x%x",
                          role, c->allowed_qschemes);
    return TARE_OK;
}

tare_status tare__constraints_check(const char *role, const tare_dtype_constraints *c,
                                    tare_error *err) {
    uint32_t known = 0;
    for (size_t i = 0; i < FIELD_COUNT; i++) known |= fields[i].bit;
    if ((int)c->dtype < TARE_DTYPE_UNSET || (int)c->dtype >= TARE_DTYPE_COUNT)
        return tare__fail(err, TARE_INVALID_ARGUMENT,
                          "Expected %s to be a torch.dtype or DTypeWithConstraints", role);
    if (c->set & ~known)
        return tare__fail(err, TARE_INVALID_ARGUMENT, "%s sets unknown constraints (0x%x)", role,
                          c->set & ~known);
    // torch drops such constraints in to_dict and never enforces them.
    if (c->dtype == TARE_DTYPE_UNSET && c->set)
        return tare__fail(err, TARE_INVALID_ARGUMENT,
                          "%s has constraints but no dtype, so that they would have no effect",
                          role);
    return check_values(role, c, err);
}

// --- setting ---

void tare_dtype_constraints_set_quant_range(tare_dtype_constraints *c, double least,
                                            double greatest) {
    c->quant_min_lower_bound = least;
    c->quant_max_upper_bound = greatest;
    c->set |= TARE_SET_QUANT_MIN | TARE_SET_QUANT_MAX;
}

void tare_dtype_constraints_set_scale_min(tare_dtype_constraints *c, double least) {
    c->scale_min_lower_bound = least;
    c->set |= TARE_SET_SCALE_MIN;
}

void tare_dtype_constraints_set_scale_max(tare_dtype_constraints *c, double greatest) {
    c->scale_max_upper_bound = greatest;
    c->set |= TARE_SET_SCALE_MAX;
}

void tare_dtype_constraints_set_exact(tare_dtype_constraints *c, double scale, int64_t zero_point) {
    c->scale_exact_match = scale;
    c->zero_point_exact_match = zero_point;
    c->set |= TARE_SET_SCALE_EXACT | TARE_SET_ZERO_POINT_EXACT;
}

void tare_dtype_constraints_set_qschemes(tare_dtype_constraints *c, uint32_t allowed) {
    c->allowed_qschemes = allowed;
    c->set |= TARE_SET_QSCHEMES;
}

void tare_dtype_constraints_set_channel_axis(tare_dtype_constraints *c, int64_t axis) {
    c->channel_axis = axis;
    c->set |= TARE_SET_CHANNEL_AXIS;
}

void tare_dtype_constraints_set_zero_point_range(tare_dtype_constraints *c, int64_t least,
                                                 int64_t greatest) {
    c->zero_point_lower_bound = least;
    c->zero_point_upper_bound = greatest;
    c->set |= TARE_SET_ZERO_POINT_MIN | TARE_SET_ZERO_POINT_MAX;
}

void tare_dtype_constraints_set_power_of_two(tare_dtype_constraints *c) {
    c->scale_power_of_two = true;
    c->set |= TARE_SET_POWER_OF_TWO;
}

static bool has_value(const field *f, const tare_dtype_constraints *c) {
    switch (f->kind) {
    case FIELD_BOUND:
    case FIELD_DOUBLE:
        return as_double(f, c) != 0;
    case FIELD_INT:
        return as_int(f, c) != 0;
    case FIELD_TRUE:
        return c->scale_power_of_two;
    case FIELD_QSCHEMES:
        return c->allowed_qschemes != 0;
    }
    return false;
}

const char *tare__constraints_without_bit(const tare_dtype_constraints *c) {
    for (size_t i = 0; i < FIELD_COUNT; i++)
        if (!(c->set & fields[i].bit) && has_value(&fields[i], c)) return fields[i].key;
    return NULL;
}
