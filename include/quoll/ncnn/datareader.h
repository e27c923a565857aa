#ifndef NCNN_DATAREADER_H
#define NCNN_DATAREADER_H

#include "platform.h"
#include "quoll/android.h"
#include "quoll/datareader.h"

#endif
