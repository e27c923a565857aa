#ifndef NCNN_PARAMDICT_H
#define NCNN_PARAMDICT_H

#include "mat.h"
#include "quoll/paramdict.h"

#define NCNN_MAX_PARAM_COUNT 32
static_assert(NCNN_MAX_PARAM_COUNT == quoll::kMaxParamId + 1, "the ids of ParamDict");

#endif
