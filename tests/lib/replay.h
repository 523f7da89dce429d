/*
 * replay: plays a recorded exchange of a real API server against the sandbox, in process.
 *
 * The rules are those of tests/data/apiserver/README.md: placeholders are bound by first
 * appearance, managedFields are left out but in the apply cases, discovery documents are cut down
 * to what was recorded.
 */
#pragma once

#include "base/arena.h"
#include "base/buf.h"

/* Plays one case on a new server. Differences are added to `out`, one a line; none: it passed. */
void replay_run(struct str name, struct str prelude, struct str recording, struct buf *out);
