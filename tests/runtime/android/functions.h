// What Android's C library has otherwise than glibc, for a compiler that sees glibc's headers.
#include <pthread.h>
#include <sched.h>
#include <sys/types.h>

#include <thread>

pid_t pthread_gettid_np(pthread_t thread);
#pragma GCC poison pthread_setaffinity_np
