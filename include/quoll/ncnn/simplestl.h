#ifndef NCNN_SIMPLESTL_H
#define NCNN_SIMPLESTL_H

#include "platform.h"

#endif
