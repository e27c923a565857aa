#ifndef NCNN_MAT_H
#define NCNN_MAT_H

#include <stdlib.h>
#include <string.h>
#if defined(__ANDROID__)
#include <android/bitmap.h>
#include <jni.h>
#endif
#if defined(__ARM_NEON)
#include <arm_neon.h>
#elif defined(__AVX__)
#include <immintrin.h>
#elif defined(__SSE2__)
#include <emmintrin.h>
#endif

#include "allocator.h"
#include "option.h"
#include "platform.h"
#include "quoll/image.h"
#include "quoll/mat.h"

#endif
