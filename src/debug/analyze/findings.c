// SPDX-License-Identifier: Apache-2.0
// Detectors of causes that reduce accuracy. Each inspects one quantized tensor or one layer, and
// describes the problem and a remedy.
#include "debug/analyze/findings.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/memory/alloc.h"
#include "debug/analyze/causes.h"
#include "flow/layer_bias.h"
#include "ir/call_names.h"
#include "model/pass.h"
#include "ops/op.h"
#include "tare/handoff.h"

// Where a detector speaks. A ratio below these is what healthy networks have.
#define OUTLIER_RATIO   8.0  // peak of a channel, sample or row relative to the median one
#define OUTLIER_SHARE   0.1  // of channels: more of them are not outliers
#define WEIGHT_RATIO    24.0 // largest channel's peak relative to the median one, with one scale
#define SATURATED_SHARE 2e-3 // of elements
#define FOREIGN_SHARE   0.05 // of elements of a model's input: more of them are no outliers
#define REACHED_SHARE   0.1  // of their width: a range that ends so close to others reaches them
#define MISMATCH_RATIO  4.0  // of a median sample to one of calibration
#define SHARED_RATIO    4.0  // of two ranges with a common scale
#define FIXED_RATIO     2.0  // of a range that an operator fixes to its values: a bit is unused
#define LOST_SHARE      0.25 // of a weight's energy
#define LEAST_SAMPLES   3    // fewer show no median, and nothing that is the same in all
#define CONSTANT_VALUES 16   // of a channel that show that it is constant
#define EPS             (1.0 / (1 << 23)) // torch's, the least scale of observers
#define LEAST_SCALE     (1.2 * EPS)       // about as small

double tare__measure_db(double signal, double noise) {
    if (isnan(noise) || isnan(signal)) return -INFINITY;
    if (noise > 0) return 10 * log10(signal / noise);
    return signal > 0 ? (double)INFINITY : (double)NAN;
}

double tare__measure_alone_db(const layer_measure *m) {
    return m->is_alone_measured ? tare__measure_db(m->alone_signal, m->alone_noise) : (double)NAN;
}

double tare__measure_local_db(const layer_measure *m, int scope) {
    return tare__measure_db(m->local_signal[scope], m->local_noise[scope]);
}

// --- findings ---

typedef struct subject {
    finding_list *list;
    const range_entry *entry; // NULL: the subject is the layer
    size_t layer;
} subject;

static const layer_measure *measure_of(const subject *s) {
    return &s->list->measures[s->layer];
}

static const probe_layer *layer_of(const subject *s) {
    return &s->list->probe->layers[s->layer];
}

// The error of the tensor itself, if a brief analysis had no time for the layer.
static double both_db(const subject *s) {
    const double both = tare__measure_local_db(measure_of(s), LOCAL_BOTH);
    const bool is_known = s->entry != NULL && s->entry->shown.has_qparams;
    return isnan(both) && is_known ? tare__measure_db(s->entry->signal, s->entry->noise) : both;
}

static double own_db(const subject *s) {
    const bool is_weight = s->entry != NULL && s->entry->shown.is_weight;
    const double own =
        tare__measure_local_db(measure_of(s), is_weight ? LOCAL_WEIGHTS : LOCAL_ACTIVATIONS);
    return isnan(own) ? both_db(s) : own;
}

// The model's loss due to this tensor: the layer's loss minus that of its other tensors.
static double cost_db(const subject *s) {
    const layer_measure *m = measure_of(s);
    const double both = both_db(s), alone = tare__measure_alone_db(m);
    const double whole = isnan(alone) ? both : alone;
    const double extra = s->entry != NULL ? own_db(s) - both : 0;
    return extra > 0 ? whole + extra : whole;
}

// A channel that is larger than all others hides what they lose; the model's outputs show it, if
// most of the layer's error comes from this tensor.
static bool hurts(const subject *s) {
    const double own = own_db(s);
    return own <= GOOD_DB ||
           (tare__measure_alone_db(measure_of(s)) <= GOOD_DB && own - both_db(s) < 3);
}

typedef struct words {
    const char *kind, *step;
    char *cause, *remedy;
    finding_family family;
    finding_note note;
    bool has_local_remedy;
    double stretch;
    int64_t channel;
} words;

// What computes the tensor; NULL for a weight.
static const node *value_of(const subject *s) {
    return s->entry != NULL && !s->entry->shown.is_weight
               ? tare__cause_value(s->list->probe, s->entry->node)
               : NULL;
}

static tare_status add(const subject *s, double db, const words *w) {
    finding_list *f = s->list;
    if (w->cause == NULL || w->remedy == NULL) return tare__out_of_memory(f->err);
    if (!tare__grow((void **)&f->items, &f->capacity, f->count, sizeof *f->items))
        return tare__out_of_memory(f->err);
    const tare_finding shown = {.struct_size = sizeof(tare_finding),
                                .kind = w->kind,
                                .layer = layer_of(s)->node->name,
                                .tensor = s->entry != NULL ? s->entry->node->name
                                                           : layer_of(s)->node->name,
                                .db = db,
                                .cause = w->cause,
                                .remedy = w->remedy,
                                .step = w->step};
    f->items[f->count++] = (noted_finding){
        .shown = shown,
        .at = layer_of(s)->node,
        .value = w->family == FAMILY_CHANNEL && s->entry->shown.is_weight ? layer_of(s)->node
                                                                          : value_of(s),
        .family = w->family,
        .note = w->note,
        .has_local_remedy = w->has_local_remedy,
        .stretch = fmax(w->stretch, 1),
        .channel = w->channel,
        .is_weight = s->entry != NULL && s->entry->shown.is_weight,
        .rank = db,
        .cause = NO_CAUSE};
    return TARE_OK;
}

