// SPDX-License-Identifier: Apache-2.0
// What options require and exclude: the terms of these lists, and their spelling in messages.
#ifndef CLI_RULES_H
#define CLI_RULES_H

#include "options/command.h"

enum { SPELLING_SIZE = 64, SPELLINGS_SIZE = 256 };

/// One term of option.requires or option.excludes: an option, with a value if one is named.
typedef struct rule_term {
    const option *option;
    const char *value; // not terminated; NULL: any value
    size_t value_length;
} rule_term;

/// Takes the first term of *list and advances *list. Returns false at the end and for NULL.
bool rule_next(const command *c, const char **list, rule_term *out);
/// Whether two options exclude each other whatever their values are.
bool options_exclude(const command *c, const option *a, const option *b);
/// The only option that `o` requires, whatever its value is; NULL: there is none or a choice.
const option *required_option(const command *c, const option *o);

/// "--name"; -o is written short, as compilers have it.
const char *spell_option(const option *o, char out[SPELLING_SIZE]);
/// "--stop lower".
const char *spell_term(const rule_term *term, char out[SPELLING_SIZE]);
/// "--calibrate, --state or --stop lower".
const char *spell_terms(const command *c, const char *list, char out[SPELLINGS_SIZE]);
/// The same for what `o` excludes, and for the options that exclude it.
const char *spell_excluded(const command *c, const option *o, char out[SPELLINGS_SIZE]);
/// "fuse, prepare or lower".
const char *spell_names(names_at at, const void *user, char out[SPELLINGS_SIZE]);

/// Prints the first rule that the options in `values` break, and returns false. is_given: by their
/// index.
bool check_rules(const command *c, const void *values, const bool *is_given);
/// Whether a given option excuses a required one.
bool is_excused(const command *c, const option *required, const bool *is_given);

#endif
