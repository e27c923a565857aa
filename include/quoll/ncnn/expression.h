#ifndef NCNN_EXPRESSION_H
#define NCNN_EXPRESSION_H

#include "mat.h"
#include "quoll/expression.h"

#endif
