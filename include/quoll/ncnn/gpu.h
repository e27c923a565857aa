#ifndef NCNN_GPU_H
#define NCNN_GPU_H

#include "mat.h"
#include "platform.h"
#include "quoll/glsl.h"
#include "quoll/gpu.h"
#include "quoll/pipeline.h"
#include "quoll/vkmat.h"
#include "quoll/vulkan_functions.h"

#endif
