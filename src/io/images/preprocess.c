// SPDX-License-Identifier: Apache-2.0
// Reads and writes preprocessing: JSON, presets, and the short form of the command line.
#include "io/images/preprocess.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/memory/alloc.h"

enum { LARGEST_SIDE = 1 << 16 };

static const char *const interpolation_names[] = {[INTERPOLATION_BILINEAR] = "bilinear",
                                                  [INTERPOLATION_BICUBIC] = "bicubic",
                                                  [INTERPOLATION_NEAREST] = "nearest",
                                                  NULL};
static const char *const color_names[] = {
    [COLOR_RGB] = "rgb", [COLOR_BGR] = "bgr", [COLOR_GRAY] = "gray", NULL};
static const char *const layout_names[] = {"NCHW", "NHWC", NULL};
static const char *const dtype_names[] = {"float32", "uint8", NULL};

static const char *name_at(const void *names, size_t index) {
    return ((const char *const *)names)[index];
}

static tare_status choose(const char *name, const char *what, const char *const *names, size_t *out,
                          tare_error *err) {
    for (*out = 0; names[*out] != NULL; ++*out)
        if (strcmp(names[*out], name) == 0) return TARE_OK;
    const tare_status status =
        tare__fail(err, TARE_MALFORMED_FILE, "no %s '%s', only %s, %s%s%s", what, name, names[0],
                   names[1], names[2] != NULL ? ", " : "", names[2] != NULL ? names[2] : "");
    return tare__suggest(err, status, name, name_at, names);
}

int tare__preprocess_channels(const preprocess *p) {
    return p->color == COLOR_GRAY ? 1 : 3;
}

static bool same_resize(const preprocess *a, const preprocess *b) {
    if (a->resize_shorter != b->resize_shorter || a->resize_height != b->resize_height ||
        a->resize_width != b->resize_width)
        return false;
    if (a->resize_shorter == 0 && a->resize_height == 0) return true;
    return a->interpolation == b->interpolation &&
           (a->antialias == b->antialias || a->interpolation == INTERPOLATION_NEAREST);
}

// Settings without effect are not compared.
bool tare__preprocess_equal(const preprocess *a, const preprocess *b) {
    bool is_equal = same_resize(a, b) && a->crop_height == b->crop_height &&
                    a->crop_width == b->crop_width && a->color == b->color &&
                    a->is_normalized == b->is_normalized &&
                    a->is_channels_last == b->is_channels_last && a->is_uint8 == b->is_uint8;
    is_equal = is_equal && (a->is_uint8 || a->scale == b->scale);
    for (int c = 0; is_equal && a->is_normalized && c < tare__preprocess_channels(a); c++)
        is_equal = a->mean[c] == b->mean[c] && a->std[c] == b->std[c];
    return is_equal;
}

/// The settings read so far, and flags for those that were given; the others have defaults.
typedef struct draft {
    preprocess made;
    bool has_interpolation, has_antialias, has_scale, has_mean, has_std;
    size_t mean_count, std_count;
} draft;

static draft defaults(void) {
    return (draft){.made = {.antialias = true, .scale = 1.0 / 255}};
}

// --- checks for all forms ---

static tare_status check_numbers(const double *numbers, size_t count, size_t channels,
                                 const char *what, tare_error *err) {
    if (count != channels)
        return tare__fail(err, TARE_MALFORMED_FILE, "%s: %zu numbers for %zu channel%s", what,
                          count, channels, channels == 1 ? "" : "s");
    for (size_t i = 0; i < count; i++)
        if (!isfinite(numbers[i]))
            return tare__fail(err, TARE_MALFORMED_FILE, "%s: expected finite numbers", what);
    return TARE_OK;
}

static tare_status check_normalization(const draft *d, tare_error *err) {
    if (d->has_mean != d->has_std)
        return tare__fail(err, TARE_MALFORMED_FILE, "mean and std must be given together");
    if (!d->has_mean) return TARE_OK;
    const size_t channels = (size_t)tare__preprocess_channels(&d->made);
    TARE_TRY(check_numbers(d->made.mean, d->mean_count, channels, "mean", err));
    TARE_TRY(check_numbers(d->made.std, d->std_count, channels, "std", err));
    for (size_t i = 0; i < channels; i++)
        if (!((float)d->made.std[i] > 0))
            return tare__fail(err, TARE_MALFORMED_FILE, "std: expected numbers above 0");
    return TARE_OK;
}

