#ifndef NCNN_SIMPLEMATH_H
#define NCNN_SIMPLEMATH_H

#include "platform.h"

#endif
