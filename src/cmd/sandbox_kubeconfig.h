/*
 * sandbox_kubeconfig: the file that leads kubectl to a sandbox.
 */
#pragma once

#include "base/arena.h"

struct pki;

/* `pki` NULL: plain HTTP, no credentials. */
struct str kubeconfig_file_text(struct str server, const struct pki *pki, struct arena *out);
