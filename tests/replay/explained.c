// SPDX-License-Identifier: Apache-2.0
// Looks in each sentence of explain for a missing reason, another rule's note and a contradiction.
#include "replay/explained.h"

#include <string.h>

#include "model/coverage.h"

typedef struct headline {
    const char *name;
    const char *reason; // from ": left float: " or ": quantized: " on
    bool is_float;
} headline;

static bool holds_one(const char *reason, const char *const *list) {
    while (*list != NULL && strstr(reason, *list) == NULL) list++;
    return *list != NULL;
}

// What a headline must not say: nothing, another rule's note, or the opposite of what was computed.
static const char *find_fault(const headline *h) {
    static const char *const empty[] = {
        "no decision",           "no pass has", "tare has no integer form",
        "replaced it by others", ": )",         NULL};
    static const char *const notes[] = {"scales raised", "is folded into its weight", "mean error",
                                        "taken off", NULL};
    static const char *const integer[] = {"computed in integers", "computed on quantized",
                                          "looked up as integers", NULL};
    static const char *const real[] = {"has no pattern", "no rule of", "asks for no quantization",
                                       "stays float", NULL};
    char itself[320];
    (void)snprintf(itself, sizeof itself, "at '%s'", h->name);
    if (h->reason[0] == '\0' || strcmp(h->reason, "fused") == 0 || holds_one(h->reason, empty))
        return "gives no reason";
    if (strncmp(h->reason, "fused into ", 11) == 0 && strstr(h->reason, itself) != NULL)
        return "is fused into itself";
    if (holds_one(h->reason, notes)) return "gives the note of another rule";
    if (holds_one(h->reason, h->is_float ? integer : real)) return "contradicts itself";
    return NULL;
}

static void look_at(char *line, const traced_op *op, findings *out) {
    static const char left_float[] = ": left float: ", quantized[] = ": quantized: ";
    char *at = strstr(line, left_float);
    const bool is_float = at != NULL;
    if (at == NULL) at = strstr(line, quantized);
    if (at == NULL) return;
    const headline h = {op->name, at + strlen(is_float ? left_float : quantized), is_float};
    const char *fault = find_fault(&h);
    if (fault != NULL) findings_add(out, FINDING_STRUCTURE, "explain: '%s' %s", line, fault);
}

tare_status compare_explained(const tare_model *converted, findings *out, tare_error *err) {
    text said = {0};
    tare_status status = tare_model_explain(converted, NULL, tare__text_append_writer, &said, err);
    if (said.failed)
        status = TARE_OUT_OF_MEMORY; // no fault of writing, as tare_model_explain sees it
    char *line = status == TARE_OK ? tare__text_take(&said) : NULL, *whole = line;
    for (size_t i = 0; i < converted->op_count && line != NULL; i++) {
        char *end = strchr(line, '\n');
        if (end == NULL) break;
        *end = '\0';
        look_at(line, &converted->ops[i], out);
        line = end + 1;
    }
    tare_string_free(whole);
    tare__text_release(&said);
    return status;
}
