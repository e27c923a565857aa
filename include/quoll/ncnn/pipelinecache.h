#ifndef NCNN_PIPELINECACHE_H
#define NCNN_PIPELINECACHE_H

#include "gpu.h"
#include "platform.h"

#endif