// Settings without effect are refused.
static tare_status finish(draft *d, preprocess *out, tare_error *err) {
    const preprocess *p = &d->made;
    const bool is_resized = p->resize_shorter > 0 || p->resize_height > 0;
    if (!is_resized && (d->has_interpolation || d->has_antialias))
        return tare__fail(err, TARE_MALFORMED_FILE,
                          "interpolation and antialias have no effect without a resize");
    if (p->interpolation == INTERPOLATION_NEAREST && d->has_antialias)
        return tare__fail(err, TARE_MALFORMED_FILE, "antialias has no effect on nearest");
    if (p->is_uint8 && (d->has_scale || d->has_mean || d->has_std))
        return tare__fail(err, TARE_MALFORMED_FILE,
                          "scale, mean and std have no effect on uint8: bytes stay as they are");
    if (!isfinite(p->scale) || !(p->scale > 0))
        return tare__fail(err, TARE_MALFORMED_FILE, "scale: expected a number above 0");
    TARE_TRY(check_normalization(d, err));
    *out = *p;
    out->is_normalized = d->has_mean;
    return TARE_OK;
}

static tare_status check_side(int64_t side, tare_error *err) {
    if (side >= 1 && side <= LARGEST_SIDE) return TARE_OK;
    return tare__fail(err, TARE_MALFORMED_FILE, "expected 1 to %d pixels, found %lld", LARGEST_SIDE,
                      (long long)side);
}

// --- JSON ---

static tare_status read_side(const json_at *at, int64_t *out, tare_error *err) {
    TARE_TRY(tare__json_int(at, out, err));
    return tare__json_place(at, check_side(*out, err), err);
}

static tare_status read_sides(const json_at *at, int64_t *height, int64_t *width, tare_error *err) {
    TARE_TRY(tare__json_expect(at, JSON_ARRAY, err));
    if (json_array_size(at->value) != 2)
        return tare__json_fail(at, err, "expected [height, width]");
    const json_at first = tare__json_item(at, 0), second = tare__json_item(at, 1);
    TARE_TRY(read_side(&first, height, err));
    return read_side(&second, width, err);
}

static tare_status read_choice(const json_at *object, const char *key, const char *const *names,
                               size_t *out, tare_error *err) {
    const json_at at = tare__json_get(object, key);
    const char *name = NULL;
    TARE_TRY(tare__json_string(&at, &name, err));
    return tare__json_place(&at, choose(name, key, names, out, err), err);
}

static tare_status read_resize(const json_at *at, draft *d, tare_error *err) {
    static const char *const keys[] = {"shorter", "size", "interpolation", "antialias", NULL};
    TARE_TRY(tare__json_expect(at, JSON_OBJECT, err));
    TARE_TRY(tare__json_only_keys(at, keys, err));
    const json_at shorter = tare__json_get(at, "shorter"), size = tare__json_get(at, "size");
    const json_at antialias = tare__json_get(at, "antialias");
    if (tare__json_has(at, "shorter") == tare__json_has(at, "size"))
        return tare__json_fail(at, err, "expected one of 'shorter' and 'size'");
    if (tare__json_has(at, "shorter"))
        TARE_TRY(read_side(&shorter, &d->made.resize_shorter, err));
    else
        TARE_TRY(read_sides(&size, &d->made.resize_height, &d->made.resize_width, err));
    if (tare__json_has(at, "interpolation")) {
        size_t chosen = 0;
        TARE_TRY(read_choice(at, "interpolation", interpolation_names, &chosen, err));
        d->made.interpolation = (interpolation)chosen;
        d->has_interpolation = true;
    }
    d->has_antialias = tare__json_has(at, "antialias");
    return d->has_antialias ? tare__json_bool(&antialias, &d->made.antialias, err) : TARE_OK;
}

static tare_status read_numbers(const json_at *at, double *out, size_t *count, tare_error *err) {
    TARE_TRY(tare__json_expect(at, JSON_ARRAY, err));
    *count = json_array_size(at->value);
    if (*count != 1 && *count != 3) return tare__json_fail(at, err, "expected 1 or 3 numbers");
    for (size_t i = 0; i < *count; i++) {
        const json_at item = tare__json_item(at, i);
        TARE_TRY(tare__json_double(&item, &out[i], err));
    }
    return TARE_OK;
}

