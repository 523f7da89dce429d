/*
 * base64: bytes as text (RFC 4648 §4), as Secrets, kubeconfigs and YAML's !!binary hold them.
 */
#pragma once

#include "base/arena.h"

/* The padding is required; line breaks are passed over, as Go does. False for anything else. */
bool base64_decode(struct str text, struct arena *out, struct str *ret);
struct str base64_encode(struct arena *out, struct str bytes);
