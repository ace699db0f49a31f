// SPDX-License-Identifier: Apache-2.0
// Waits until a word changes: by futex(2) on Linux, elsewhere by one condition variable for all
// words.
#define _DEFAULT_SOURCE // syscall
#include "core/threads/wait.h"

#ifdef __linux__

#include <limits.h>
#include <linux/futex.h>
#include <stddef.h>
#include <sys/syscall.h>
#include <unistd.h>

void tare__wait_while(atomic_uint *word, unsigned value) {
    // It returns immediately if the word has another value, and early after a signal.
    (void)syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, value, NULL, NULL, 0);
}

void tare__wake(atomic_uint *word, unsigned count) {
    const int most = count < INT_MAX ? (int)count : INT_MAX;
    (void)syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, most, NULL, NULL, 0);
}

#else

#include <pthread.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;

void tare__wait_while(atomic_uint *word, unsigned value) {
    pthread_mutex_lock(&lock);
    while (atomic_load(word) == value) pthread_cond_wait(&changed, &lock);
    pthread_mutex_unlock(&lock);
}

void tare__wake(atomic_uint *word, unsigned count) {
    (void)word, (void)count;
    pthread_mutex_lock(&lock);
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&lock);
}

#endif

void tare__pause(void) {
#if defined __x86_64__ || defined __i386__
    __builtin_ia32_pause();
#elif defined __aarch64__
    __asm__ volatile("yield");
#endif
}
