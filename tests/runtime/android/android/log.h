// What programs take of the NDK's log, with its declarations.
#ifndef QUOLL_TESTS_LOG_H
#define QUOLL_TESTS_LOG_H

enum { ANDROID_LOG_WARN = 5 };
int __android_log_print(int priority, const char* tag, const char* format, ...);

#endif
