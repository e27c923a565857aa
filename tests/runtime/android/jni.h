// What the library takes of Java's interface.
#ifndef QUOLL_TESTS_JNI_H
#define QUOLL_TESTS_JNI_H

struct JNIEnv;
typedef struct _jobject* jobject;

#endif
