// SPDX-License-Identifier: Apache-2.0
// Inserts observers into the graph. The mode chooses the observer of each input and output; this
// file names it, binds it to the root and adds the call.
#ifndef FLOW_INSERT_H
#define FLOW_INSERT_H

#include "model/pass.h"

/// The observer of a value: one that edges share, or a new one made from a spec (unless the value
/// already has one of its class and dtype). Both NULL: none.
typedef struct observer_wish {
    module *observer; // lent
    const tare_observer_spec *spec;
    tare_dtype dtype; // of observers made from the spec
} observer_wish;

/// A walk over the nodes of a graph, and the callbacks by which the mode decides.
typedef struct insertion {
    pass *p;
    void *user;
    /// Called for each node that existed before the walk; calls the two functions below.
    tare_status (*visit)(struct insertion *in, node *n);
    /// Chooses the observer for input `arg` of n, which may be an observer. is_first: it is the
    /// first argument itself.
    tare_status (*choose)(struct insertion *in, const node *n, node *arg, bool is_first,
                          observer_wish *out);
    /// Tells which observer was chosen, and whether it observed `arg` before. May be NULL.
    tare_status (*tell)(struct insertion *in, const node *n, const node *arg,
                        const observer_wish *wish, bool is_new);
    size_t next_number; // N of activation_post_process_N: torch takes the least free number
} insertion;

/// Visits every node; nodes inserted meanwhile are not visited.
tare_status tare__insert_observers(insertion *in);
/// Observes the inputs of n, also those in lists and keyword arguments.
tare_status tare__observe_inputs(insertion *in, node *n);
/// Observes the result of n; all its users read the observer from then on.
tare_status tare__observe_output(insertion *in, node *n, const observer_wish *wish);
/// Uses up a number, as torch does when it inserts an observer and removes it again.
tare_status tare__spend_observer_number(insertion *in);

/// Inserts an observer right after `watched`, under the name {prefix}{N} with the least free N from
/// *number on.
tare_status tare__insert_observer(pass *p, const observer_wish *wish, const char *prefix,
                                  size_t *number, node *watched, node **out);
/// Binds a module to the root under such a name, and calls it with `arg` before a node (NULL: at
/// the end).
tare_status tare__call_new_module(pass *p, module *m, const char *prefix, size_t *number, node *arg,
                                  node *before, node **out);

#endif
