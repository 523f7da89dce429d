/*
 * filewatch: says when a file may have changed, however that is done: written in place, replaced by
 * rename, made or removed, behind symbolic links that change their target (a mounted ConfigMap does
 * it so, by its link `..data`), in folders that are removed and made again.
 *
 * Every folder of the path is watched for the next name of the path, and so is the file itself (a
 * file that is mounted alone has no folder whose events would show a change). After a change the
 * path is walked again. Only when the kernel has no more watches to give, the path is walked every
 * FILEWATCH_RETRY until it has.
 */
#pragma once

#include "base/err.h"
#include "port/loop.h"

#define FILEWATCH_SETTLE MSECONDS(100)  /* after the last change: files are written in pieces */
#define FILEWATCH_SETTLE_MAX SECONDS(1) /* after the first: some are written without an end */
#define FILEWATCH_RETRY SECONDS(5)

struct filewatch;

/* `on_change` comes from the loop and may free the watch. It may come without a change of the
 * content. The file need not exist. Who reads it after this call misses nothing. NULL with `err`
 * when the kernel cannot. */
NODISCARD
struct filewatch *filewatch_new(struct loop *loop, struct str path, void (*on_change)(void *ctx),
                                void *ctx, struct err *err);
void filewatch_free(struct filewatch *w); /* accepts NULL */
