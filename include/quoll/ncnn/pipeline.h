#ifndef NCNN_PIPELINE_H
#define NCNN_PIPELINE_H

#include "gpu.h"
#include "mat.h"
#include "platform.h"
#include "quoll/pipeline.h"

#endif