static tare_status read_names(const json_at *at, draft *d, tare_error *err) {
    size_t chosen = 0;
    if (tare__json_has(at, "color")) {
        TARE_TRY(read_choice(at, "color", color_names, &chosen, err));
        d->made.color = (color_order)chosen;
    }
    if (tare__json_has(at, "layout")) {
        TARE_TRY(read_choice(at, "layout", layout_names, &chosen, err));
        d->made.is_channels_last = chosen == 1;
    }
    if (tare__json_has(at, "dtype")) {
        TARE_TRY(read_choice(at, "dtype", dtype_names, &chosen, err));
        d->made.is_uint8 = chosen == 1;
    }
    return TARE_OK;
}

tare_status tare__preprocess_from_json(const json_at *at, preprocess *out, tare_error *err) {
    static const char *const keys[] = {"resize", "center_crop", "color", "scale", "mean",
                                       "std",    "layout",      "dtype", NULL};
    draft d = defaults();
    TARE_TRY(tare__json_expect(at, JSON_OBJECT, err));
    TARE_TRY(tare__json_only_keys(at, keys, err));
    const json_at resize = tare__json_get(at, "resize"), crop = tare__json_get(at, "center_crop");
    const json_at scale = tare__json_get(at, "scale"), mean = tare__json_get(at, "mean");
    const json_at std = tare__json_get(at, "std");
    d.has_scale = tare__json_has(at, "scale");
    d.has_mean = tare__json_has(at, "mean");
    d.has_std = tare__json_has(at, "std");
    if (tare__json_has(at, "resize")) TARE_TRY(read_resize(&resize, &d, err));
    if (tare__json_has(at, "center_crop"))
        TARE_TRY(read_sides(&crop, &d.made.crop_height, &d.made.crop_width, err));
    TARE_TRY(read_names(at, &d, err));
    if (d.has_scale) TARE_TRY(tare__json_double(&scale, &d.made.scale, err));
    if (d.has_mean) TARE_TRY(read_numbers(&mean, d.made.mean, &d.mean_count, err));
    if (d.has_std) TARE_TRY(read_numbers(&std, d.made.std, &d.std_count, err));
    return tare__json_place(at, finish(&d, out, err), err);
}

static void write_numbers(text *out, const char *key, const double *numbers, int count) {
    tare__text_printf(out, ",\"%s\":[", key);
    for (int i = 0; i < count; i++) {
        if (i > 0) tare__text_char(out, ',');
        tare__text_json_double(out, numbers[i]);
    }
    tare__text_char(out, ']');
}

static void write_resize(const preprocess *p, text *out) {
    if (p->resize_shorter > 0)
        tare__text_printf(out, "\"resize\":{\"shorter\":%lld", (long long)p->resize_shorter);
    else if (p->resize_height > 0)
        tare__text_printf(out, "\"resize\":{\"size\":[%lld,%lld]", (long long)p->resize_height,
                          (long long)p->resize_width);
    else
        return;
    tare__text_printf(out, ",\"interpolation\":\"%s\"", interpolation_names[p->interpolation]);
    if (p->interpolation != INTERPOLATION_NEAREST)
        tare__text_printf(out, ",\"antialias\":%s", p->antialias ? "true" : "false");
    tare__text_append(out, "},");
}

void tare__preprocess_to_json(const preprocess *p, text *out) {
    tare__text_char(out, '{');
    write_resize(p, out);
    if (p->crop_height > 0)
        tare__text_printf(out, "\"center_crop\":[%lld,%lld],", (long long)p->crop_height,
                          (long long)p->crop_width);
    tare__text_printf(out, "\"color\":\"%s\"", color_names[p->color]);
    if (!p->is_uint8) {
        tare__text_append(out, ",\"scale\":");
        tare__text_json_double(out, p->scale);
    }
    if (p->is_normalized) {
        write_numbers(out, "mean", p->mean, tare__preprocess_channels(p));
        write_numbers(out, "std", p->std, tare__preprocess_channels(p));
    }
    tare__text_printf(out, ",\"layout\":\"%s\",\"dtype\":\"%s\"}",
                      layout_names[p->is_channels_last], dtype_names[p->is_uint8]);
}

// --- the short form ---

static bool take_integer(const char **at, int64_t *out) {
    int64_t number = 0;
    const char *begin = *at;
    for (; **at >= '0' && **at <= '9' && number <= LARGEST_SIDE; ++*at)
        number = number * 10 + (**at - '0');
    *out = number;
    return *at != begin;
}

