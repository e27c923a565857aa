#ifndef NCNN_OPTION_H
#define NCNN_OPTION_H

#include "platform.h"
#include "quoll/option.h"

#endif
