#ifndef NCNN_BLOB_H
#define NCNN_BLOB_H

#include "mat.h"
#include "platform.h"
#include "quoll/blob.h"

#endif
