// The threads of a program's own "#pragma omp" are its compiler's.
#ifndef NCNN_SIMPLEOMP_H
#define NCNN_SIMPLEOMP_H

#include "platform.h"
#if defined(_OPENMP)
#include <omp.h>
#endif

#endif