/// Parses "256", with *width 0, or "224x320".
static tare_status parse_sides(const char *value, int64_t *height, int64_t *width,
                               tare_error *err) {
    const char *at = value;
    *width = 0;
    bool is_good = take_integer(&at, height);
    const bool has_two = is_good && *at == 'x';
    if (has_two) {
        at++;
        is_good = take_integer(&at, width);
    }
    if (!is_good || *at != '\0')
        return tare__fail(err, TARE_MALFORMED_FILE, "expected N or HEIGHTxWIDTH, found '%s'",
                          value);
    TARE_TRY(check_side(*height, err));
    return has_two ? check_side(*width, err) : TARE_OK;
}

static tare_status set_resize(draft *d, const char *value, tare_error *err) {
    int64_t height = 0, width = 0;
    TARE_TRY(parse_sides(value, &height, &width, err));
    d->made.resize_shorter = width == 0 ? height : 0;
    d->made.resize_height = width == 0 ? 0 : height;
    d->made.resize_width = width;
    return TARE_OK;
}

static tare_status set_crop(draft *d, const char *value, tare_error *err) {
    TARE_TRY(parse_sides(value, &d->made.crop_height, &d->made.crop_width, err));
    if (d->made.crop_width == 0) d->made.crop_width = d->made.crop_height;
    return TARE_OK;
}

static tare_status set_interpolation(draft *d, const char *value, tare_error *err) {
    size_t chosen = 0;
    TARE_TRY(choose(value, "interpolation", interpolation_names, &chosen, err));
    d->made.interpolation = (interpolation)chosen;
    d->has_interpolation = true;
    return TARE_OK;
}

static tare_status set_antialias(draft *d, const char *value, tare_error *err) {
    static const char *const names[] = {"false", "true", NULL};
    size_t chosen = 0;
    TARE_TRY(choose(value, "antialias", names, &chosen, err));
    d->made.antialias = chosen == 1;
    d->has_antialias = true;
    return TARE_OK;
}

static tare_status set_color(draft *d, const char *value, tare_error *err) {
    size_t chosen = 0;
    TARE_TRY(choose(value, "color", color_names, &chosen, err));
    d->made.color = (color_order)chosen;
    return TARE_OK;
}

static tare_status set_layout(draft *d, const char *value, tare_error *err) {
    size_t chosen = 0;
    TARE_TRY(choose(value, "layout", layout_names, &chosen, err));
    d->made.is_channels_last = chosen == 1;
    return TARE_OK;
}

static tare_status set_dtype(draft *d, const char *value, tare_error *err) {
    size_t chosen = 0;
    TARE_TRY(choose(value, "dtype", dtype_names, &chosen, err));
    d->made.is_uint8 = chosen == 1;
    return TARE_OK;
}

// "0.5" or "1/255".
static bool parse_ratio(const char *value, size_t length, double *out) {
    const char *slash = memchr(value, '/', length);
    const size_t first = slash != NULL ? (size_t)(slash - value) : length;
    double divisor = 1;
    if (!tare__parse_double(value, first, out)) return false;
    if (slash != NULL && !tare__parse_double(slash + 1, length - first - 1, &divisor)) return false;
    *out /= divisor;
    return true;
}

static tare_status set_scale(draft *d, const char *value, tare_error *err) {
    d->has_scale = true;
    if (parse_ratio(value, strlen(value), &d->made.scale)) return TARE_OK;
    return tare__fail(err, TARE_MALFORMED_FILE, "expected a number such as 1/255, found '%s'",
                      value);
}

static tare_status parse_numbers(const char *value, double *out, size_t *count, tare_error *err) {
    const char *at = value;
    for (*count = 0; *count < 3;) {
        const size_t length = strcspn(at, ":");
        if (!parse_ratio(at, length, &out[(*count)++])) break;
        at += length;
        if (*at == '\0') return TARE_OK;
        at++;
    }
    return tare__fail(err, TARE_MALFORMED_FILE, "expected numbers as A:B:C, found '%s'", value);
}

static tare_status set_mean(draft *d, const char *value, tare_error *err) {
    d->has_mean = true;
    return parse_numbers(value, d->made.mean, &d->mean_count, err);
}

