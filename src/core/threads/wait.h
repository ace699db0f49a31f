// SPDX-License-Identifier: Apache-2.0
// Waiting for a word to change, asleep.
// Private to core/threads.
#ifndef CORE_THREADS_WAIT_H
#define CORE_THREADS_WAIT_H

#include <stdatomic.h>

/// Sleeps while *word is value; may return sooner. What was written before a wake-up that ends it
/// is seen, if the word's change was.
void tare__wait_while(atomic_uint *word, unsigned value);
/// Wakes at most `count` of those who wait for the word, whose change comes before.
void tare__wake(atomic_uint *word, unsigned count);
/// Tells the processor that a loop waits for another thread.
void tare__pause(void);

#endif