#define SAY(...) tare__arena_printf(f->memory, __VA_ARGS__)

// "its input 'relu'", "the model's input 'x'", "its weight".
static const char *name_of(const subject *s) {
    finding_list *f = s->list;
    const tare_tensor_range *r = &s->entry->shown;
    const node *from = value_of(s);
    const char *name = "its weight";
    if (r->value[0] != '\0')
        name = SAY("its input '%s'", r->value);
    else if (from != NULL && from->op == NODE_PLACEHOLDER)
        name = SAY("the model's input '%s'", tare__input_name(from));
    else if (!r->is_weight)
        name = "an input of the model";
    return name != NULL ? name : "";
}

// What calibration saw of the model's input that the tensor is; NULL: it is none, or not known.
static const seen_input *seen_of(const subject *s) {
    const node *from = value_of(s);
    return from != NULL && from->op == NODE_PLACEHOLDER
               ? tare__seen_find(&s->list->probe->model->seen, tare__input_name(from))
               : NULL;
}

// Does it quantize the input as it is, rather than a part of it?
static bool is_whole_input(const subject *s) {
    const probe *p = s->list->probe;
    const node *n = tare__node_arg(s->entry->node, 0);
    while (n != NULL &&
           (p->facts[n->id].kind == PROBE_QUANTIZE || p->facts[n->id].kind == PROBE_DEQUANTIZE))
        n = tare__node_arg(n, 0);
    return n != NULL && n->op == NODE_PLACEHOLDER;
}

static bool is_model_input(const subject *s) {
    const node *from = value_of(s);
    return from != NULL && from->op == NODE_PLACEHOLDER;
}

// --- channels, samples and rows ---

