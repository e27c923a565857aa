#ifndef NCNN_COMMAND_H
#define NCNN_COMMAND_H

#include "mat.h"
#include "platform.h"
#include "quoll/command.h"

#endif
