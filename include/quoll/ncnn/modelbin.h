#ifndef NCNN_MODELBIN_H
#define NCNN_MODELBIN_H

#include "mat.h"
#include "quoll/modelbin.h"

#endif