static tare_status set_std(draft *d, const char *value, tare_error *err) {
    d->has_std = true;
    return parse_numbers(value, d->made.std, &d->std_count, err);
}

static const struct setter {
    const char *key;
    tare_status (*set)(draft *d, const char *value, tare_error *err);
} setters[] = {
    {"resize", set_resize},       {"crop", set_crop},   {"interpolation", set_interpolation},
    {"antialias", set_antialias}, {"color", set_color}, {"scale", set_scale},
    {"mean", set_mean},           {"std", set_std},     {"layout", set_layout},
    {"dtype", set_dtype},
};
enum { SETTER_COUNT = sizeof setters / sizeof *setters };

// Presets, in the short form.
static const struct preset {
    const char *name, *steps;
} presets[] = {
    {"imagenet", "resize=256,crop=224,mean=0.485:0.456:0.406,std=0.229:0.224:0.225"},
    {"to_tensor", "scale=1/255"},
};
enum { PRESET_COUNT = sizeof presets / sizeof *presets };

const char *tare__preprocess_preset_at(size_t index) {
    return index < PRESET_COUNT ? presets[index].name : NULL;
}

static const char *word_at(const void *user, size_t index) {
    (void)user;
    if (index < SETTER_COUNT) return setters[index].key;
    return tare__preprocess_preset_at(index - SETTER_COUNT);
}

static tare_status parse_steps(draft *d, char *steps, bool may_be_preset, tare_error *err);

static tare_status apply_preset(draft *d, const char *name, tare_error *err) {
    for (size_t i = 0; i < PRESET_COUNT; i++) {
        if (strcmp(presets[i].name, name) != 0) continue;
        char *steps = tare__strdup(presets[i].steps);
        if (steps == NULL) return tare__out_of_memory(err);
        const tare_status status = parse_steps(d, steps, false, err);
        tare__free(steps);
        return status;
    }
    tare__fail(err, TARE_MALFORMED_FILE, "'%s' is neither a preset nor KEY=VALUE", name);
    return tare__suggest(err, TARE_MALFORMED_FILE, name, word_at, NULL);
}

static tare_status apply_setting(draft *d, const char *key, const char *value, uint32_t *seen,
                                 tare_error *err) {
    for (size_t i = 0; i < SETTER_COUNT; i++) {
        if (strcmp(setters[i].key, key) != 0) continue;
        if ((*seen >> i & 1) != 0)
            return tare__fail(err, TARE_MALFORMED_FILE, "'%s' is given twice", key);
        *seen |= (uint32_t)1 << i;
        return tare__at(err, setters[i].set(d, value, err), "%s", key);
    }
    tare__fail(err, TARE_MALFORMED_FILE, "no step '%s'", key);
    return tare__suggest(err, TARE_MALFORMED_FILE, key, word_at, NULL);
}

// Parses `steps`. A preset may come first; later settings change it.
static tare_status parse_steps(draft *d, char *steps, bool may_be_preset, tare_error *err) {
    uint32_t seen = 0;
    for (char *next = NULL, *at = steps; at != NULL; at = next, may_be_preset = false) {
        next = strchr(at, ',');
        if (next != NULL) *next++ = '\0';
        char *value = strchr(at, '=');
        if (value == NULL && may_be_preset) {
            TARE_TRY(apply_preset(d, at, err));
            continue;
        }
        if (value == NULL)
            return tare__fail(err, TARE_MALFORMED_FILE, "expected KEY=VALUE, found '%s'", at);
        *value++ = '\0';
        TARE_TRY(apply_setting(d, at, value, &seen, err));
    }
    return TARE_OK;
}

static tare_status from_steps(const char *spec, preprocess *out, tare_error *err) {
    char *steps = tare__strdup(spec);
    if (steps == NULL) return tare__out_of_memory(err);
    draft d = defaults();
    tare_status status = parse_steps(&d, steps, true, err);
    tare__free(steps);
    if (status == TARE_OK) status = finish(&d, out, err);
    return status;
}

tare_status tare__preprocess_from_text(const char *spec, preprocess *out, tare_error *err) {
    if (spec[strspn(spec, " \t\r\n")] != '{') return from_steps(spec, out, err);
    json_t *json = NULL;
    TARE_TRY(tare__json_parse(spec, strlen(spec), &json, err));
    const json_at root = tare__json_root(json);
    const tare_status status = tare__preprocess_from_json(&root, out, err);
    json_decref(json);
    return status;
}
