// SPDX-License-Identifier: Apache-2.0
// Sleeping until a word changes.
// Private to core/threads.
#ifndef CORE_THREADS_WAIT_H
#define CORE_THREADS_WAIT_H

#include <stdatomic.h>

/// Sleeps while *word is value; may return earlier. Memory written before the wake-up is visible if
/// the change of the word is.
void tare__wait_while(atomic_uint *word, unsigned value);
/// Wakes at most `count` threads that wait for the word, which must have been changed before.
void tare__wake(atomic_uint *word, unsigned count);
/// Tells the processor that a loop waits for another thread.
void tare__pause(void);

#endif
