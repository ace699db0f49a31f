// SPDX-License-Identifier: Apache-2.0
// The steps of a session's plan and their times, for callers.
#include "runtime/plan/profile.h"

#include "runtime/session/session.h"

size_t tare_session_step_count(const tare_session *session) {
    if (!tare__session_enter(session)) return 0;
    const plan *p = tare__session_plan(session);
    const size_t count = p != NULL ? tare__plan_step_count(p) : 0;
    tare__session_leave(session);
    return count;
}

bool tare_session_get_step(const tare_session *session, size_t index, tare_step *out) {
    if (!tare__session_enter(session)) return false;
    const plan *p = tare__session_plan(session);
    const bool is_there = p != NULL && tare__plan_step(p, index, out);
    tare__session_leave(session);
    return is_there;
}

bool tare_session_get_nested_step(const tare_session *session, size_t index, tare_step *out,
                                  const char **path) {
    const plan *p = NULL;
    bool is_there = false;
    if (!tare__session_enter(session)) return false;
    for (size_t i = 0; !is_there; i++) {
        p = tare__session_nested_plan(session, i, path);
        if (p == NULL) break;
        const size_t count = tare__plan_step_count(p);
        is_there = index < count && tare__plan_step(p, index, out);
        index -= is_there ? 0 : count;
    }
    tare__session_leave(session);
    return is_there;
}

bool tare_session_get_memory(const tare_session *session, tare_plan_memory *out) {
    if (!tare__session_enter(session)) return false;
    const plan *p = tare__session_plan(session);
    if (p != NULL) tare__plan_memory(p, out);
    tare__session_leave(session);
    return p != NULL;
}

bool tare_session_get_place(const tare_session *session, size_t index, tare_plan_place *out) {
    if (!tare__session_enter(session)) return false;
    const plan *p = tare__session_plan(session);
    const bool is_there = p != NULL && tare__plan_place(p, index, out);
    tare__session_leave(session);
    return is_there;
}