static int by_size(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

typedef struct peaks {
    double median, largest;
    int64_t at,
        outlier_count; // at: index of the largest; outlier_count: above OUTLIER_RATIO medians
} peaks;

static tare_status find_peaks(finding_list *f, double *sizes, int64_t count, peaks *out) {
    double *sorted = tare__arena_array(f->memory, (size_t)count + 1, sizeof *sorted);
    if (sorted == NULL) return tare__out_of_memory(f->err);
    memcpy(sorted, sizes, (size_t)count * sizeof *sorted);
    qsort(sorted, (size_t)count, sizeof *sorted, by_size);
    *out = (peaks){.median = sorted[count / 2]};
    for (int64_t i = 0; i < count; i++) {
        if (sizes[i] > out->largest) {
            out->largest = sizes[i];
            out->at = i;
        }
        out->outlier_count += sizes[i] > OUTLIER_RATIO * out->median;
    }
    return TARE_OK;
}

static tare_status channel_peaks(const subject *s, peaks *out) {
    const range_entry *e = s->entry;
    const int64_t count = e->shown.channel_count;
    *out = (peaks){0};
    if (e->channel_low == NULL || count < 3) return TARE_OK;
    double *sizes = tare__arena_array(s->list->memory, (size_t)count, sizeof *sizes);
    if (sizes == NULL) return tare__out_of_memory(s->list->err);
    for (int64_t c = 0; c < count; c++) {
        const double low = fabs(e->channel_low[c]), high = fabs(e->channel_high[c]);
        sizes[c] = low > high ? low : high;
        if (!isfinite(sizes[c])) sizes[c] = 0;
    }
    return find_peaks(s->list, sizes, count, out);
}

static bool are_outliers(const peaks *p, int64_t count, double ratio) {
    return p->median > 0 && p->largest > ratio * p->median &&
           (double)p->outlier_count <= OUTLIER_SHARE * (double)count + 1;
}

// --- several tensors ---

static double width_of(const range_entry *e) {
    return fmax(fabs(e->shown.seen_low), fabs(e->shown.seen_high));
}

static double range_of(const range_entry *e) {
    return fmax(fabs(e->shown.low), fabs(e->shown.high));
}

static bool share_scale(const range_entry *a, const range_entry *b) {
    const tare_tensor_range *x = &a->shown, *y = &b->shown;
    return !x->is_weight && !y->is_weight && x->has_qparams && y->has_qparams &&
           x->scale == y->scale && x->zero_point == y->zero_point && x->quant_min == y->quant_min &&
           x->quant_max == y->quant_max && x->scale != 1;
}

// The tensor with the largest range among those with the same scale, if that is much larger.
static tare_status find_shared(const subject *s, bool *found) {
    finding_list *f = s->list;
    const range_entry *wide = NULL, *e = s->entry;
    if (own_db(s) > GOOD_DB || e->shown.seen_low > e->shown.seen_high) return TARE_OK;
    for (size_t i = 0; i < f->ranges->count; i++) {
        const range_entry *other = &f->ranges->items[i];
        if (share_scale(e, other) && width_of(other) > SHARED_RATIO * width_of(e) &&
            strcmp(other->shown.value, e->shown.value) != 0)
            wide = other;
    }
    if (wide == NULL) return TARE_OK;
    *found = true;
    words w = {.kind = "shared-observer", .step = "precision"};
    w.cause = SAY("%s reaches %.3g, but shares its scale with '%s', which reaches %.3g", name_of(s),
                  width_of(e), wide->shown.value[0] != '\0' ? wide->shown.value : wide->shown.node,
                  width_of(wide));
    w.remedy =
        SAY("give each its own observer (a quantizer that does not share over this operator), "
            "or leave '%s' float",
            layer_of(s)->float_node);
    return add(s, cost_db(s), &w);
}

// A concatenation of tensors of different ranges: its result has one scale for all of them.
static tare_status find_joined(const subject *s, bool *found) {
    finding_list *f = s->list;
    const node *n = own_db(s) > GOOD_DB ? NULL : value_of(s);
    const op_info *row =
        n != NULL && tare__node_is_call(n) ? tare__called_row(f->probe->model, n) : NULL;
    const range_entry *wide = NULL, *narrow = NULL;
    if (row == NULL || tare__op_id(row) != TARE_OP_CAT) return TARE_OK;
    for (size_t i = 0; i < f->ranges->count; i++) {
        const range_entry *e = &f->ranges->items[i];
        if (f->probe->layers[e->layer].node != n || !share_scale(e, s->entry)) continue;
        if (wide == NULL || width_of(e) > width_of(wide)) wide = e;
        if (narrow == NULL || width_of(e) < width_of(narrow)) narrow = e;
    }
    if (narrow == NULL || !(width_of(wide) > SHARED_RATIO * width_of(narrow))) return TARE_OK;
    *found = true;
    words w = {.kind = "shared-observer", .step = "precision"};
    w.cause =
        SAY("%s joins '%s', which reaches %.3g, and '%s', which reaches %.3g, under one "
            "scale",
            name_of(s), narrow->shown.value, width_of(narrow), wide->shown.value, width_of(wide));
    w.remedy = SAY("scale '%s' up, and its columns of the weight of '%s' down, before the model is "
                   "exported, or leave '%s' float",
                   narrow->shown.value, layer_of(s)->float_node, layer_of(s)->float_node);
    return add(s, cost_db(s), &w);
}

// --- detectors of activations ---

static tare_status find_mask(const subject *s) {
    finding_list *f = s->list;
    const tare_tensor_range *r = &s->entry->shown;
    const bool is_wide = r->has_qparams && (r->low < -MASK_MAGNITUDE || r->high > MASK_MAGNITUDE);
    if (r->masked_count == 0 && !is_wide) return TARE_OK;
    words w = {.kind = "quantized-mask", .step = "precision"};
    w.cause = is_wide ? SAY("%s is a mask of infinities or of %.2g: one step of its scale is %.2g, "
                            "which rounds all other values to 0",
                            name_of(s), r->low < -MASK_MAGNITUDE ? r->low : r->high, r->scale)
                      : SAY("%s is a mask: %.2g %% of its values are infinite or beyond 1e30",
                            name_of(s), 100 * (double)r->masked_count / (double)r->element_count);
    w.remedy = SAY("leave '%s' float, or export the model with a mask that is no lower than about "
                   "-100",
                   layer_of(s)->float_node);
    return add(s, cost_db(s), &w);
}

static bool is_uncalibrated(const finding_list *f) {
    const tare_model *m = f->probe->model;
    for (size_t i = 0; i < m->decisions.count; i++)
        if (strcmp(m->decisions.items[i].rule, "calibration") == 0 &&
            strcmp(m->decisions.items[i].decision, "warning") == 0)
            return true;
    return false;
}

// The range is that of the values, but no scale is so small.
static tare_status add_tiny_values(const subject *s) {
    finding_list *f = s->list;
    words w = {.kind = "resolution", .step = "precision"};
    w.cause = SAY("%s reaches %.3g at most, and the smallest scale, %.2g, has few levels for that",
                  name_of(s), width_of(s->entry), EPS);
    w.remedy = SAY("scale the layer in front up, and the weight of '%s' down, before the model is "
                   "exported, or leave '%s' float",
                   layer_of(s)->float_node, layer_of(s)->float_node);
    return add(s, cost_db(s), &w);
}

static tare_status find_uncalibrated(const subject *s, bool *found) {
    finding_list *f = s->list;
    const tare_tensor_range *r = &s->entry->shown;
    if (!r->has_qparams) return TARE_OK;
    words w = {.kind = "uncalibrated", .step = "", .family = FAMILY_UNSEEN};
    w.remedy = SAY("calibrate with data that reaches %s, or leave '%s' float", name_of(s),
                   layer_of(s)->float_node);
    if (r->scale == 1 && r->zero_point == 0 && is_uncalibrated(f)) {
        *found = true;
        w.cause = SAY("the observer of %s saw no data in calibration: its scale is 1", name_of(s));
        return add(s, cost_db(s), &w);
    }
    const double levels = (double)(r->quant_max - r->quant_min);
    const bool is_constant = r->scale <= LEAST_SCALE || r->high - r->low <= levels * LEAST_SCALE;
    if (!is_constant || r->seen_low >= r->seen_high) return TARE_OK;
    *found = true;
    if (r->seen_high - r->seen_low <= levels * LEAST_SCALE) return add_tiny_values(s);
    w.family = FAMILY_DATA;
    w.cause = SAY("calibration saw a single value of %s, but it ranges from %.3g to %.3g",
                  name_of(s), r->seen_low, r->seen_high);
    return add(s, cost_db(s), &w);
}

static tare_status find_constant(const subject *s) {
    finding_list *f = s->list;
    const tare_tensor_range *r = &s->entry->shown;
    if (r->element_count < 2 || r->seen_low < r->seen_high || r->masked_count > 0) return TARE_OK;
    words w = {.kind = "constant-input", .step = "", .note = NOTE_NETWORK};
    w.cause =
        SAY("%s is %.3g in all samples: its range is this single value, whatever it will be in use",
            name_of(s), r->seen_low);
    w.remedy = SAY("calibrate with data in which it changes, or remove it from the model");
    return add(s, INFINITY, &w);
}

// --- data of calibration that are unlike these ---

static double median_peak(const subject *s) {
    const range_entry *e = s->entry;
    double *sizes = tare__arena_array(s->list->memory, e->sample_count + 1, sizeof *sizes);
    peaks p = {.median = NAN};
    if (sizes == NULL) return NAN;
    for (size_t i = 0; i < e->sample_count; i++) sizes[i] = (double)e->sample_peaks[i];
    return find_peaks(s->list, sizes, (int64_t)e->sample_count, &p) == TARE_OK ? p.median : NAN;
}

static double cost_of_misfit(const subject *s) {
    return own_db(s) <= GOOD_DB ? cost_db(s) : INFINITY;
}

static tare_status find_one_value(const subject *s, const seen_input *seen, bool *found) {
    finding_list *f = s->list;
    const tare_tensor_range *r = &s->entry->shown;
    if (!tare__seen_one_value(seen) || !(r->seen_low < r->seen_high)) return TARE_OK;
    *found = true;
    words w = {.kind = "constant-input", .step = "", .family = FAMILY_DATA};
    w.cause = SAY("%s was %.3g in all %zu samples that calibrated; here it ranges from %.3g to "
                  "%.3g",
                  name_of(s), seen->low, seen->count, r->seen_low, r->seen_high);
    w.remedy = SAY("calibrate with data in which it changes as in use");
    return add(s, cost_of_misfit(s), &w);
}

static tare_status find_one_sample(const subject *s, const seen_input *seen) {
    finding_list *f = s->list;
    if (!tare__seen_one_sample(&f->probe->model->seen)) return TARE_OK;
    words w = {.kind = "constant-input", .step = "", .family = FAMILY_DATA};
    w.cause =
        SAY("the %zu samples that calibrated %s are equal: the ranges of all layers are those "
            "of this sample",
            seen->count, name_of(s));
    w.remedy = SAY("calibrate with different samples");
    return add(s, cost_of_misfit(s), &w);
}

// The median sample is far larger or smaller than that of calibration, and than any of it.
static tare_status find_mismatch(const subject *s, const seen_input *seen, bool *found) {
    finding_list *f = s->list;
    double then = 0;
    if (own_db(s) > GOOD_DB || !is_whole_input(s) || s->entry->sample_count < LEAST_SAMPLES ||
        seen->count < LEAST_SAMPLES)
        return TARE_OK;
    const double now = median_peak(s);
    TARE_TRY(tare__seen_median(seen, &then, f->err));
    const double ratio = then > now ? then / now : now / then;
    if (!(now > 0) || !(then > 0) || ratio < MISMATCH_RATIO || tare__seen_spans(seen, now))
        return TARE_OK;
    *found = true;
    words w = {.kind = "data-mismatch", .step = "", .family = FAMILY_DATA};
    w.cause = SAY("%s reaches %.3g in the median sample, and %.3g in that of calibration: they are "
                  "not scaled alike",
                  name_of(s), now, then);
    w.remedy = SAY("prepare the data of calibration and these alike (scale, mean, deviation)");
    return add(s, cost_db(s), &w);
}

static tare_status find_foreign_data(const subject *s, bool *found) {
    const seen_input *seen = seen_of(s);
    if (seen == NULL || !s->entry->shown.has_qparams) return TARE_OK;
    TARE_TRY(find_one_value(s, seen, found));
    if (!*found) TARE_TRY(find_one_sample(s, seen));
    return *found || tare__seen_one_sample(&s->list->probe->model->seen)
               ? TARE_OK
               : find_mismatch(s, seen, found);
}

static bool fixes_scale(const subject *s, const node *n) {
    const op_info *row = n != NULL ? tare__called_row(s->list->probe->model, n) : NULL;
    return row != NULL && row->fixed_scale != 0 &&
           (double)row->fixed_scale == s->entry->shown.scale;
}

// The operator whose row fixes the tensor's scale: it returns the tensor, or reads it (torch
// observes the input of sigmoid with the range of its result). NULL: none.
static const node *find_fixing(const subject *s) {
    const node *n = value_of(s);
    if (fixes_scale(s, n)) return n;
    return fixes_scale(s, layer_of(s)->node) ? layer_of(s)->node : NULL;
}

static tare_status find_fixed_range(const subject *s, bool *found) {
    finding_list *f = s->list;
    const range_entry *e = s->entry;
    const double seen = width_of(e), range = range_of(e);
    const bool is_wide = e->shown.has_qparams && e->shown.seen_low <= e->shown.seen_high &&
                         range > FIXED_RATIO * seen && own_db(s) < GOOD_DB;
    const node *fixing = is_wide ? find_fixing(s) : NULL;
    if (fixing == NULL) return TARE_OK;
    *found = true;
    words w = {.kind = "fixed-range", .step = "precision"};
    w.cause = SAY("'%s' fixes the range of %s at %.3g to %.3g, but it reaches %.3g at most",
                  fixing->name, name_of(s), e->shown.low, e->shown.high, seen);
    w.remedy = SAY("leave '%s' float (tare's own mapping does where only the model's output reads "
                   "its result)",
                   fixing->name);
    return add(s, cost_db(s), &w);
}

static tare_status find_outlier_sample(const subject *s, bool *found) {
    finding_list *f = s->list;
    const range_entry *e = s->entry;
    const tare_tensor_range *r = &e->shown;
    const double seen = width_of(e), range = range_of(e);
    if (!r->has_qparams || e->sample_count < LEAST_SAMPLES) return TARE_OK;
    double *sizes = tare__arena_array(f->memory, e->sample_count, sizeof *sizes);
    peaks p;
    if (sizes == NULL) return tare__out_of_memory(f->err);
    for (size_t i = 0; i < e->sample_count; i++) sizes[i] = (double)e->sample_peaks[i];
    TARE_TRY(find_peaks(f, sizes, (int64_t)e->sample_count, &p));
    words w = {.kind = "outlier-sample", .step = "observers"};
    const bool is_here = are_outliers(&p, (int64_t)e->sample_count, OUTLIER_RATIO) &&
                         range > OUTLIER_RATIO / 2 * p.median;
    if (is_here)
        w.cause = SAY("in sample %" PRId64
                      " %s reaches %.3g, in the median one %.3g: one sample determines the range",
                      p.at, name_of(s), p.largest, p.median);
    else if (own_db(s) < GOOD_DB && range > OUTLIER_RATIO * seen && seen > 0 &&
             range < MASK_MAGNITUDE && r->scale != 1)
        w.cause =
            SAY("the range of %s goes to %.3g, but these samples reach %.3g at most: a sample "
                "of calibration was an outlier",
                name_of(s), range, seen);
    else
        return TARE_OK;
    *found = true;
    w.remedy = SAY("take the sample out of the calibration data, or use an observer that clips "
                   "outliers (percentile, entropy)");
    // The sample dominates the signal; relative to the median sample, the noise is larger by this
    // much.
    w.family = is_here ? FAMILY_SAMPLE : FAMILY_WIDE;
    w.stretch = is_here ? p.largest / p.median : range / seen;
    const double excess = is_here ? 20 * log10(p.largest / p.median) : 0;
    return add(s, cost_db(s) - excess, &w);
}

// The range comes from the largest channel: it neither leaves it out nor reaches far beyond it.
static bool sets_range(const range_entry *e, double largest) {
    const double range = range_of(e);
    return !e->shown.has_qparams ||
           (range <= OUTLIER_RATIO / 2 * largest && largest <= OUTLIER_RATIO / 2 * range);
}

// Few values of a channel may be equal by chance, or because there is one of each.
static bool is_constant_channel(const range_entry *e, int64_t channel) {
    const int64_t count = e->shown.channel_count;
    bool others_vary = false;
    if (e->channel_low[channel] != e->channel_high[channel]) return false;
    for (int64_t c = 0; c < count; c++) others_vary |= e->channel_low[c] < e->channel_high[c];
    return others_vary && e->sample_count >= LEAST_SAMPLES &&
           e->shown.element_count / CONSTANT_VALUES >= count;
}

static tare_status add_constant_channel(const subject *s, const peaks *p) {
    finding_list *f = s->list;
    words w = {.kind = "dead-channels", .step = "precision"};
    w.cause =
        SAY("channel %" PRId64 " of %s is %.3g in all samples, and the median channel reaches "
            "%.3g: the range of all comes from a constant",
            p->at, name_of(s), s->entry->channel_low[p->at], p->median);
    w.remedy = SAY("remove the channel, and add its share to the bias of '%s', before the model is "
                   "exported, or leave '%s' float",
                   layer_of(s)->float_node, layer_of(s)->float_node);
    return add(s, cost_db(s), &w);
}

static tare_status find_outlier_channel(const subject *s, bool *found) {
    finding_list *f = s->list;
    const range_entry *e = s->entry;
    const tare_tensor_range *r = &e->shown;
    peaks p;
    TARE_TRY(channel_peaks(s, &p));
    if (!are_outliers(&p, r->channel_count, OUTLIER_RATIO) || !sets_range(e, p.largest) ||
        !hurts(s))
        return TARE_OK;
    *found = true;
    if (is_constant_channel(e, p.at)) return add_constant_channel(s, &p);
    words w = {.kind = "outlier-channel",
               .step = "precision",
               .family = FAMILY_CHANNEL,
               .stretch = p.largest / p.median,
               .channel = p.at};
    w.cause = SAY("channel %" PRId64 " of %s reaches %.3g, the median channel %.3g (%" PRId64
                  " of %" PRId64 " are outliers): one scale serves both",
                  p.at, name_of(s), p.largest, p.median, p.outlier_count, r->channel_count);
    w.remedy =
        SAY("scale the channel down in the layer before and up in the weight of '%s', before "
            "the model is exported (SmoothQuant, cross-layer equalization), or leave '%s' float",
            layer_of(s)->float_node, layer_of(s)->float_node);
    return add(s, cost_db(s), &w);
}

static tare_status find_dead_channels(const subject *s) {
    finding_list *f = s->list;
    const range_entry *e = s->entry;
    int64_t dead = 0;
    for (int64_t c = 0; e->channel_low != NULL && c < e->shown.channel_count; c++)
        dead += e->channel_low[c] == e->channel_high[c];
    if (dead == 0 || dead == e->shown.channel_count || e->shown.element_count < 16) return TARE_OK;
    words w = {.kind = "dead-channels", .step = "", .note = NOTE_NETWORK};
    w.cause = SAY("%" PRId64 " of %" PRId64 " channels of %s never change", dead,
                  e->shown.channel_count, name_of(s));
    w.remedy = SAY("remove these channels from the network, or train it further: they cost time "
                   "and have no effect");
    return add(s, INFINITY, &w);
}

// Did calibration see values about as large as these? Then they are not of another scale.
static bool is_reached(const subject *s) {
    const seen_input *seen = seen_of(s);
    const tare_tensor_range *r = &s->entry->shown;
    const double slack = REACHED_SHARE * (r->seen_high - r->seen_low);
    return seen != NULL && seen->low <= r->seen_low + slack && seen->high >= r->seen_high - slack;
}

static tare_status find_saturation(const subject *s) {
    finding_list *f = s->list;
    const tare_tensor_range *r = &s->entry->shown;
    const double share =
        r->element_count > 0 ? (double)r->saturated_count / (double)r->element_count : 0;
    if (share < SATURATED_SHARE || own_db(s) > GOOD_DB) return TARE_OK;
    if (r->scale <= LEAST_SCALE || (r->scale == 1 && is_uncalibrated(f)))
        return TARE_OK; // reported by another detector
    const bool is_foreign = is_model_input(s) && share > FOREIGN_SHARE && !is_reached(s);
    words w = {.kind = "saturation",
               .step = is_foreign ? "" : "observers",
               .family = is_foreign ? FAMILY_DATA : FAMILY_NARROW,
               .stretch = width_of(s->entry) / range_of(s->entry)};
    w.cause = SAY("%.2g %% of %s lie beyond its range of %.3g to %.3g; it reaches %.3g to %.3g",
                  100 * share, name_of(s), r->low, r->high, r->seen_low, r->seen_high);
    w.remedy = is_foreign
                   ? SAY("calibrate with samples like these, and prepare both alike (scale, mean, "
                         "deviation)")
                   : SAY("calibrate with more, or more typical, samples, or with an observer that "
                         "keeps the whole range (MinMaxObserver)");
    return add(s, cost_db(s), &w);
}

// The weight of an embedding whose result is quantized.
static const tare_tensor *table_behind(const subject *s) {
    const tare_model *model = s->list->probe->model;
    const node *n = tare__node_arg(s->entry->node, 0);
    if (n == NULL || !tare__node_is_call(n)) return NULL;
    const module *m = tare__called_module(model, n);
    const op_id id = m != NULL ? tare__class_op(m->class) : tare__node_op(n);
    if (id != TARE_OP_EMBEDDING) return NULL;
    if (m != NULL) return tare__module_tensor(m, "weight");
    for (size_t i = 0; i < n->input_count; i++)
        if (n->inputs[i]->op == NODE_GET_ATTR)
            return tare__module_find_tensor(model->root, n->inputs[i]->target);
    return NULL;
}

static tare_status find_token(const subject *s, bool *found) {
    finding_list *f = s->list;
    const tare_tensor *table = table_behind(s);
    peaks p;
    if (table == NULL || table->ndim != 2 || table->dtype != TARE_FLOAT32 || table->data == NULL ||
        table->shape[0] < 3 || own_db(s) > GOOD_DB)
        return TARE_OK;
    double *sizes = tare__arena_array(f->memory, (size_t)table->shape[0], sizeof *sizes);
    if (sizes == NULL) return tare__out_of_memory(f->err);
    for (int64_t i = 0; i < table->count; i++) {
        double *row = &sizes[i / table->shape[1]];
        const double v = fabs((double)tare__f32(table)[i]);
        if (i % table->shape[1] == 0 || v > *row) *row = v;
    }
    TARE_TRY(find_peaks(f, sizes, table->shape[0], &p));
    if (!are_outliers(&p, table->shape[0], 4)) return TARE_OK;
    *found = true;
    words w = {.kind = "embedding-token",
               .step = "precision",
               .family = FAMILY_DATA,
               .has_local_remedy = true};
    w.cause = SAY("the range of %s comes from token %" PRId64 ", which reaches %.3g; the median "
                  "token reaches %.3g",
                  name_of(s), p.at, p.largest, p.median);
    w.remedy =
        SAY("leave '%s' float, or clip the range (percentile observer)", layer_of(s)->float_node);
    return add(s, cost_db(s), &w);
}

static tare_status find_sensitive(const subject *s) {
    finding_list *f = s->list;
    const node *n = layer_of(s)->node;
    const module *m = tare__called_module(f->probe->model, n);
    const op_info *op = m != NULL ? tare__class_row(m->class) : tare__node_row(n);
    if (!tare__op_has(op, OP_NORMALIZES) && !tare__op_has(op, OP_AMPLIFIES)) return TARE_OK;
    if (s->entry->shown.is_weight || own_db(s) > GOOD_DB) return TARE_OK;
    words w = {.kind = "sensitive-input", .step = "precision"};
    w.cause = SAY("'%s' (%s) amplifies the rounding errors of %s", layer_of(s)->float_node,
                  layer_of(s)->op, name_of(s));
    w.remedy = SAY("leave '%s' float", layer_of(s)->float_node);
    return add(s, cost_db(s), &w);
}

// --- detectors of weights ---

static tare_status find_zero_weight(const subject *s, bool *found) {
    finding_list *f = s->list;
    const tare_tensor_range *r = &s->entry->shown;
    if (r->element_count == 0 || r->seen_low != 0 || r->seen_high != 0) return TARE_OK;
    *found = true;
    words w = {.kind = "dead-channels", .step = "", .note = NOTE_NETWORK};
    w.cause = SAY("its weight is 0 throughout: '%s' gives its bias alone, whatever it reads",
                  layer_of(s)->float_node);
    w.remedy = SAY("look for it in training or export; if it is meant, remove the layer");
    return add(s, INFINITY, &w);
}

static tare_status find_tiny_weight(const subject *s, bool *found) {
    finding_list *f = s->list;
    const range_entry *e = s->entry;
    const double peak = fmax(fabs(e->shown.seen_low), fabs(e->shown.seen_high));
    int64_t lost = 0;
    for (int64_t c = 0; e->channel_signal != NULL && c < e->shown.channel_count; c++) {
        const double size = fmax(fabs(e->channel_low[c]), fabs(e->channel_high[c]));
        lost += size < 128 * LEAST_SCALE && e->channel_signal[c] > 0 &&
                e->channel_noise[c] > LOST_SHARE * e->channel_signal[c];
    }
    if (lost == 0 || (peak >= 128 * LEAST_SCALE && lost * 4 < e->shown.channel_count))
        return TARE_OK;
    *found = true;
    words w = {.kind = "tiny-weight-scale", .step = "precision"};
    w.cause = SAY("%" PRId64 " of %" PRId64 " channels of its weight are so small (%.2g at most) "
                  "that the smallest scale, %.2g, rounds them to 0",
                  lost, e->shown.channel_count, peak, EPS);
    w.remedy = SAY("scale the weight up and the next layer down before the model is exported, or "
                   "leave '%s' float",
                   layer_of(s)->float_node);
    return add(s, cost_db(s), &w);
}

static double median_channel_db(const subject *s) {
    const range_entry *e = s->entry;
    const size_t count = (size_t)e->shown.channel_count;
    double *db = tare__arena_array(s->list->memory, count + 1, sizeof *db);
    if (db == NULL || e->channel_signal == NULL || count == 0) return INFINITY;
    for (size_t c = 0; c < count; c++) {
        db[c] = tare__measure_db(e->channel_signal[c], e->channel_noise[c]);
        if (isnan(db[c])) db[c] = INFINITY;
    }
    qsort(db, count, sizeof *db, by_size);
    return db[count / 2];
}

static tare_status find_weight_channel(const subject *s, bool *found) {
    finding_list *f = s->list;
    peaks p;
    TARE_TRY(channel_peaks(s, &p));
    if (!are_outliers(&p, s->entry->shown.channel_count, WEIGHT_RATIO) ||
        median_channel_db(s) > GOOD_DB)
        return TARE_OK;
    *found = true;
    words w = {.kind = "outlier-weight-channel",
               .step = "per-channel",
               .family = FAMILY_CHANNEL,
               .stretch = p.largest / p.median,
               .channel = p.at};
    w.cause = SAY("channel %" PRId64 " of its weight reaches %.3g, %.0f times the median channel: "
                  "with one scale for all, the others have few levels left",
                  p.at, p.largest, p.largest / p.median);
    w.remedy = SAY(
        "quantize the weight per channel, or scale the channel down before the model is exported");
    return add(s, cost_db(s), &w);
}

// A cheap test that is never false if a bias overflows: no weight's scale is less than 1/4096 of a
// channel's peak, unless the peak is tiny.
static bool may_overflow(const finding_list *f, size_t layer) {
    const range_entry *read = NULL, *weight = NULL;
    biased_layer l;
    tare__layer_find(f->probe->model, (node *)f->probe->layers[layer].node,
                     &l); // NOLINT: only read
    if (l.node == NULL) return false;
    const tare_tensor *bias = tare__layer_bias(f->probe->model, &l);
    if (bias == NULL && l.bias == NULL) return false;
    for (size_t i = 0; i < f->ranges->count; i++) {
        const range_entry *e = &f->ranges->items[i];
        if (e->layer == layer) *(e->shown.is_weight ? &weight : &read) = e;
    }
    // A brief analysis had no time for it.
    if (f->ranges->is_brief && weight != NULL && weight->shown.element_count == 0) return false;
    const bool is_known = bias != NULL && bias->dtype == TARE_FLOAT32 && read != NULL &&
                          read->shown.has_qparams && weight != NULL &&
                          weight->shown.channel_count == bias->count;
    for (int64_t c = 0; is_known && c < bias->count; c++) {
        const double peak = fmax(fabs(weight->channel_low[c]), fabs(weight->channel_high[c]));
        const double least = fmax(peak / 4096, LEAST_SCALE / 16) * read->shown.scale * 0x1p31;
        if (!(fabs((double)tare__f32(bias)[c]) < least)) return true;
    }
    return !is_known;
}

static tare_status find_bias_overflow(finding_list *f, size_t layer) {
    const subject s = {.list = f, .layer = layer};
    const tare_integer_layer *integers = NULL;
    if (layer_of(&s)->is_last || !may_overflow(f, layer)) return TARE_OK;
    const tare_status status = tare_integer_layer_create(
        f->probe->model, (const tare_node *)layer_of(&s)->node, &integers, NULL);
    if (status != TARE_OK) return status == TARE_OUT_OF_MEMORY ? status : TARE_OK;
    const int64_t count = integers->saturated_bias_count, all = integers->channel_count;
    tare_integer_layer_destroy(integers);
    if (count == 0) return TARE_OK;
    words w = {.kind = "bias-overflow", .step = "precision", .note = NOTE_HARMLESS};
    w.cause = SAY("the bias of %" PRId64 " of %" PRId64 " channels does not fit into 32 bits: the "
                  "scales of its input and weight are too small for it",
                  count, all);
    w.remedy =
        SAY("scale the layer's input or weight up, or leave '%s' float", layer_of(&s)->float_node);
    const double cost = cost_db(&s);
    return add(&s, cost <= GOOD_DB ? cost : INFINITY, &w);
}

// --- the rest ---

static bool is_costly(const noted_finding *n) {
    return isfinite(n->shown.db) && !(n->family == FAMILY_CHANNEL && n->shown.db > GOOD_DB);
}

static bool has_finding(const finding_list *f, const char *layer) {
    for (size_t i = 0; i < f->count; i++)
        if (strcmp(f->items[i].shown.layer, layer) == 0 && is_costly(&f->items[i])) return true;
    return false;
}

// Does the layer read a tensor with a finding, which names another layer that reads it?
static bool reads_found(const finding_list *f, const node *layer) {
    const probe *p = f->probe;
    for (size_t i = 0; i < layer->input_count; i++) {
        const node *n = layer->inputs[i];
        while (n != NULL && p->facts[n->id].kind == PROBE_DEQUANTIZE) n = tare__node_arg(n, 0);
        for (size_t k = 0; n != NULL && k < f->count; k++)
            if (strcmp(f->items[k].shown.tensor, n->name) == 0 && is_costly(&f->items[k]))
                return true;
    }
    return false;
}

// For a layer with a large loss that no detector explains: is it due to the weight or the input?
static tare_status find_coarse(finding_list *f, size_t layer) {
    const subject s = {.list = f, .layer = layer};
    const layer_measure *m = measure_of(&s);
    const double both = tare__measure_local_db(m, LOCAL_BOTH);
    const double weights = tare__measure_local_db(m, LOCAL_WEIGHTS),
                 reads = tare__measure_local_db(m, LOCAL_ACTIVATIONS);
    if (!(both < GOOD_DB) || has_finding(f, layer_of(&s)->node->name)) return TARE_OK;
    const bool is_weight = weights < reads;
    if (!is_weight && reads_found(f, layer_of(&s)->node)) return TARE_OK;
    words w = {.kind = "resolution", .step = is_weight ? "per-channel" : "precision"};
    if (isnan(weights) && isnan(reads))
        w.cause = SAY("its input, or its weight, has too few levels");
    else
        w.cause = SAY("%s too few levels: %.1f dB with that alone quantized",
                      is_weight ? "its weight has" : "its input has", is_weight ? weights : reads);
    w.remedy = is_weight
                   ? SAY("quantize the weight per channel, or give it more bits")
                   : SAY("leave '%s' float, give its input more bits, or try another observer",
                         layer_of(&s)->float_node);
    return add(&s, cost_db(&s), &w);
}

static tare_status look_at_activation(const subject *s) {
    bool found = false;
    TARE_TRY(find_mask(s));
    if (s->entry->shown.masked_count > 0) return TARE_OK;
    TARE_TRY(find_uncalibrated(s, &found));
    TARE_TRY(find_constant(s));
    if (!found) TARE_TRY(find_foreign_data(s, &found));
    if (found) return TARE_OK; // what else its range does not fit follows from it
    TARE_TRY(find_shared(s, &found));
    if (!found) TARE_TRY(find_joined(s, &found));
    if (!found) TARE_TRY(find_fixed_range(s, &found));
    if (!found) TARE_TRY(find_token(s, &found));
    if (!found) TARE_TRY(find_outlier_sample(s, &found));
    if (!found) TARE_TRY(find_outlier_channel(s, &found));
    TARE_TRY(find_dead_channels(s));
    TARE_TRY(find_saturation(s));
    return find_sensitive(s);
}

static tare_status look_at_weight(const subject *s) {
    bool found = false;
    TARE_TRY(find_zero_weight(s, &found));
    if (!found) TARE_TRY(find_tiny_weight(s, &found));
    return found ? TARE_OK : find_weight_channel(s, &found);
}

// No layer loses much by itself, but there are many.
static tare_status find_accumulation(finding_list *f) {
    size_t worst = 0;
    double least = INFINITY;
    for (size_t i = 0; i < f->count; i++)
        if (f->items[i].shown.db <= GOOD_DB) return TARE_OK;
    if (f->probe->layer_count < 2) return TARE_OK;
    for (size_t i = 0; i < f->probe->layer_count; i++) {
        if (!f->measures[i].is_alone_measured) return TARE_OK;
        const double db = tare__measure_alone_db(&f->measures[i]);
        if (!(db < least)) continue;
        least = db;
        worst = i;
    }
    if (!(f->verdict_db < GOOD_DB) || !(least > GOOD_DB) || isinf(least)) return TARE_OK;
    const subject s = {.list = f, .layer = worst};
    words w = {.kind = "accumulation", .step = "precision"};
    w.cause = SAY("no layer loses much: '%s' alone, the worst, leaves %.1f dB; the errors of %zu "
                  "layers add up to %.1f dB",
                  layer_of(&s)->float_node, least, f->probe->layer_count, f->verdict_db);
    w.remedy = SAY("leave the worst layers float");
    return add(&s, f->verdict_db, &w);
}

tare_status tare__findings_collect(finding_list *f) {
    for (size_t i = 0; i < f->ranges->count; i++) {
        const range_entry *e = &f->ranges->items[i];
        const subject s = {.list = f, .entry = e, .layer = e->layer};
        TARE_TRY(e->shown.is_weight ? look_at_weight(&s) : look_at_activation(&s));
    }
    for (size_t i = 0; i < f->probe->layer_count; i++) TARE_TRY(find_bias_overflow(f, i));
    for (size_t i = 0; i < f->probe->layer_count; i++) TARE_TRY(find_coarse(f, i));
    TARE_TRY(find_accumulation(f));
    return tare__causes_sort(f);
}
