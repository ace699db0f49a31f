// SPDX-License-Identifier: Apache-2.0
// Any bytes as generated code. What is accepted must print, and its text must be accepted again.
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "core/text/text.h"
#include "ops/text/print.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool holds) {
    if (!holds) abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    graph *g = NULL, *again = NULL;
    tare_error *err = tare_error_create();
    if (tare__parse_code((const char *)data, size, NULL, &g, err) == TARE_OK) {
        text first = {0}, second = {0};
        require(tare__print_code(g, &first, NULL) == TARE_OK);
        require(tare__parse_code(first.chars, first.length, NULL, &again, NULL) == TARE_OK);
        require(tare__print_code(again, &second, NULL) == TARE_OK);
        require(strcmp(tare__text_chars(&first), tare__text_chars(&second)) == 0);
        require(tare__print_graph(g, &second, NULL) == TARE_OK);
        tare__text_release(&first);
        tare__text_release(&second);
        tare__graph_destroy(again);
        tare__graph_destroy(g);
    } else {
        require(tare_error_message(err)[0] != '\0');
    }
    tare_error_destroy(err);
    return 0;
}
