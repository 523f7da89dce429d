/*
 * desired_file: a file of this machine as the source of what should be.
 */
#pragma once

#include "agent/desired.h"
#include "port/loop.h"

struct desired_file;

struct desired_file *desired_file_new(struct loop *loop, struct str path);
void desired_file_free(struct desired_file *f); /* accepts NULL */

struct desired_source desired_file_source(struct desired_file *f);
