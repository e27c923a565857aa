// Checks of the small programs here, which are built without GoogleTest, as applications are.
#ifndef QUOLL_TESTS_NCNN_CHECK_H
#define QUOLL_TESTS_NCNN_CHECK_H

#include <stdio.h>

static int g_failed = 0;

#define CHECK(...)                                                   \
    do {                                                             \
        if (!(__VA_ARGS__)) {                                        \
            printf("%s:%d: %s\n", __FILE__, __LINE__, #__VA_ARGS__); \
            g_failed++;                                              \
        }                                                            \
    } while (0)

static inline int result_of_checks() {
    if (g_failed) printf("%d checks failed\n", g_failed);
    return g_failed != 0;
}

#endif
