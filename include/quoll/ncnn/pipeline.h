#ifndef NCNN_PIPELINE_H
#define NCNN_PIPELINE_H

#include "platform.h"

#endif
