// SPDX-License-Identifier: Apache-2.0
// Observers into the graph. A mode decides what watches each input and output; here they are named,
// bound to the root and called.
#ifndef FLOW_INSERT_H
#define FLOW_INSERT_H

#include "model/pass.h"

/// What watches a value: an observer that edges share, or a new one of a spec, unless one of its
/// class and dtype watches the value already. Neither: nothing does.
typedef struct observer_wish {
    module *observer; // lent
    const tare_observer_spec *spec;
    tare_dtype dtype; // of the spec's observers
} observer_wish;

/// One walk over the nodes of a graph, and how a mode decides.
typedef struct insertion {
    pass *p;
    void *user;
    /// Looks at one node that stood before the walk, and calls the two functions below for it.
    tare_status (*visit)(struct insertion *in, node *n);
    /// What watches what n reads from `arg`, which may be an observer. is_first: it is the first
    /// argument itself.
    tare_status (*choose)(struct insertion *in, const node *n, node *arg, bool is_first,
                          observer_wish *out);
    /// Learns which observer was chosen, and whether it watched `arg` before. NULL: not told.
    tare_status (*tell)(struct insertion *in, const node *n, const node *arg,
                        const observer_wish *wish, bool is_new);
    size_t next_number; // of activation_post_process_N: torch takes the least that is free
} insertion;

/// Visits every node. New nodes are not looked at.
tare_status tare__insert_observers(insertion *in);
/// Observers on the inputs of n, also on those in lists and keyword arguments.
tare_status tare__observe_inputs(insertion *in, node *n);
/// An observer of the result of n, which all its readers read from now on.
tare_status tare__observe_output(insertion *in, node *n, const observer_wish *wish);
/// A number is spent as if an observer had been inserted and taken away again.
tare_status tare__spend_observer_number(insertion *in);

/// The observer right after `watched`, under the free name {prefix}{N} of the least N from *number
/// on.
tare_status tare__insert_observer(pass *p, const observer_wish *wish, const char *prefix,
                                  size_t *number, node *watched, node **out);
/// Binds a module to the root under such a name, and calls it with `arg` before a node (NULL: at
/// the end).
tare_status tare__call_new_module(pass *p, module *m, const char *prefix, size_t *number, node *arg,
                                  node *before, node **out);

#endif
