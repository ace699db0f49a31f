// SPDX-License-Identifier: Apache-2.0
// Rules between options: which other options an option requires or excludes. Parses and checks the
// rules, and spells them for messages.
#ifndef CLI_RULES_H
#define CLI_RULES_H

#include "options/command.h"

enum { SPELLING_SIZE = 64, SPELLINGS_SIZE = 256 };

/// A term of option.requires or option.excludes: an option, possibly with a value.
typedef struct rule_term {
    const option *option;
    const char *value; // not terminated; NULL: any value
    size_t value_length;
} rule_term;

/// Reads the first term of *list and advances *list. Returns false at the end and for NULL.
bool rule_next(const command *c, const char **list, rule_term *out);
/// True if two options exclude each other for all values.
bool options_exclude(const command *c, const option *a, const option *b);
/// The option that `o` requires for all values; NULL: there is none, or a choice.
const option *required_option(const command *c, const option *o);

/// "--name", or "-o" for the option with this letter, as compilers spell it.
const char *spell_option(const option *o, char out[SPELLING_SIZE]);
/// "--stop lower".
const char *spell_term(const rule_term *term, char out[SPELLING_SIZE]);
/// "--calibrate, --state or --stop lower".
const char *spell_terms(const command *c, const char *list, char out[SPELLINGS_SIZE]);
/// The same for the options that `o` excludes or that exclude it.
const char *spell_excluded(const command *c, const option *o, char out[SPELLINGS_SIZE]);
/// "fuse, prepare or lower".
const char *spell_names(names_at at, const void *user, char out[SPELLINGS_SIZE]);

/// Prints the first violated rule and returns false. is_given: by the options' index.
bool check_rules(const command *c, const void *values, const bool *is_given);
/// True if a given option makes a required one unnecessary.
bool is_excused(const command *c, const option *required, const bool *is_given);

#endif
